"""Positions: what is committed, when, and its bytes."""

from __future__ import annotations

import pytest

from sparkmirror.batches.records import decode
from sparkmirror.mirror.positions.partitioner import partition_for_key
from sparkmirror.mirror.positions.provenance import Provenance, decode_provenance
from sparkmirror.spark.offsets.positions import Commit, Positions
from sparkmirror.types import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
NOW_MS = 1_700_000_000_000


@pytest.fixture
def positions() -> Positions:
    return Positions("MirrorSourceConnector", "A", "mm2-offsets.A.internal", 25)


def commit(positions: Positions) -> list[Commit]:
    """One commit, stored."""
    commits = [row for _, _, row in positions.take_commit(NOW_MS)]
    for each in commits:
        positions.stored(each)
    return commits


def test_the_records_are_those_of_mirror_maker(positions: Positions) -> None:
    positions.acked(TopicPartition("t", 3), 41)
    ((tp, batch, _),) = positions.take_commit(NOW_MS)
    (record,) = decode(batch)
    assert record.key == b'["MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"t"}]'
    assert record.value == b'{"offset":41}'
    assert record.timestamp == NOW_MS
    assert tp == TopicPartition("mm2-offsets.A.internal", partition_for_key(record.key, 25))


def test_nothing_to_commit_at_the_start(positions: Positions) -> None:
    assert positions.take_commit(NOW_MS) == []
    assert positions.is_committed


def test_only_what_has_changed_is_committed(positions: Positions) -> None:
    positions.acked(A0, 1)
    positions.acked(A1, 5)
    assert not positions.is_committed
    commit(positions)
    assert positions.is_committed
    positions.acked(A1, 6)
    (again,) = commit(positions)
    assert again.last_offsets == {A1: 6}


def test_one_commit_at_a_time(positions: Positions) -> None:
    positions.acked(A0, 1)
    ((_, _, under_way),) = positions.take_commit(NOW_MS)
    positions.acked(A0, 2)
    assert positions.take_commit(NOW_MS) == []
    positions.stored(under_way)
    assert not positions.is_committed
    assert not positions.is_committed_of(A0)
    (later,) = commit(positions)
    assert later.last_offsets == {A0: 2}
    assert positions.is_committed


def test_a_silent_partition_of_the_offsets_topic_delays_no_other(
    positions: Positions,
) -> None:
    for at in range(40):
        positions.acked(TopicPartition("t", at), at)
    rows = positions.take_commit(NOW_MS)
    assert len({tp for tp, _, _ in rows}) == len(rows) > 1
    assert sum(len(decode(batch)) for _, batch, _ in rows) == 40
    for _, _, each in rows[:-1]:
        positions.stored(each)
    (waiting, *_), (other, *_) = rows[-1][2].last_offsets, rows[0][2].last_offsets
    for tp in (waiting, other):
        positions.acked(tp, 100)
    assert [row.last_offsets for row in commit(positions)] == [{other: 100}]
    assert positions.is_sending
    assert not positions.is_committed
    positions.stored(rows[-1][2])
    assert [row.last_offsets for row in commit(positions)] == [{waiting: 100}]
    assert positions.is_committed


def test_the_newest_position_counts(positions: Positions) -> None:
    for last_offset in range(10):
        positions.acked(A0, last_offset)
    (row,) = commit(positions)
    assert row.last_offsets == {A0: 9}


def test_a_partition_that_is_forgotten_is_not_committed(positions: Positions) -> None:
    positions.acked(A0, 1)
    positions.acked(B0, 1)
    positions.forget(A0)
    (row,) = commit(positions)
    assert row.last_offsets == {B0: 1}
    assert positions.is_committed


def test_a_partition_that_is_forgotten_while_its_commit_is_under_way(
    positions: Positions,
) -> None:
    positions.acked(A0, 1)
    ((_, _, under_way),) = positions.take_commit(NOW_MS)
    positions.forget(A0)
    positions.stored(under_way)
    assert positions.is_committed
    positions.acked(A0, 1)  # it came back: its position is written again
    assert not positions.is_committed_of(A0)


def test_a_recreated_topic_leaves_a_tombstone(positions: Positions) -> None:
    positions.acked(A0, 41)
    commit(positions)
    positions.restarted(A0)
    assert not positions.is_committed
    ((_, batch, row),) = positions.take_commit(NOW_MS)
    assert decode(batch)[0].value is None
    positions.stored(row)
    assert positions.is_committed
    positions.acked(A0, 0)
    (again,) = commit(positions)
    assert again.last_offsets == {A0: 0}


def test_a_position_that_was_decided_is_stored_also_if_it_equals_the_last_one(
    positions: Positions,
) -> None:
    positions.acked(A0, 4)
    commit(positions)
    ((_, _, under_way),) = _restart(positions, A0)
    positions.acked(A0, 4)  # of the new topic
    positions.stored(under_way)
    assert [row.last_offsets for row in commit(positions)] == [{A0: 4}]


def _restart(positions: Positions, tp: TopicPartition) -> list[tuple[object, object, Commit]]:
    positions.restarted(tp)
    rows = [(where, batch, row) for where, batch, row in positions.take_commit(NOW_MS)]
    assert [row.last_offsets for _, _, row in rows] == [{tp: None}]
    return list(rows)


def test_a_position_names_its_log_beside_the_bytes_of_mirror_maker() -> None:
    known = Provenance(bytes(range(16)), ((3, 0), (5, 40)), 77)
    positions = Positions("c", "A", "offsets", 1, lambda tp, last: known)
    positions.moved(A0, 41)
    ((_, batch, _),) = positions.take_commit(NOW_MS)
    (record,) = decode(batch)
    assert record.value == b'{"offset":41}'
    assert decode_provenance(record.headers) == known
