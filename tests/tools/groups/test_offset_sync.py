"""Group offset sync from the checkpoints topic: what is written, and why the rest is not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import pytest

from sparkmirror.batches.records import Record
from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.patterns.java_regex import compile_patterns
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.policy import DefaultReplicationPolicy
from sparkmirror.mirror.records import Checkpoint, UnsupportedRecordError
from sparkmirror.tools.groups.offset_sync import GroupTool, SyncOutcome, SyncRow, SyncSettings
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.admin import TopicView
from sparkmirror.wire.admin.group_admin import DescribedGroup, GroupOffset
from sparkmirror.wire.protocol.error_codes import UNKNOWN_MEMBER_ID, broker_error

ORDERS = TopicPartition("us.orders", 0)
TOPIC = "us.checkpoints.internal"


class FakeTarget:
    """Groups of the target; a group that is not in `offsets` does not exist."""

    def __init__(self) -> None:
        self.topics = {TOPIC: TopicView(1, b"")}
        self.offsets: dict[str, dict[TopicPartition, GroupOffset] | KafkaError] = {}
        self.states: dict[str, DescribedGroup] = {}
        self.write_errors: dict[TopicPartition, KafkaError] = {}
        self.end: int | KafkaError = 1 << 60
        self.written: list[tuple[str, Mapping[TopicPartition, tuple[int, str]]]] = []

    def list_topics(self) -> Mapping[str, TopicView]:
        return self.topics

    def describe_groups(self, group_ids: Iterable[str]) -> dict[str, DescribedGroup]:
        return {group: self.states.get(group) or self._state(group) for group in group_ids}

    def _state(self, group: str) -> DescribedGroup:
        return DescribedGroup("Empty" if group in self.offsets else "Dead")

    def committed_offsets(
        self, group_ids: Iterable[str]
    ) -> dict[str, dict[TopicPartition, GroupOffset] | KafkaError]:
        return {group: self.offsets[group] for group in group_ids}

    def end_offsets(
        self, partitions: Iterable[TopicPartition], seconds: float | None = None
    ) -> dict[TopicPartition, int | KafkaError]:
        return dict.fromkeys(partitions, self.end)

    def alter_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, tuple[int, str]]
    ) -> dict[TopicPartition, KafkaError | None]:
        self.written.append((group_id, dict(offsets)))
        return {tp: self.write_errors.get(tp) for tp in offsets}


class FakeFollower:
    """Records of the checkpoints topic, round by round."""

    def __init__(self, *rounds: Sequence[Record]) -> None:
        self.restarted = False
        self.rounds = list(rounds)

    def catch_up(self, seconds: float) -> Sequence[Record]:
        assert seconds > 0
        return self.rounds.pop(0) if self.rounds else []


def checkpoint(group: str, offset: int, tp: TopicPartition = ORDERS) -> Record:
    made = Checkpoint(group, *tp, offset * 10, offset, "meta")
    return Record(0, 0, made.encode_key(), made.encode_value())


def make(target: FakeTarget, follower: FakeFollower, groups: str = ".*") -> GroupTool:
    client = ClientConfig("eu", ("nowhere:1",))
    pattern = compile_patterns(groups.split(","))
    assert pattern is not None
    settings = SyncSettings(
        tuple(groups.split(",")),
        pattern,
        "us",
        DefaultReplicationPolicy(),
        client,
        client,
        1000,
    )
    return GroupTool(settings, target, follower)


def outcomes(rows: Iterable[SyncRow]) -> list[tuple[str, SyncOutcome, str]]:
    return [(row.group, row.outcome, row.reason) for row in rows]


def test_a_new_group_gets_its_last_checkpoint() -> None:
    target = FakeTarget()
    rows = make(target, FakeFollower([checkpoint("g", 3), checkpoint("g", 5)])).round()
    assert rows == [
        SyncRow("g", SyncOutcome.WRITTEN, "", ORDERS, upstream_offset=50, before=None, offset=5)
    ]
    assert target.written == [("g", {ORDERS: (5, "meta")})]


@pytest.mark.parametrize(
    ("before", "outcome", "reason"),
    [
        (4, SyncOutcome.WRITTEN, ""),
        (5, SyncOutcome.KEPT, "the offset on the target is the same"),
        (6, SyncOutcome.KEPT, "the offset on the target is further"),
        (-1, SyncOutcome.WRITTEN, "its offset was deleted on the target"),
    ],
)
def test_an_empty_group_never_goes_back(before: int, outcome: SyncOutcome, reason: str) -> None:
    target = FakeTarget()
    target.offsets["g"] = {ORDERS: GroupOffset(before)}
    (row,) = make(target, FakeFollower([checkpoint("g", 5)])).round()
    assert (row.outcome, row.reason) == (outcome, reason)
    assert row.before == (None if before < 0 else before)
    assert len(target.written) == (outcome is SyncOutcome.WRITTEN)


@pytest.mark.parametrize("state", ["Stable", "PreparingRebalance", "Reconciling", "NewWord"])
def test_a_group_with_members_is_left_alone(state: str) -> None:
    target = FakeTarget()
    target.states["g"] = DescribedGroup(state)
    rows = make(target, FakeFollower([checkpoint("g", 5)])).round()
    active = "the group has members on the target"
    assert outcomes(rows) == [("g", SyncOutcome.NOT_WRITTEN, active)]
    assert target.written == []


def test_a_group_that_comes_into_use_before_the_write_counts_as_active() -> None:
    target = FakeTarget()
    target.write_errors[ORDERS] = broker_error("commit", UNKNOWN_MEMBER_ID)
    (row,) = make(target, FakeFollower([checkpoint("g", 5)])).round()
    assert (row.outcome, row.reason) == (
        SyncOutcome.NOT_WRITTEN,
        "the group has members on the target",
    )


def test_errors_are_reported_group_by_group_and_partition_by_partition() -> None:
    target = FakeTarget()
    gone = TopicPartition("us.gone", 0)
    target.states["dark"] = DescribedGroup("", KafkaError("no describe"))
    target.offsets["mute"] = KafkaError("no fetch")
    target.write_errors[gone] = broker_error("commit", 3)
    records = [checkpoint(group, 5) for group in ("dark", "mute", "fine")]
    rows = make(target, FakeFollower([*records, checkpoint("fine", 2, gone)])).round()
    assert outcomes(rows) == [
        (
            "dark",
            SyncOutcome.NOT_WRITTEN,
            "whether the group has members on the target is unknown: no describe",
        ),
        ("fine", SyncOutcome.NOT_WRITTEN, "commit: UNKNOWN_TOPIC_OR_PARTITION"),
        ("fine", SyncOutcome.WRITTEN, ""),
        (
            "mute",
            SyncOutcome.NOT_WRITTEN,
            "the group's offsets on the target could not be read: no fetch",
        ),
    ]


def test_only_the_requested_groups_are_changed() -> None:
    target = FakeTarget()
    records = [checkpoint(group, 5) for group in ("a1", "a2", "b1", "b2", "c")]
    rows = make(target, FakeFollower(records), "a.,b1,none,x.*").round()
    assert [row.group for row in rows] == ["a1", "a2", "b1", "none"]
    assert rows[-1].reason == "the group has no checkpoint yet"


def test_a_dry_run_writes_nothing() -> None:
    target = FakeTarget()
    rows = make(target, FakeFollower([checkpoint("g", 5)])).round(dry_run=True)
    assert outcomes(rows) == [("g", SyncOutcome.WOULD_WRITE, "")]
    assert target.written == []


def test_later_rounds_add_to_what_is_known() -> None:
    target = FakeTarget()
    second = TopicPartition("us.orders", 1)
    tool = make(target, FakeFollower([checkpoint("g", 5)], [checkpoint("g", 2, second)]))
    tool.round()
    assert [row.offset for row in tool.round()] == [5, 2]


def test_tombstones_and_a_topic_that_starts_again_remove_checkpoints() -> None:
    target = FakeTarget()
    first, second = checkpoint("g", 5), checkpoint("h", 6)
    follower = FakeFollower([first, second], [Record(2, 0, first.key, None)], [])
    tool = make(target, follower)
    assert {row.group for row in tool.round()} == {"g", "h"}
    assert {row.group for row in tool.round()} == {"h"}
    follower.restarted = True
    assert tool.round() == []


def test_records_that_are_no_checkpoints_are_skipped_and_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad = Record(7, 0, b"\x00", b"\x00\x00junk")
    rows = make(FakeTarget(), FakeFollower([bad, bad, checkpoint("g", 5)])).round()
    assert [row.group for row in rows] == ["g"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "offset 7" in caplog.text


def test_a_checkpoint_of_a_later_version_ends_the_tool() -> None:
    good = checkpoint("g", 5)
    newer = Record(0, 0, good.key, b"\x00\x01" + bytes(18))
    with pytest.raises(UnsupportedRecordError, match="version 1"):
        make(FakeTarget(), FakeFollower([newer])).round()


@pytest.mark.parametrize(
    ("topics", "hint"),
    [
        ([], "it has no checkpoints of any source"),
        (["orders", "eu.checkpoints.internal"], "it has eu.checkpoints.internal"),
    ],
)
def test_a_missing_topic_is_reported_with_the_existing_ones(topics: list[str], hint: str) -> None:
    target = FakeTarget()
    target.topics = {name: TopicView(1, b"") for name in topics}
    with pytest.raises(KafkaError, match=re.escape(hint)):
        make(target, FakeFollower()).round()


def test_rows_have_the_same_members_in_json_for_every_outcome() -> None:
    whole = SyncRow("g", SyncOutcome.NOT_WRITTEN, "why").as_json()
    part = SyncRow("g", SyncOutcome.WRITTEN, "", ORDERS, 50, None, 5).as_json()
    assert whole.keys() == part.keys()
    assert part == {
        "group": "g",
        "topic": "us.orders",
        "partition": 0,
        "source_offset": 50,
        "before": None,
        "offset": 5,
        "result": "written",
        "reason": None,
    }
