"""Offset syncs and the exact map, written while copying between two fake clusters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.mirror.records import OffsetSync
from sparkmirror.mirror.translation.offset_map import OffsetMap
from sparkmirror.mirror.translation.offset_map_chunks import Chunk, ChunkKey, offset_map_topic
from sparkmirror.types import TopicPartition
from tests.spark.copies import OFFSETS, T0, T1, WAIT_SECONDS, Copy
from tests.wire.fake_broker import PRODUCE, Do, FakeCluster, Request

ON_SOURCE = "mm2-offset-syncs.b.internal"
ON_TARGET = "mm2-offset-syncs.a.internal"
MAP = offset_map_topic("a")
LOCATED = {"a->b.offset-syncs.topic.location": "target"}


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Copy]:
    with FakeCluster() as source, FakeCluster() as target:
        source.create_topic("t", partitions=2)
        source.create_topic(ON_SOURCE, partitions=1)
        target.create_topic("a.t", partitions=2)
        target.create_topic(ON_TARGET, partitions=1)
        target.create_topic(MAP, partitions=1)
        target.create_topic(OFFSETS, partitions=5)
        copy = Copy(tmp_path, source, target)
        yield copy
        copy.close()


def syncs(cluster: FakeCluster, topic: str) -> list[OffsetSync]:
    return [
        OffsetSync.decode(record.key or b"", record.value or b"")
        for record in cluster.log(topic).records()
    ]


def exact_map(cluster: FakeCluster, tp: TopicPartition) -> OffsetMap:
    found = OffsetMap()
    for record in cluster.log(MAP).records():
        key = ChunkKey.decode(record.key or b"")
        if (key.topic, key.partition) == tp:
            found.apply(Chunk.decode(record.value or b""))
    return found


def test_syncs_go_to_the_source_by_default(copy: Copy) -> None:
    copy.source.write(T0, [b"0", b"1"])
    copy.start({T0: None}, offset_syncs_topic=ON_SOURCE)
    copy.wait_for(2)
    copy.run_until(lambda: bool(syncs(copy.source, ON_SOURCE)))
    assert syncs(copy.source, ON_SOURCE)[-1] == OffsetSync("t", 0, 1, 1)
    copy.stop()
    assert syncs(copy.target, ON_TARGET) == []


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop waits until all is stored, however slow the machine."""
    monkeypatch.setattr("sparkmirror.spark.offsets.offset_committer.SYNCS_SECONDS", WAIT_SECONDS)


@pytest.mark.usefixtures("patient")
def test_syncs_on_the_target_and_of_every_partition(copy: Copy) -> None:
    copy.source.write(T0, [b"0", b"1", b"2"])
    copy.source.write(T1, [b"x"])
    copy.target.write(TopicPartition("a.t", 1), [b"not ours"])
    copy.start({T0: 1, T1: None}, LOCATED, offset_syncs_topic=ON_TARGET)
    copy.wait_for(2)
    copy.wait_for(2, T1)
    copy.stop()
    last = {(sync.topic, sync.partition): sync for sync in syncs(copy.target, ON_TARGET)}
    assert last == {
        ("t", 0): OffsetSync("t", 0, 2, 1),
        ("t", 1): OffsetSync("t", 1, 0, 1),
    }


@pytest.mark.usefixtures("patient")
def test_what_needs_no_sync_yet_is_synced_with_the_positions(copy: Copy) -> None:
    copy.source.write(T0, [b"0"])
    copy.start({T0: None}, offset_syncs_topic=ON_SOURCE)
    copy.wait_for(1)
    for value in (b"1", b"2", b"3"):
        copy.source.write(T0, [value])
        copy.wait_for(int(value) + 1)
    assert OffsetSync("t", 0, 3, 3) not in syncs(copy.source, ON_SOURCE)
    copy.stop()
    assert syncs(copy.source, ON_SOURCE)[-1] == OffsetSync("t", 0, 3, 3)


@pytest.mark.usefixtures("patient")
def test_the_map_knows_every_record_after_a_restart_too(copy: Copy) -> None:
    copy.source.write(T0, [b"0", b"1", b"2"])
    copy.start({T0: None}, offset_map_topic=MAP)
    copy.wait_for(3)
    copy.stop()
    copy.copy.close()
    copy.target.write(TopicPartition("a.t", 0), [b"not ours"])
    copy.source.write(T0, [b"3", b"4"])
    copy.start({T0: 3}, offset_map_topic=MAP)
    copy.wait_for(6)
    copy.stop()
    found = exact_map(copy.target, T0)
    assert [found.translate(offset) for offset in range(6)] == [0, 1, 2, 4, 5, 6]


@pytest.mark.parametrize("position", [None, 0], ids=["none stored", "stored"])
def test_a_crash_before_the_first_flush_lets_no_group_go_ahead(
    copy: Copy, position: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was copied without a sync counts until the second copy has caught up with it."""
    monkeypatch.setattr("sparkmirror.spark.offsets.offset_sync_emitter.MAP_SECONDS", 600.0)
    for number in range(10):
        copy.source.write(T0, [b"%d" % number])
    copy.start({T0: position}, offset_map_topic=MAP)
    copy.wait_for(10)
    copy.copy.close()  # a crash: nothing was flushed
    is_stuck = False

    def refuse(request: Request) -> Do | None:
        nonlocal is_stuck
        of_records = any(topic.name == "a.t" for topic in request.body.topic_data)
        has_enough = len(copy.copied(T0)) >= 15
        is_stuck = is_stuck or (of_records and has_enough)
        return Do(code=6) if of_records and has_enough else None

    copy.target.intercept(PRODUCE, refuse)
    settings = {"a.consumer.max.partition.fetch.bytes": "1", "a.consumer.fetch.max.bytes": "1"}
    loop = copy.start({T0: position}, settings, offset_map_topic=MAP)
    copy.run_until(lambda: is_stuck)
    assert 15 <= len(copy.copied(T0)) < 20
    loop._emitter.commit()
    copy.run_until(lambda: loop._emitter.idle)
    found = exact_map(copy.target, T0)
    assert all((found.translate(offset) or 0) <= offset for offset in range(11))


def test_a_mark_that_cannot_be_written_does_not_stop_the_copy(
    copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparkmirror.spark.copy.session_marks.MARK_SECONDS", 0.2)
    copy.target.intercept(PRODUCE, lambda r: Do(code=6) if _is_of_map(r) else None)
    copy.source.write(T0, [b"0", b"1"])
    copy.start({T0: None}, offset_map_topic=MAP)
    copy.wait_for(2)


def _is_of_map(request: Request) -> bool:
    return any(topic.name == MAP for topic in request.body.topic_data)


def test_marks_of_many_partitions_are_one_request(copy: Copy) -> None:
    copy.source.create_topic("many", partitions=100)
    copy.target.create_topic("a.many", partitions=100)
    many = [TopicPartition("many", at) for at in range(100)]
    for tp in many:
        copy.source.write(tp, [b"x"])
    copy.start(dict.fromkeys(many, 0), offset_map_topic=MAP)
    copy.run_until(lambda: copy.copy.metrics.records == 100)
    first = next(r for r in copy.target.sent(PRODUCE))
    assert _is_of_map(first)
    assert len(copy.target.log(MAP).batches[0].data) > 100 * 20


def test_a_topic_that_is_missing_does_not_stop_the_copy(copy: Copy) -> None:
    copy.source.write(T0, [b"0", b"1"])
    copy.start({T0: None}, offset_syncs_topic="mm2-offset-syncs.gone.internal")
    copy.wait_for(2)
    copy.stop()
    assert copy.stored() == {T0: 1}


def test_nothing_is_written_when_nothing_is_wanted(copy: Copy) -> None:
    copy.source.write(T0, [b"0", b"1"])
    copy.start({T0: None})
    copy.wait_for(2)
    copy.stop()
    assert (syncs(copy.source, ON_SOURCE), syncs(copy.target, ON_TARGET)) == ([], [])
    assert copy.target.log(MAP).records() == []
