"""What is counted with each batch, and what is measured at most every 50 ms."""

from __future__ import annotations

import pytest

from sparkmirror.batches.outgoing import OutgoingBatch
from sparkmirror.spark.copy.copy_counts import CopyCounts, LatencyHistogram
from sparkmirror.spark.figures import LATENCY_BOUNDS_MS, NOTHING, Window

NOW = 1_700_000_000.0
NOW_MS = 1_700_000_000_000


def batch(first_ms: int, last_ms: int, count: int = 10, size: int = 500) -> OutgoingBatch:
    return OutgoingBatch(bytearray(), 0, count - 1, count, first_ms, last_ms, None, size)


class Rig:
    """Counts of one partition, and a clock."""

    def __init__(self) -> None:
        self.now = NOW
        self.histogram = LatencyHistogram(lambda: self.now)
        self.counts = CopyCounts()

    def store(self, age_ms: int, count: int = 10) -> None:
        at = int(self.now * 1000) - age_ms
        self.histogram.count_stored(self.counts, batch(at, at, count))

    def buckets(self) -> dict[float, int]:
        bounds = [*LATENCY_BOUNDS_MS, float("inf")]
        pairs = zip(bounds, self.histogram.buckets, strict=True)
        return {bound: count for bound, count in pairs if count}


def test_a_batch_is_measured_by_its_first_and_its_last_record() -> None:
    rig = Rig()
    rig.histogram.count_stored(rig.counts, batch(NOW_MS - 300, NOW_MS - 100))
    assert rig.counts.records == 10
    assert rig.counts.bytes == 500
    assert rig.counts.latency.take() == Window(100, 100, 300, 2000, 10)
    assert rig.buckets() == {250: 10}
    assert rig.histogram.sum_ms == pytest.approx(2000)
    assert rig.counts.latency.take() == NOTHING


def test_of_many_batches_one_is_measured_and_all_are_counted() -> None:
    rig = Rig()
    for _ in range(100):
        rig.store(20)
        rig.now += 0.001
    rig.store(700)  # too soon after the last one
    rig.histogram.count_rest(rig.counts)
    assert rig.counts.records == 1010
    assert rig.buckets() == {25: 1010}
    assert rig.counts.latency.take().count == 1010


def test_a_clock_that_is_set_back_does_not_end_measuring() -> None:
    rig = Rig()
    rig.store(20)
    rig.now -= 3600
    rig.store(90)
    assert rig.buckets() == {25: 10, 100: 10}


@pytest.mark.parametrize("at_ms", [-1, NOW_MS + 3_600_000], ids=["none", "an hour ahead"])
def test_by_an_absurd_timestamp_nothing_is_measured(at_ms: int) -> None:
    rig = Rig()
    rig.histogram.count_stored(rig.counts, batch(at_ms, at_ms))
    rig.histogram.count_fetched(rig.counts, batch(at_ms, at_ms), batch(at_ms, at_ms))
    rig.histogram.count_rest(rig.counts)
    assert rig.counts.records == 10
    assert rig.buckets() == {}
    assert rig.counts.latency.take() == NOTHING
    assert rig.counts.age.take() == NOTHING


def test_a_source_clock_that_is_a_little_ahead_counts_as_no_latency() -> None:
    rig = Rig()
    rig.store(-200)
    assert rig.buckets() == {5: 10}
    assert rig.counts.latency.take() == Window(0, 0, 0, 0, 10)


def test_records_of_long_ago_are_beyond_all_bounds() -> None:
    rig = Rig()
    rig.store(NOW_MS)
    assert rig.buckets() == {float("inf"): 10}


def test_ages_are_measured_from_the_first_to_the_last_batch_of_a_response() -> None:
    rig = Rig()
    rig.histogram.count_fetched(
        rig.counts, batch(NOW_MS - 900, NOW_MS - 800), batch(NOW_MS - 200, NOW_MS - 100)
    )
    age = rig.counts.age.take()
    assert (age.last, age.least, age.most) == (100, 100, 900)
    assert rig.counts.newest_ms == NOW_MS - 100
