"""Which groups are followed, and what is written for them on the target."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.mirror.checkpoints import CommittedOffset
from sparkmirror.mirror.filters import DefaultGroupFilter, DefaultTopicFilter
from sparkmirror.mirror.group_offsets import (
    GroupListing,
    GroupPlan,
    GroupSelection,
    GroupState,
    NotFollowed,
    NotWritten,
    plan_group_offsets,
    select_consuming,
    select_groups,
)
from sparkmirror.mirror.records import Checkpoint
from sparkmirror.types import TopicPartition

GROUPS = DefaultGroupFilter(re.compile(".*"), re.compile("console-consumer-.*|connect-.*|__.*"))
TOPICS = DefaultTopicFilter(re.compile("topic.*"), None)
TP = TopicPartition("a.topic", 0)
OTHER = TopicPartition("a.topic", 1)


@pytest.mark.parametrize(
    ("listing", "expected"),
    [
        pytest.param(GroupListing("g"), None, id="old broker"),
        pytest.param(GroupListing("g", "consumer", "Classic"), None, id="classic"),
        pytest.param(GroupListing("g", "consumer", "Consumer"), None, id="consumer"),
        pytest.param(GroupListing("g", "", "classic"), None, id="only commits, never joins"),
        pytest.param(
            GroupListing("g", "connect", "classic"), NotFollowed.NO_CONSUMER_GROUP, id="Connect"
        ),
        pytest.param(
            GroupListing("g", "share", "Share"), NotFollowed.NO_CONSUMER_GROUP, id="share"
        ),
        pytest.param(
            GroupListing("g", "streams", "Streams"), NotFollowed.NO_CONSUMER_GROUP, id="streams"
        ),
        pytest.param(
            GroupListing("g", "consumer", "share"), NotFollowed.NO_CONSUMER_GROUP, id="by type"
        ),
        pytest.param(GroupListing("connect-g"), NotFollowed.EXCLUDED, id="excluded"),
    ],
)
def test_consumer_groups_are_followed(listing: GroupListing, expected: NotFollowed | None) -> None:
    selection = select_groups([listing], GROUPS)
    if expected is None:
        assert selection == GroupSelection((listing.group,), {})
    else:
        assert selection == GroupSelection((), {listing.group: expected})


def test_groups_without_a_topic_that_is_copied_are_not_followed() -> None:
    committed = {
        "one of two": [TopicPartition("other", 0), TopicPartition("topic1", 3)],
        "none": [TopicPartition("other", 0)],
        "nothing committed": [],
    }
    assert select_consuming(committed, TOPICS) == GroupSelection(
        ("one of two",),
        {"none": NotFollowed.NO_TOPIC, "nothing committed": NotFollowed.NO_TOPIC},
    )


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("Empty", GroupState.EMPTY),
        ("Dead", GroupState.ABSENT),
        ("Stable", GroupState.ACTIVE),
        ("PreparingRebalance", GroupState.ACTIVE),
        ("CompletingRebalance", GroupState.ACTIVE),
        ("Assigning", GroupState.ACTIVE),
        ("Reconciling", GroupState.ACTIVE),
        ("", GroupState.ACTIVE),
        ("something new", GroupState.ACTIVE),
    ],
)
def test_every_state_but_two_means_active(text: str, state: GroupState) -> None:
    assert GroupState.parse(text) is state


def checkpoint(downstream: int, tp: TopicPartition = TP, metadata: str = "") -> Checkpoint:
    return Checkpoint("g", *tp, 1000, downstream, metadata)


def plan(
    checkpoints: dict[TopicPartition, Checkpoint],
    state: GroupState | None,
    offsets: dict[TopicPartition, int | None] | None,
) -> GroupPlan:
    plans = plan_group_offsets(
        ["g"],
        {"g": checkpoints},
        {} if state is None else {"g": state},
        {} if offsets is None else {"g": offsets},
    )
    return plans["g"]


@pytest.mark.parametrize(
    ("target_offset", "expected"),
    [
        pytest.param(100, None, id="behind: written"),
        pytest.param(101, NotWritten.UNCHANGED, id="same"),
        pytest.param(102, NotWritten.ALREADY_AHEAD, id="ahead"),
        pytest.param(0, None, id="at the start: written"),
    ],
)
def test_offset_on_the_target_never_goes_back(
    target_offset: int, expected: NotWritten | None
) -> None:
    result = plan({TP: checkpoint(101)}, GroupState.EMPTY, {TP: target_offset})
    if expected is None:
        assert result == GroupPlan({TP: CommittedOffset(101)}, {})
    else:
        assert result == GroupPlan({}, {TP: expected})


def test_partitions_are_judged_one_by_one() -> None:
    new = TopicPartition("a.topic", 2)
    checkpoints = {TP: checkpoint(101, metadata="m"), OTHER: checkpoint(51), new: checkpoint(7)}
    result = plan(checkpoints, GroupState.EMPTY, {TP: 100, OTHER: 60})
    assert result.write == {TP: CommittedOffset(101, "m"), new: CommittedOffset(7)}
    assert result.kept == {OTHER: NotWritten.ALREADY_AHEAD}
    assert result.reset_by_others == ()


@pytest.mark.parametrize("offset", [None, -1])
def test_offset_that_others_reset_is_written_and_told(offset: int | None) -> None:
    result = plan({TP: checkpoint(101)}, GroupState.EMPTY, {TP: offset})
    assert result == GroupPlan({TP: CommittedOffset(101)}, {}, reset_by_others=(TP,))


def test_group_that_does_not_exist_gets_all_its_checkpoints() -> None:
    result = plan({TP: checkpoint(101), OTHER: checkpoint(0)}, GroupState.ABSENT, None)
    assert result == GroupPlan({TP: CommittedOffset(101), OTHER: CommittedOffset(0)}, {})


@pytest.mark.parametrize(
    ("checkpoints", "state", "offsets", "reason"),
    [
        pytest.param({}, GroupState.EMPTY, {}, NotWritten.NO_CHECKPOINT, id="no checkpoint"),
        pytest.param({TP: checkpoint(1)}, GroupState.ACTIVE, {}, NotWritten.ACTIVE, id="active"),
        pytest.param({TP: checkpoint(1)}, None, {}, NotWritten.NOT_DESCRIBED, id="not described"),
        pytest.param(
            {TP: checkpoint(1)}, GroupState.EMPTY, None, NotWritten.OFFSETS_UNREAD, id="unread"
        ),
    ],
)
def test_group_is_not_touched(
    checkpoints: dict[TopicPartition, Checkpoint],
    state: GroupState | None,
    offsets: dict[TopicPartition, int | None] | None,
    reason: NotWritten,
) -> None:
    assert plan(checkpoints, state, offsets) == GroupPlan({}, {}, reason=reason)


def test_every_group_gets_a_result_even_without_checkpoints() -> None:
    plans = plan_group_offsets(
        ["new", "g"],
        {"g": {TP: checkpoint(3)}, "not ours": {TP: checkpoint(3)}},
        {"g": GroupState.ABSENT, "new": GroupState.EMPTY},
        {},
    )
    assert list(plans) == ["new", "g"]
    assert plans["new"].reason is NotWritten.NO_CHECKPOINT
    assert plans["g"].write == {TP: CommittedOffset(3)}


partitions = st.integers(0, 4).map(lambda partition: TopicPartition("a.topic", partition))
offsets = st.integers(0, 9)


@given(
    st.dictionaries(partitions, offsets),
    st.none() | st.sampled_from(list(GroupState)),
    st.none() | st.dictionaries(partitions, offsets),
)
def test_no_plan_rewinds_or_touches_active_groups_and_each_partition_is_explained(
    translated: dict[TopicPartition, int],
    state: GroupState | None,
    found: dict[TopicPartition, int | None] | None,
) -> None:
    result = plan({tp: checkpoint(offset, tp) for tp, offset in translated.items()}, state, found)
    if state in (None, GroupState.ACTIVE):
        assert not result.write
    for tp, written in result.write.items():
        assert written.next_offset == translated[tp]
        before = (found or {}).get(tp)
        assert before is None or written.next_offset > before
    if result.reason is None:
        assert set(result.write) | set(result.kept) == set(translated)
        assert not set(result.write) & set(result.kept)
    else:
        assert not result.kept
