"""Where a group would continue, and the most that it would read again."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from sparkmirror.errors import KafkaError
from sparkmirror.mirror.checkpoints import CheckpointRules
from sparkmirror.mirror.filters import DefaultTopicFilter
from sparkmirror.mirror.policy import DefaultReplicationPolicy
from sparkmirror.mirror.records import OffsetSync
from sparkmirror.mirror.translation.offset_sync_store import OffsetSyncStore, Translation
from sparkmirror.tools.groups.offset_translation import How, TranslatedRow, translate_group
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.group_admin import GroupOffset
from sparkmirror.wire.protocol.error_codes import broker_error

ORDERS = TopicPartition("orders", 0)
REMOTE = TopicPartition("us.orders", 0)
RULES = CheckpointRules(
    DefaultReplicationPolicy(), DefaultTopicFilter(re.compile("orders"), None), "us", "eu"
)


class FakeGroups:
    """One group and the ends of partitions, on one cluster."""

    def __init__(self, offsets: dict[TopicPartition, int] | KafkaError, end: int = 0) -> None:
        self._offsets = offsets
        self._end = end

    def committed_offsets(
        self, group_ids: Iterable[str]
    ) -> dict[str, dict[TopicPartition, GroupOffset] | KafkaError]:
        found = self._offsets
        if isinstance(found, KafkaError):
            return dict.fromkeys(group_ids, found)
        return {group: {tp: GroupOffset(at) for tp, at in found.items()} for group in group_ids}

    def end_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | KafkaError]:
        missing = broker_error("list offsets", 3)
        return dict.fromkeys(partitions, missing if self._end < 0 else self._end)


class FakeTranslator:
    """MirrorMaker 2's rule with a sync every 10 records, and a map up to `map_end`.

    The target lacks the record 50 of the source: what follows it lies one offset lower.
    """

    def __init__(self, map_end: int = 0) -> None:
        self._map_end = map_end
        self._store = OffsetSyncStore(must_read_to_end=False)
        for offset in range(20, 100, 10):
            sync = OffsetSync("orders", 0, offset, offset - (offset > 50))
            self._store.add(sync)
        self._store.finish_load()

    def is_exact(self, tp: TopicPartition, upstream_offset: int) -> bool:
        return tp == ORDERS and self._map_end > 0

    def translate(self, tp: TopicPartition, upstream_offset: int) -> Translation:
        if not self.is_exact(tp, upstream_offset):
            return self._store.translate_downstream(tp, upstream_offset)
        offset = min(upstream_offset, self._map_end)
        return Translation.to(offset - (offset > 50))


def translate(at: int, translator: FakeTranslator, end: int = 99) -> TranslatedRow:
    source, target = FakeGroups({ORDERS: at}), FakeGroups({}, end)
    (row,) = translate_group("g", RULES, translator, source, target)
    return row


@pytest.mark.parametrize(
    ("at", "target", "again"),
    [(90, 89, 0), (91, 90, 0), (95, 90, 4), (1000, 90, 909)],
    ids=["at a sync", "right after it", "between two", "far beyond the last"],
)
def test_by_the_rule_of_mm2(at: int, target: int, again: int) -> None:
    row = translate(at, FakeTranslator())
    assert (row.how, row.target_offset, row.read_again) == (How.MM2_RULE, target, again)


@pytest.mark.parametrize(
    ("at", "target", "again"),
    [(40, 40, 0), (50, 50, 0), (51, 50, 0), (52, 51, 0), (100, 99, 0), (107, 99, 7)],
    ids=["early", "at a hole", "after a hole", "later", "at the end", "not copied yet"],
)
def test_exactly(at: int, target: int, again: int) -> None:
    row = translate(at, FakeTranslator(map_end=100))
    assert (row.how, row.target_offset, row.read_again) == (How.EXACT, target, again)


@pytest.mark.parametrize(
    ("tp", "at", "reason"),
    [
        (ORDERS, 3, "the group is behind all known translations of the partition"),
        (TopicPartition("orders", 1), 3, "the partition has no translation yet"),
        (TopicPartition("private", 0), 3, "the topic filter does not accept the topic"),
    ],
)
def test_what_cannot_be_translated_says_why(tp: TopicPartition, at: int, reason: str) -> None:
    source, target = FakeGroups({tp: at}), FakeGroups({}, 99)
    (row,) = translate_group("g", RULES, FakeTranslator(), source, target)
    assert (row.how, row.reason, row.target_offset) == (How.NONE, reason, None)
    assert row.read_again is None


@pytest.mark.parametrize(
    ("on_target", "committed"),
    [({REMOTE: 31}, 31), ({REMOTE: -1}, None), ({}, None), (KafkaError("no"), None)],
    ids=["committed", "taken away", "never", "not readable"],
)
def test_where_the_group_stands_on_the_target(
    on_target: dict[TopicPartition, int] | KafkaError, committed: int | None
) -> None:
    source, target = FakeGroups({ORDERS: 40}), FakeGroups(on_target, 99)
    (row,) = translate_group("g", RULES, FakeTranslator(), source, target)
    assert row.committed == committed


def test_a_position_beyond_the_targets_end_is_no_translation() -> None:
    row = translate(95, FakeTranslator(), end=89)
    assert (row.how, row.target_offset, row.target_end_offset) == (How.NONE, None, 89)
    assert "lost records" in row.reason


def test_a_missing_remote_topic_is_reported() -> None:
    row = translate(40, FakeTranslator(), end=-1)
    assert row.reason == "list offsets: UNKNOWN_TOPIC_OR_PARTITION"
    assert row.target_end_offset is None


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ({}, "group 'g' has no committed offset on 'us'"),
        ({ORDERS: -1}, "group 'g' has no committed offset on 'us'"),
        (KafkaError("not allowed"), "not allowed"),
    ],
)
def test_a_group_without_offsets_on_the_source_is_an_error(
    offsets: dict[TopicPartition, int] | KafkaError, message: str
) -> None:
    with pytest.raises(KafkaError, match=message):
        translate_group("g", RULES, FakeTranslator(), FakeGroups(offsets), FakeGroups({}))


def test_json_has_a_member_for_everything() -> None:
    assert translate(95, FakeTranslator()).as_json() == {
        "topic": "orders",
        "partition": 0,
        "source_offset": 95,
        "target_topic": "us.orders",
        "target_offset": 90,
        "target_end_offset": 99,
        "translation": "MM2's rule",
        "read_again_at_most": 4,
        "committed_on_target": None,
        "reason": None,
    }
