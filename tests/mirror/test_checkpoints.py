"""Which checkpoints are written, with the cases of Kafka's MirrorCheckpointTaskTest."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.mirror.checkpoints import (
    CheckpointPlan,
    CheckpointRules,
    CheckpointStore,
    CommittedOffset,
    NoCheckpoint,
    why_not_emitted,
)
from sparkmirror.mirror.filters import DefaultTopicFilter
from sparkmirror.mirror.policy import DefaultReplicationPolicy, IdentityReplicationPolicy
from sparkmirror.mirror.records import Checkpoint, OffsetSync
from sparkmirror.mirror.translation.offset_sync_store import OffsetSyncStore
from sparkmirror.types import TopicPartition

ACCEPT_ALL = DefaultTopicFilter(re.compile(".*"), None)
RULES = CheckpointRules(DefaultReplicationPolicy(), ACCEPT_ALL, "source1", "target2")
UPSTREAM = TopicPartition("topic1", 2)
DOWNSTREAM = TopicPartition("source1.topic1", 2)


@pytest.mark.parametrize(
    ("upstream", "downstream"),
    [
        (TopicPartition("topic3", 4), TopicPartition("source1.topic3", 4)),
        (TopicPartition("target2.topic3", 5), TopicPartition("topic3", 5)),
        (TopicPartition("source6.topic7", 8), TopicPartition("source1.source6.topic7", 8)),
        (TopicPartition("target2.source6.topic7", 8), TopicPartition("topic7", 8)),
    ],
    ids=str,
)
def test_partitions_are_renamed(upstream: TopicPartition, downstream: TopicPartition) -> None:
    assert RULES.rename_topic_partition(upstream) == downstream


def test_identity_policy_keeps_names() -> None:
    policy = IdentityReplicationPolicy("source1")
    rules = CheckpointRules(policy, ACCEPT_ALL, "source1", "target2")
    assert rules.rename_topic_partition(UPSTREAM) == UPSTREAM


def sync_store(
    *syncs: tuple[int, int], tp: TopicPartition = UPSTREAM, must_read_to_end: bool = False
) -> OffsetSyncStore:
    """A store that read these syncs at its start."""
    store = OffsetSyncStore(must_read_to_end)
    for upstream, downstream in syncs:
        store.add(OffsetSync(*tp, upstream, downstream))
    store.finish_load()
    return store


class Group:
    """A group whose checkpoints are made round by round."""

    def __init__(self, store: OffsetSyncStore, *last: tuple[int, int]) -> None:
        self.syncs = store
        self.checkpoints = CheckpointStore(["group1"])
        for upstream, downstream in last:
            self.checkpoints.add(Checkpoint("group1", *DOWNSTREAM, upstream, downstream))

    def round(self, committed: Mapping[TopicPartition, CommittedOffset | None]) -> CheckpointPlan:
        last = self.checkpoints.of_group("group1")
        plan = RULES.plan("group1", committed, self.syncs.translate_downstream, last)
        for checkpoint in plan.emit:
            self.checkpoints.add(checkpoint)
        return plan

    def at(self, next_offset: int) -> int | NoCheckpoint:
        """The downstream offset emitted for a position, or why none is."""
        plan = self.round({UPSTREAM: CommittedOffset(next_offset)})
        return plan.emit[0].downstream_offset if plan.emit else plan.skipped[UPSTREAM]

    def sync(self, upstream: int, downstream: int) -> None:
        self.syncs.add(OffsetSync(*UPSTREAM, upstream, downstream))


def test_checkpoint_carries_both_offsets_and_the_metadata() -> None:
    other = TopicPartition("target2.topic5", 6)
    syncs = sync_store((3, 4))
    syncs.add(OffsetSync(*other, 7, 8))
    plan = Group(syncs).round({UPSTREAM: CommittedOffset(10, "m"), other: CommittedOffset(7)})
    assert plan.emit == (
        Checkpoint("group1", "source1.topic1", 2, 10, 5, "m"),
        Checkpoint("group1", "topic5", 6, 7, 8, ""),
    )
    assert plan.skipped == {}


@pytest.mark.parametrize(
    ("committed", "reason"),
    [
        pytest.param(CommittedOffset(2), NoCheckpoint.TOO_OLD, id="before the first sync"),
        pytest.param(None, NoCheckpoint.NOTHING_COMMITTED, id="null offset"),
        pytest.param(CommittedOffset(-1), NoCheckpoint.NOTHING_COMMITTED, id="offset -1"),
    ],
)
def test_no_checkpoint_for_an_offset(
    committed: CommittedOffset | None, reason: NoCheckpoint
) -> None:
    plan = Group(sync_store((3, 4))).round({UPSTREAM: committed})
    assert plan == CheckpointPlan((), {UPSTREAM: reason})


def test_no_checkpoint_without_a_sync() -> None:
    other = TopicPartition("topic1", 3)
    plan = Group(sync_store((0, 0))).round({other: CommittedOffset(0), UPSTREAM: None})
    assert plan.skipped[other] is NoCheckpoint.UNKNOWN


def test_no_checkpoint_for_topics_the_filter_rejects() -> None:
    rules = CheckpointRules(DefaultReplicationPolicy(), DefaultTopicFilter(None, None), "a", "b")
    syncs = sync_store((0, 0))
    plan = rules.plan("g", {UPSTREAM: CommittedOffset(0)}, syncs.translate_downstream, {})
    assert plan == CheckpointPlan((), {UPSTREAM: NoCheckpoint.TOPIC_EXCLUDED})


@pytest.mark.parametrize(
    ("upstream", "downstream", "expected"),
    [
        pytest.param(100, 201, None, id="downstream moves forward"),
        pytest.param(150, 201, None, id="both move forward"),
        pytest.param(100, 200, NoCheckpoint.UNCHANGED, id="nothing moves"),
        pytest.param(150, 200, NoCheckpoint.UNCHANGED, id="only upstream moves forward"),
        pytest.param(150, 199, NoCheckpoint.GOES_BACK, id="translation got worse"),
        pytest.param(99, 199, None, id="the group went back"),
        pytest.param(99, 200, None, id="the group went back a little"),
        pytest.param(99, 300, None, id="the group went back, the target forward"),
    ],
)
def test_checkpoint_is_compared_with_the_last(
    upstream: int, downstream: int, expected: NoCheckpoint | None
) -> None:
    last = Checkpoint("g", *DOWNSTREAM, 100, 200)
    assert why_not_emitted(Checkpoint("g", *DOWNSTREAM, upstream, downstream), last) is expected


def test_first_checkpoint_is_emitted() -> None:
    assert why_not_emitted(Checkpoint("g", *DOWNSTREAM, 0, 0), None) is None


def test_checkpoint_is_emitted_once() -> None:
    group = Group(sync_store((0, 0), (100, 100)))
    assert [group.at(100), group.at(100), group.at(150), group.at(180)] == [
        100,
        NoCheckpoint.UNCHANGED,
        101,
        NoCheckpoint.UNCHANGED,
    ]


def test_syncs_that_go_back_do_not_pull_the_checkpoint_back() -> None:
    group = Group(sync_store((0, 0), (100, 100)))
    assert group.at(100) == 100
    group.sync(50, 50)
    assert group.at(110) is NoCheckpoint.GOES_BACK


def test_group_that_goes_back_pulls_its_checkpoint_back() -> None:
    group = Group(sync_store((0, 0), (100, 100)))
    assert group.at(110) == 101
    assert group.at(10) == 1


def test_restart_uses_the_checkpoints_that_exist() -> None:
    """After a restart the syncs kept are others: 370 lies after 275, which was thinned out."""
    syncs = sync_store((175, 175), (275, 275), (375, 375), (475, 475))
    assert syncs.translate_downstream(UPSTREAM, 250).downstream_offset == 176
    assert syncs.translate_downstream(UPSTREAM, 370).downstream_offset == 176
    group = Group(syncs, (250, 201))
    assert group.at(250) is NoCheckpoint.GOES_BACK
    assert group.at(370) is NoCheckpoint.GOES_BACK
    assert group.at(400) == 376


def test_restart_without_checkpoints_translates_no_old_positions() -> None:
    syncs = sync_store((175, 175), (275, 275), (375, 375), (475, 475), must_read_to_end=True)
    group = Group(syncs)
    assert group.at(400) is NoCheckpoint.TOO_OLD
    assert group.at(475) == 475


def test_store_keeps_the_last_checkpoint_of_own_groups() -> None:
    store = CheckpointStore(["mine", "also mine"])
    old, new = Checkpoint("mine", *DOWNSTREAM, 1, 1), Checkpoint("mine", *DOWNSTREAM, 0, 5)
    store.add(old)
    store.add(Checkpoint("theirs", *DOWNSTREAM, 9, 9))
    store.add(new)
    assert store.of_group("mine") == {DOWNSTREAM: new}
    assert store.of_group("also mine") == store.of_group("theirs") == {}
    assert store.by_group() == {"mine": {DOWNSTREAM: new}}


steps = st.lists(
    st.one_of(
        st.tuples(st.just("sync"), st.integers(0, 40)),
        st.tuples(st.just("commit"), st.integers(0, 40)),
        st.tuples(st.just("restart"), st.booleans().map(int)),
    ),
    max_size=60,
)


@given(steps)
def test_checkpoints_never_fall_unless_the_group_went_back(taken: list[tuple[str, int]]) -> None:
    log: list[tuple[int, int]] = [(0, 0)]
    group = Group(sync_store((0, 0)))
    position = end = 0
    last: tuple[int, int] | None = None
    for step, value in taken:
        if step == "sync":
            end += value
            log.append((end, end // 2))
            group.sync(*log[-1])
        elif step == "restart":
            kept = group.checkpoints
            group = Group(sync_store(*log[:: value + 1]))
            group.checkpoints = kept
        else:
            position = min(end, position + value)
            emitted = group.at(position)
            if isinstance(emitted, int):
                assert last is None or emitted > last[1]
                last = (position, emitted)
