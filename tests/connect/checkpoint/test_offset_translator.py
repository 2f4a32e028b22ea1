"""Offsets are translated exactly where the map knows, else as MirrorMaker 2 does."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from sparkmirror.batches.records import Record
from sparkmirror.connect.checkpoint.offset_translator import OffsetTranslator, make_translator
from sparkmirror.errors import KafkaError, TransportError
from sparkmirror.mirror.policy import DefaultReplicationPolicy
from sparkmirror.mirror.records import OffsetSync
from sparkmirror.mirror.translation.offset_map_chunks import Chunk, ChunkKey, ChunkStart, OffsetRun
from sparkmirror.mirror.translation.offset_sync_store import TOO_OLD, UNKNOWN, Translation
from sparkmirror.mirror.translation.offsets import OffsetPair
from sparkmirror.types import TopicPartition
from tests.connect.group_fakes import FakeFollower
from tests.flows import make_flow

TP = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)


class Rig:
    """A translator and its two topics."""

    def __init__(self, *, must_read_to_end: bool = False) -> None:
        self.syncs, self.map = FakeFollower("syncs"), FakeFollower("map")
        self.translator = OffsetTranslator(self.syncs, self.map, must_read_to_end=must_read_to_end)

    def sync(self, upstream: int, downstream: int, tp: TopicPartition = TP) -> None:
        sync = OffsetSync(*tp, upstream, downstream)
        self.syncs.new.append(Record(0, 0, sync.encode_key(), sync.encode_value()))

    def chunk(self, *runs: OffsetRun, start: ChunkStart = ChunkStart.SESSION) -> None:
        chunk = Chunk(start, runs)
        key = ChunkKey(*TP, chunk.first).encode()
        self.map.new.append(Record(0, 0, key, chunk.encode()))

    def read(self) -> None:
        self.translator.catch_up(1.0)

    def position(self, upstream: int, tp: TopicPartition = TP) -> int | None:
        return self.translator.translate(tp, upstream).downstream_offset


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_nothing_is_known_before_the_first_read(rig: Rig) -> None:
    rig.sync(0, 0)
    assert rig.translator.translate(TP, 5) == UNKNOWN
    rig.read()
    assert rig.translator.translate(TP, 5) == Translation.to(1)
    assert rig.translator.translate(OTHER, 5) == UNKNOWN


def test_the_map_is_exact_where_syncs_are_coarse(rig: Rig) -> None:
    rig.sync(0, 100)
    rig.chunk(OffsetRun(0, 100, 50), OffsetRun(60, 150, 40))
    rig.read()
    assert [rig.position(at) for at in (0, 37, 50, 55, 61, 100)] == [100, 137, 150, 150, 151, 190]
    assert rig.translator.is_exact(TP, 37)


def test_mirror_maker_2s_rule_holds_where_there_is_no_map(rig: Rig) -> None:
    rig.sync(10, 110)
    rig.read()
    assert (rig.position(10), rig.position(99)) == (110, 111)
    assert rig.translator.translate(TP, 9) == TOO_OLD
    assert not rig.translator.is_exact(TP, 99)


def test_positions_before_the_map_are_left_to_the_syncs(rig: Rig) -> None:
    rig.sync(0, 1000)
    rig.chunk(OffsetRun(500, 1500, 100))
    rig.read()
    assert rig.position(400) == 1001
    assert rig.position(550) == 1550
    assert [rig.translator.is_exact(TP, at) for at in (400, 550)] == [False, True]


def test_a_sync_beyond_the_maps_end_tells_that_others_copied_since(rig: Rig) -> None:
    rig.chunk(OffsetRun(0, 0, 100))
    rig.sync(300, 310)
    rig.read()
    assert (rig.position(100), rig.position(200), rig.position(400)) == (100, 100, 311)
    assert not rig.translator.is_exact(TP, 400)


def test_a_sync_of_a_second_copy_that_the_map_does_not_know_is_not_used(rig: Rig) -> None:
    # Records from 50 on are copied again, to 150 and later: 60 is not there a second time yet.
    rig.chunk(OffsetRun(0, 0, 100))
    rig.sync(50, 150)
    rig.read()
    assert (rig.position(60), rig.position(120)) == (60, 100)


def test_a_second_copy_is_used_when_it_has_caught_up(rig: Rig) -> None:
    rig.chunk(OffsetRun(0, 0, 100))
    rig.chunk(OffsetRun(50, 100, 10))
    rig.sync(60, 110)
    rig.read()
    assert (rig.position(55), rig.position(130)) == (55, 100)
    rig.chunk(OffsetRun(50, 100, 60))
    rig.read()
    assert (rig.position(55), rig.position(110)) == (105, 160)


def test_without_earlier_checkpoints_only_the_newest_sync_counts_at_first() -> None:
    rig = Rig(must_read_to_end=True)
    rig.sync(0, 0)
    rig.sync(100, 100)
    rig.read()
    assert rig.translator.translate(TP, 50) == TOO_OLD
    rig.sync(200, 200)
    rig.read()
    assert rig.position(150) == 101


def test_a_topic_that_starts_anew_makes_earlier_records_void(rig: Rig) -> None:
    rig.sync(0, 100)
    rig.chunk(OffsetRun(0, 100, 50))
    rig.read()
    rig.syncs.restarted = rig.map.restarted = True
    rig.sync(10, 10, OTHER)
    rig.read()
    assert rig.translator.translate(TP, 20) == UNKNOWN
    assert rig.position(10, OTHER) == 10


@pytest.mark.parametrize("broken", ["syncs", "map"])
def test_one_topic_that_cannot_be_read_does_not_stop_the_other(rig: Rig, broken: str) -> None:
    rig.sync(0, 100)
    rig.chunk(OffsetRun(0, 100, 50))
    getattr(rig, broken).error = TransportError(f"read topic '{broken}': cut")
    with pytest.raises(KafkaError, match=f"^read topic '{broken}': cut$"):
        rig.read()
    assert rig.position(30) == (130 if broken == "syncs" else 101)


def test_both_topics_that_cannot_be_read_are_named(rig: Rig) -> None:
    rig.syncs.error, rig.map.error = TransportError("first"), TransportError("second")
    with pytest.raises(KafkaError, match=r"first\nsecond"):
        rig.read()


def test_malformed_records_are_skipped_counted_and_named_once(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    good = OffsetSync(*TP, 7, 8)
    chunk = Chunk(ChunkStart.SESSION, (OffsetRun(0, 0, 5),))
    rig.syncs.new += [
        Record(0, 0, b"\x00", good.encode_value()),
        Record(1, 0, None, good.encode_value()),
        Record(2, 0, good.encode_key(), b"short"),
        Record(3, 0, good.encode_key(), None),
        Record(4, 0, good.encode_key(), good.encode_value()),
    ]
    rig.map.new += [
        Record(0, 0, b"\x00", chunk.encode()),
        Record(1, 0, ChunkKey(*TP, chunk.first).encode(), b"\x09\x00"),
        Record(2, 0, ChunkKey(*TP, chunk.first).encode(), None),
    ]
    with caplog.at_level(logging.WARNING):
        rig.read()
    assert rig.position(7) == 8
    assert rig.translator.malformed == {"syncs": 3, "map": 2}
    assert len(caplog.messages) == 2
    assert "offset 0 of 'syncs' cannot be read" in caplog.messages[0]


def test_pruning_names_the_chunks_that_nobody_needs(rig: Rig) -> None:
    rig.chunk(OffsetRun(0, 0, 100))
    rig.chunk(OffsetRun(100, 100, 100), start=ChunkStart.CONTINUES)
    rig.chunk(OffsetRun(200, 200, 100), start=ChunkStart.CONTINUES)
    rig.read()
    keys = rig.translator.prune({TP: 150, OTHER: 3})
    assert keys == [ChunkKey(*TP, OffsetPair(0, 0)).encode()]
    assert rig.position(250) == 250


def test_both_followers_end_with_it(rig: Rig) -> None:
    rig.translator.cancel()
    rig.translator.close()
    assert rig.syncs.has_given_up
    assert rig.map.has_given_up
    assert rig.syncs.is_closed
    assert rig.map.is_closed


@pytest.mark.parametrize(
    ("location", "topic"),
    [("source", "mm2-offset-syncs.b.internal"), ("target", "mm2-offset-syncs.a.internal")],
)
def test_the_topics_of_a_flow(tmp_path: Path, location: str, topic: str) -> None:
    flow = make_flow(tmp_path, {"offset-syncs.topic.location": location})
    translator = make_translator(
        flow.checkpoint, DefaultReplicationPolicy(), must_read_to_end=False
    )
    assert translator._sync_follower.topic == topic
    assert translator._map_follower.topic == "mm2-offset-map.a.internal"
    translator.close()
