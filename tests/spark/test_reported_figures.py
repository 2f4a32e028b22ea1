"""What the worker knows of a task's partitions: rows, totals over attempts, the last minute."""

from __future__ import annotations

from sparkmirror.spark.figures import (
    LATENCY_BOUNDS_MS,
    NOTHING,
    PartitionFigures,
    Window,
    encode_row,
)
from sparkmirror.spark.link.frames import LinkMessage, decode_message, encode_message
from sparkmirror.spark.reported_figures import ReportedFigures, SampledWindow
from sparkmirror.types import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def row(tp: TopicPartition = T0, records: int = 0, **values: object) -> PartitionFigures:
    target = TopicPartition(f"a.{tp.topic}", tp.partition)
    figures: dict[str, object] = {"records": records, "bytes": records * 10, "position": records}
    return PartitionFigures(tp, target, **{**figures, **values})  # type: ignore[arg-type]


def report(*rows: PartitionFigures, **more: object) -> LinkMessage:
    """As it arrives over the link."""
    message: LinkMessage = {"type": "figures", "rows": [encode_row(each) for each in rows], **more}
    return decode_message(encode_message(message)[4:])


class Rig:
    """Figures, and their clock."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.reported = ReportedFigures(lambda: self.now, lambda: self.now)

    def rows(self) -> dict[TopicPartition, PartitionFigures]:
        return {each.source: each for each in self.reported.read("a->b|c-0").partitions}


def test_a_row_comes_back_as_it_was() -> None:
    rig = Rig()
    sent = row(
        T1, 7, end_offset=9, oldest_ms=5, age=Window(1, 1, 2, 3, 2), latency=Window(4, 3, 5, 8, 2),
        lost_records=2, skipped_records=1, problem="waits: \"ü\"",
    )  # fmt: skip
    rig.reported.take(report(sent, is_first=True))
    assert rig.rows() == {T1: sent}
    found = rig.reported.read("a->b|c-0")
    assert (found.task, found.at, found.is_complete) == ("a->b|c-0", 1000.0, True)


def test_before_the_first_report_nothing_is_known() -> None:
    found = Rig().reported.read("x")
    assert (found.partitions, found.at, found.is_complete) == ((), 0.0, False)


def test_rows_that_do_not_come_again_stay() -> None:
    rig = Rig()
    rig.reported.take(report(row(T0, 1), row(T1, 5), is_first=True))
    rig.now += 1
    rig.reported.take(report(row(T0, 2)))
    rig.now += 1
    rig.reported.heard()
    assert {tp: each.records for tp, each in rig.rows().items()} == {T0: 2, T1: 5}
    assert rig.reported.read("x").at == 1002.0


def test_totals_continue_in_the_next_attempt() -> None:
    rig = Rig()
    rig.reported.take(report(row(T0, 5, lost_records=3), row(T1, 1), is_first=True))
    rig.reported.begin()
    assert {tp: each.records for tp, each in rig.rows().items()} == {T0: 5, T1: 1}
    assert not rig.reported.read("x").is_complete
    rig.reported.take(report(row(T0, 2), is_first=True))
    found = rig.rows()
    assert found.keys() == {T0}  # the new attempt has no other
    assert (found[T0].records, found[T0].bytes, found[T0].lost_records) == (7, 70, 3)
    rig.reported.begin()
    rig.reported.begin()  # an attempt that reported nothing
    rig.reported.take(report(row(T0, 1), row(T1, 1), is_first=True))
    found = rig.rows()
    assert (found[T0].records, found[T1].records) == (8, 2)


def test_a_partition_that_leaves_and_returns_keeps_its_totals() -> None:
    rig = Rig()
    rig.reported.take(report(row(T0, 5), row(T1, 1), is_first=True))
    rig.reported.take(report(gone=[encode_row(row(T0, 6))]))
    assert rig.rows().keys() == {T1}
    rig.reported.take(report(row(T0, 2)))
    assert rig.rows()[T0].records == 8
    # In one report: it left, and was assigned again.
    rig.reported.take(report(row(T0, 1), gone=[encode_row(row(T0, 3))]))
    assert rig.rows()[T0].records == 10


def test_latencies_and_reasons_are_added_up_over_attempts() -> None:
    rig = Rig()
    zeros = [0] * len(LATENCY_BOUNDS_MS)

    def send(count: int, merged: int) -> None:
        message = report(latency=[count, *zeros], latency_sum_ms=count * 2, slow={"merged": merged})
        rig.reported.take(message)

    send(3, 1)
    send(5, 2)
    rig.reported.begin()
    send(4, 1)
    found = rig.reported.read("x")
    assert list(found.latency_buckets) == [9, *zeros]
    assert found.latency_sum_ms == 18
    assert found.slow == {"merged": 3}


def test_windows_are_of_the_last_30_to_60_seconds() -> None:
    window = SampledWindow()
    window.add(Window(1, 1, 9, 10, 2), 100.0)
    window.add(Window(5, 5, 5, 5, 1), 120.0)
    assert window.read(125.0) == Window(5, 1, 9, 15, 3)
    window.add(Window(2, 2, 2, 2, 1), 131.0)
    assert window.read(140.0) == Window(2, 1, 9, 17, 4)
    assert window.read(162.0) == Window(2, 2, 2, 2, 1)
    assert window.read(200.0) == Window(2)
    assert SampledWindow().read(200.0) == NOTHING


def test_a_window_of_long_ago_is_gone_when_the_next_begins() -> None:
    window = SampledWindow()
    window.add(Window(1, 1, 9, 10, 2), 100.0)
    window.add(Window(5, 5, 5, 5, 1), 500.0)
    assert window.read(501.0) == Window(5, 5, 5, 5, 1)


def test_measurements_end_with_their_time_though_nothing_is_reported() -> None:
    rig = Rig()
    rig.reported.take(report(row(T0, 1, latency=Window(4, 4, 4, 4, 1)), is_first=True))
    assert rig.rows()[T0].latency.count == 1
    rig.now += 61
    assert rig.rows()[T0].latency == Window(4)
    assert rig.rows()[T0].records == 1
