"""Fifty groups fail over: exactly with sparkmirror, back to the last offset sync with MM2."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sparkmirror.demo.reading import RecordContent
from sparkmirror.types import TopicPartition
from tests.failover.figures import Figures
from tests.failover.groups import GROUPS, Offsets, read_on
from tests.failover.worlds import NAMES, Worlds, mirrored_worlds, remote

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(300)]

REAL_GROUPS = GROUPS[::5]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    with mirrored_worlds(tmp_path_factory.mktemp("failover")) as found:
        yield found


def test_groups_stand_on_records_and_between_them(worlds: Worlds) -> None:
    """Otherwise the others prove less than they say."""
    assert len(worlds.offsets) == 50
    between = {name: _places_between_records(worlds, name) for name in NAMES}
    assert between["orders"] == 0
    assert between["profiles"] > 50
    assert between["payments"] > 50
    assert _places_before_records(worlds, "profiles") > 0


def _places_between_records(worlds: Worlds, topic: str) -> int:
    """In gaps, on aborted records and on markers, also on those after the last record."""
    visible = {
        at: {record.offset for record in records} for at, records in worlds.records[topic].items()
    }
    ends = {at: max(offsets) + 1 for at, offsets in visible.items()}
    return sum(
        offset != ends[tp.partition] and offset not in visible[tp.partition]
        for places in worlds.offsets.values()
        for tp, offset in places.items()
        if tp.topic == topic
    )


def _places_before_records(worlds: Worlds, topic: str) -> int:
    """Where compaction has taken away what the partition began with."""
    firsts = {at: records[0].offset for at, records in worlds.records[topic].items()}
    return sum(
        offset < firsts[tp.partition]
        for places in worlds.offsets.values()
        for tp, offset in places.items()
        if tp.topic == topic
    )


@pytest.mark.parametrize("engine", ["sparkmirror", "mm2"])
def test_target_holds_the_same_records(worlds: Worlds, engine: str) -> None:
    found = worlds.targets[engine].records
    for name in NAMES:
        for at, records in worlds.records[name].items():
            copies = [record.content for record in found[remote(name)][at]]
            assert copies == [record.content for record in records], (name, at)


def test_nothing_is_read_again_and_nothing_is_missed(worlds: Worlds) -> None:
    moves = worlds.targets["sparkmirror"].moves
    assert [move for move in moves if move.again or move.missed or not move.has_offset] == []
    assert Figures.of(moves) == Figures(50, again=0, missed=0, groups_again=0, without_offset=0)


def test_mirror_maker_2_misses_nothing_and_reads_much_again(worlds: Worlds) -> None:
    """What ours is compared with; if it became exact, the documents would be wrong."""
    figures = Figures.of(worlds.targets["mm2"].moves)
    assert figures.missed == 0
    assert figures.again > 1_000


def test_consumers_go_on_with_the_record_they_would_have_read_next(worlds: Worlds) -> None:
    target, names = worlds.targets["sparkmirror"].cluster, [remote(name) for name in NAMES]
    with ThreadPoolExecutor(5) as pool:
        found = list(pool.map(lambda group: read_on(target, group, names), REAL_GROUPS))
    for group, contents in zip(REAL_GROUPS, found, strict=True):
        assert contents == _unread(worlds, worlds.offsets, group), group


def _unread(
    worlds: Worlds, offsets: Offsets, group: str
) -> dict[TopicPartition, list[RecordContent]]:
    return {
        TopicPartition(remote(tp.topic), tp.partition): [
            record.content
            for record in worlds.records[tp.topic][tp.partition]
            if record.offset >= offset
        ]
        for tp, offset in offsets[group].items()
    }
