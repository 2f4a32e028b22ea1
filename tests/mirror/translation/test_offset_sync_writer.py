"""When offset syncs are written, with the cases of Kafka's OffsetSyncWriterTest."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.outgoing import Runs
from sparkmirror.mirror.records import OffsetSync
from sparkmirror.mirror.translation.offset_sync_writer import (
    MAX_IN_FLIGHT,
    OffsetSyncWriter,
    PartitionSyncState,
)
from sparkmirror.mirror.translation.offsets import OffsetPair
from sparkmirror.types import TopicPartition

TP = TopicPartition("orders", 3)

# (upstream, downstream, whether a sync is needed, whether the flag is reset then)
LAG_50 = [
    (0, 100, True, True),
    (2, 102, True, True),
    (3, 152, False, False),
    (4, 153, True, True),
    (5, 154, False, False),
    (6, 203, False, False),
    (7, 204, True, True),
    (2, 206, True, True),
    (3, 207, False, False),
    (4, 3, True, True),
    (5, 4, False, False),
    (7, 6, True, False),
    (7, 6, True, False),
    (8, 7, True, False),
    (10, 57, True, True),
    (11, 58, False, False),
]


def test_a_record_needs_a_sync_as_in_mirror_maker_with_lag_50() -> None:
    state = PartitionSyncState(50)
    for upstream, downstream, expected, reset in LAG_50:
        assert state.update(upstream, downstream) is expected, (upstream, downstream)
        if reset:
            state.reset()


def test_every_record_needs_a_sync_with_lag_0() -> None:
    state = PartitionSyncState(0)
    for upstream, downstream, _, reset in LAG_50:
        assert state.update(upstream, downstream), (upstream, downstream)
        if reset:
            state.reset()


@pytest.mark.parametrize(
    ("lag", "batch", "expected"),
    [
        pytest.param(100, (0, 0, 0, None), [(0, 0)], id="one record"),
        pytest.param(100, (0, 9, 50, None), [(0, 50), (9, 59)], id="first batch: both ends"),
        pytest.param(
            100,
            (0, 999, 0, None),
            [(0, 0), (292, 292), (696, 696), (898, 898), (999, 999)],
            id="ever farther apart",
        ),
        pytest.param(
            0, (5, 13, 5, None), [(5, 5), (6, 6), (10, 10), (12, 12), (13, 13)], id="lag 0"
        ),
        pytest.param(
            2,
            (10, 40, 7, ((10, 2), (20, 1), (38, 3))),
            [(10, 7), (20, 9), (40, 12)],
            id="gaps are honoured",
        ),
    ],
)
def test_first_batch_gives_syncs(
    lag: int, batch: tuple[int, int, int, Runs | None], expected: list[tuple[int, int]]
) -> None:
    assert list(PartitionSyncState(lag).update_batch(*batch)) == expected


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        pytest.param((10, 108, 10, None), [], id="not yet far enough"),
        pytest.param((10, 109, 10, None), [(109, 109)], id="just far enough"),
        pytest.param((10, 117, 10, None), [(117, 117)], id="later than MirrorMaker 2, at 109"),
        pytest.param((11, 20, 10, None), [(20, 19)], id="gap before the batch"),
        pytest.param((10, 20, 10, ((10, 5), (16, 5))), [(20, 19)], id="gap in the batch"),
        pytest.param((9, 20, 10, None), [(9, 10), (20, 21)], id="copied again"),
        pytest.param((10, 20, 3, None), [(10, 3), (20, 13)], id="target truncated"),
    ],
)
def test_second_batch_gives_syncs(
    batch: tuple[int, int, int, Runs | None], expected: list[tuple[int, int]]
) -> None:
    state = PartitionSyncState(108)
    state.update_batch(0, 9, 0, None)
    assert list(state.update_batch(*batch)) == expected


class Batch(NamedTuple):
    """One batch as the copy loop knows it."""

    runs: Runs
    first_downstream: int

    def records(self) -> list[OffsetPair]:
        offsets = [start + n for start, count in self.runs for n in range(count)]
        return [OffsetPair(u, self.first_downstream + i) for i, u in enumerate(offsets)]

    def update(self, state: PartitionSyncState) -> tuple[OffsetPair, ...]:
        first, (last, count) = self.runs[0][0], self.runs[-1]
        runs = self.runs if len(self.runs) > 1 else None
        return state.update_batch(first, last + count - 1, self.first_downstream, runs)


@st.composite
def batches(draw: st.DrawFn, usual_only: bool = False) -> list[Batch]:
    """Batches as they follow each other: mostly without gaps, now and then going back."""
    drawn: list[Batch] = []
    upstream, downstream = draw(st.integers(0, 50)), draw(st.integers(0, 50))
    for _ in range(draw(st.integers(1, 12))):
        jump = 0 if usual_only else draw(st.sampled_from([0, 0, 0, 1, 7, -5, -40]))
        fall = 0 if usual_only else draw(st.sampled_from([0, 0, 0, 0, 1, -30]))
        upstream, downstream = max(0, upstream + jump), max(0, downstream + fall)
        runs: list[tuple[int, int]] = []
        for _ in range(1 if usual_only else draw(st.sampled_from([1, 1, 1, 2, 5]))):
            count = draw(st.integers(1, 120))
            runs.append((upstream, count))
            upstream += count + draw(st.integers(1, 9))
        upstream = sum(runs[-1])
        drawn.append(Batch(tuple(runs), downstream))
        downstream += sum(count for _, count in runs)
    return drawn


lags = st.sampled_from([0, 1, 2, 10, 50, 100, 1000])


@given(batches(), lags)
def test_batches_give_syncs_when_records_would_and_never_older_ones(
    copied: list[Batch], lag: int
) -> None:
    by_batch, by_record = PartitionSyncState(lag), PartitionSyncState(lag)
    for batch in copied:
        synced = []
        for record in batch.records():
            if by_record.update(*record):
                by_record.reset()
                synced.append(record)
        pairs = batch.update(by_batch)
        assert bool(pairs) == bool(synced)
        assert not pairs or pairs[-1] >= synced[-1]
        assert all(
            getattr(by_batch, name) == getattr(by_record, name)
            for name in PartitionSyncState.__slots__
        )


@given(batches(), lags)
def test_syncs_of_a_batch_are_records_of_it_in_order(copied: list[Batch], lag: int) -> None:
    state = PartitionSyncState(lag)
    for batch in copied:
        pairs = batch.update(state)
        assert sorted(set(pairs)) == list(pairs)
        assert set(pairs) <= set(batch.records())
        assert len(pairs) <= 2 + (len(batch.records()) // (lag + 1) + 1).bit_length()


@given(batches(), lags)
def test_gaps_in_and_before_a_batch_are_honoured(copied: list[Batch], lag: int) -> None:
    state = PartitionSyncState(lag)
    previous: int | None = None
    for batch in copied:
        pairs = batch.update(state)
        has_gap = previous is None or len(batch.runs) > 1 or batch.runs[0][0] != previous + 1
        assert pairs or not has_gap
        previous = batch.records()[-1].upstream


@given(batches(usual_only=True), lags)
def test_a_group_goes_back_by_its_distance_from_the_end_at_most(
    copied: list[Batch], lag: int
) -> None:
    state = PartitionSyncState(lag)
    synced: list[OffsetPair] = []
    for batch in copied:
        synced += batch.update(state)
        first, end = synced[0].upstream, batch.records()[-1].upstream + 1
        for position in range(first + 1, end + 1):
            used = synced[bisect_left(synced, (position, 0)) - 1].upstream
            assert position - (used + 1) < (end - position) + 2 * (lag + 1)


def test_first_record_is_sent_and_the_second_delayed() -> None:
    writer = OffsetSyncWriter(offset_lag_max=50)
    assert writer.acked_record(TP, 0, 100) == [OffsetSync("orders", 3, 0, 100)]
    assert writer.acked_record(TP, 1, 101) == []
    assert writer.delayed == {TP: (1, 101)}


def test_later_delayed_record_replaces_the_earlier() -> None:
    writer = OffsetSyncWriter(offset_lag_max=50)
    writer.acked_record(TP, 0, 100)
    writer.acked_record(TP, 1, 101)
    writer.acked_batch(TP, 2, 9, 102, None)
    assert writer.delayed == {TP: (9, 109)}


def test_sync_removes_what_was_delayed() -> None:
    writer = OffsetSyncWriter(offset_lag_max=50)
    writer.acked_record(TP, 0, 100)
    writer.acked_record(TP, 1, 101)
    assert writer.acked_record(TP, 3, 102) == [OffsetSync("orders", 3, 3, 102)]
    assert writer.delayed == {}


def test_commit_sends_what_was_delayed_once() -> None:
    writer = OffsetSyncWriter(offset_lag_max=50)
    writer.acked_batch(TP, 0, 0, 100, None)
    writer.acked_batch(TP, 1, 20, 101, None)
    assert writer.commit() == [OffsetSync("orders", 3, 20, 120)]
    assert writer.delayed == {}
    assert writer.commit() == []


def test_delayed_record_of_a_batch_with_gaps_has_its_true_offset() -> None:
    writer = OffsetSyncWriter(offset_lag_max=50)
    writer.acked_batch(TP, 0, 9, 0, ((0, 2), (8, 2)))
    writer.acked_batch(TP, 10, 12, 4, None)
    assert writer.delayed == {TP: (12, 6)}


def partitions(count: int) -> list[TopicPartition]:
    return [TopicPartition("wide", partition) for partition in range(count)]


def test_no_more_than_ten_are_in_flight() -> None:
    writer = OffsetSyncWriter(offset_lag_max=0)
    sent = [sync for tp in partitions(12) for sync in writer.acked_record(tp, 0, 0)]
    assert [sync.partition for sync in sent] == list(range(MAX_IN_FLIGHT))
    assert list(writer.pending) == partitions(12)[10:]
    assert writer.commit() == []
    assert [sync.partition for sync in writer.completed()] == [10]
    assert [sync.partition for sync in writer.completed(5)] == [11]
    assert writer.pending == {}


def test_unsent_syncs_keep_their_place_and_the_oldest_of_them() -> None:
    writer = OffsetSyncWriter(offset_lag_max=0, max_in_flight=1)
    first, second, third = partitions(3)
    writer.acked_record(first, 0, 0)
    writer.acked_record(second, 0, 0)
    writer.acked_record(third, 0, 0)
    writer.acked_record(second, 1, 1)
    writer.acked_record(second, 2, 2)
    assert writer.pending == {second: ((0, 0), (2, 2)), third: ((0, 0),)}


def test_what_waits_is_bounded() -> None:
    writer = OffsetSyncWriter(offset_lag_max=0, max_in_flight=0)
    for offset in range(0, 5000, 100):
        writer.acked_batch(TP, offset, offset + 99, offset, None)
    assert len(writer.pending[TP]) < 10
    assert writer.pending[TP][0] == (0, 0)
    assert writer.pending[TP][-1] == (4999, 4999)


def test_forgotten_partition_starts_again() -> None:
    writer = OffsetSyncWriter(offset_lag_max=50, max_in_flight=1)
    other = TopicPartition("orders", 4)
    writer.acked_record(other, 0, 0)
    writer.acked_record(TP, 0, 0)
    writer.acked_record(TP, 1, 1)
    writer.forget(TP)
    assert not writer.pending
    assert not writer.delayed
    assert writer.completed() == []
    assert writer.acked_record(TP, 2, 2) == [OffsetSync("orders", 3, 2, 2)]
