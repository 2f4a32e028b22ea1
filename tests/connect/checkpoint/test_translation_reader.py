"""A round of checkpoints waits for the offset map, but not for long and not in vain."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.connect.checkpoint.translation_reader import WAIT_SECONDS
from sparkmirror.errors import TransportError
from sparkmirror.mirror.records import Checkpoint
from sparkmirror.mirror.translation.offset_map_chunks import Chunk, ChunkStart, OffsetRun
from sparkmirror.types import TopicPartition
from tests.connect.group_fakes import Checkpoints

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Rig(Checkpoints):
    """A checkpoint connector whose map tells of the records 0 to 99, from 1000 on at the target."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, {"a->b.topics": "t"})
        self.make_ready()
        self.tell(100)
        self.commit(50)

    def tell(self, records: int) -> None:
        self.add_chunk(T0, Chunk(ChunkStart.SESSION, (OffsetRun(0, 1000, records),)))

    def commit(self, offset: int, tp: TopicPartition = T0) -> None:
        self.source.set("g", {tp: offset})
        self.refresh()

    @property
    def last(self) -> Checkpoint:
        return self.writer.checkpoints[-1]

    def seconds(self) -> float:
        """How long a round waits."""
        return self.time.seconds_of(self.emit)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = Rig(tmp_path)
    assert rig.seconds() == 0
    assert rig.last.downstream_offset == 1050
    return rig


def test_a_commit_right_behind_the_copy_gets_its_exact_place(rig: Rig) -> None:
    rig.add_sync(T0, 120, 1120)
    rig.commit(130)
    rig.time.happens = lambda: rig.tell(131)
    assert 0 < rig.seconds() < WAIT_SECONDS
    assert [c.downstream_offset for c in rig.writer.checkpoints] == [1050, 1130]


def test_records_that_are_about_to_be_copied_are_waited_for_too(rig: Rig) -> None:
    # A task has begun, so the map has the partition, but nothing of it was copied yet.
    rig.add_chunk(T1, Chunk(ChunkStart.SESSION, (OffsetRun(7, 0, 0),)))
    rig.commit(10, T1)
    rig.time.happens = lambda: rig.add_chunk(T1, Chunk(ChunkStart.SESSION, (OffsetRun(7, 0, 5),)))
    assert 0 < rig.seconds() < WAIT_SECONDS
    assert rig.last == Checkpoint("g", "a.t", 1, 10, 3)


def test_a_map_that_does_not_move_is_waited_for_once(rig: Rig) -> None:
    rig.add_sync(T0, 120, 1120)
    rig.commit(130)
    assert rig.seconds() == pytest.approx(WAIT_SECONDS, abs=0.3)
    assert rig.last.downstream_offset == 1121
    assert rig.seconds() == 0


@pytest.mark.parametrize("news", ["a later commit", "a longer map"])
def test_after_waiting_in_vain_news_are_waited_for(rig: Rig, news: str) -> None:
    rig.commit(130)
    rig.emit()
    if news == "a later commit":
        rig.commit(140)
    else:
        rig.tell(120)
    rig.time.happens = lambda: rig.tell(140)
    assert 0 < rig.seconds() < WAIT_SECONDS
    assert rig.last.downstream_offset == 1000 + rig.last.upstream_offset


def test_partitions_that_others_copied_are_not_waited_for(rig: Rig) -> None:
    rig.add_sync(T1, 10, 10)
    rig.commit(15, T1)
    assert rig.seconds() == 0
    assert rig.last == Checkpoint("g", "a.t", 1, 15, 11)


def test_a_map_that_cannot_be_read_is_not_waited_for(rig: Rig) -> None:
    rig.add_sync(T0, 120, 1120)
    rig.commit(130)
    rig.map.error = TransportError("read topic 'map': cut")
    assert rig.seconds() == 0
    assert rig.last.downstream_offset == 1121


def test_a_stop_ends_the_wait_and_what_is_known_is_written(rig: Rig) -> None:
    rig.add_sync(T0, 120, 1120)
    rig.commit(130)
    rig.time.is_stopping = True
    assert rig.seconds() < 1
    assert rig.last.downstream_offset == 1121
