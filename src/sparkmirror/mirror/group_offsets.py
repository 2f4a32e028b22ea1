"""Which consumer groups are followed, and which offsets they get on the target.

Runs on: worker, in the checkpoint connector. Pure.
Mirrors: the group rules of MirrorCheckpointConnector and MirrorCheckpointTask (4.4).

Offsets on the target never move back, and a group that is in use there is left alone. MirrorMaker 2
also tries to write to groups in use and relies on the broker to reject it; here they are skipped
with a reason. A group may still become active between check and write: the broker's
UNKNOWN_MEMBER_ID then also means ACTIVE.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from sparkmirror.mirror.checkpoints import CommittedOffset
from sparkmirror.mirror.filters import GroupFilter, TopicFilter
from sparkmirror.mirror.records import Checkpoint
from sparkmirror.types import TopicPartition

_FOLLOWED_TYPES = frozenset({"classic", "consumer"})
_FOLLOWED_PROTOCOLS = frozenset({"consumer", ""})


class GroupListing(NamedTuple):
    """A group as in a ListGroups response; old brokers return no type."""

    group: str
    protocol_type: str = "consumer"
    group_type: str = ""


class NotFollowed(enum.Enum):
    """Why a group of the source gets no checkpoints."""

    NO_CONSUMER_GROUP = "it belongs to another protocol: Connect, share groups, streams groups"
    EXCLUDED = "`groups` and `groups.exclude` do not accept it"
    NO_TOPIC = "it has no offset in any topic that the topic filter accepts"


@dataclass(frozen=True, slots=True)
class GroupSelection:
    """The groups that are followed, in the order given, and why the others are not."""

    groups: tuple[str, ...]
    rejected: Mapping[str, NotFollowed]


def select_groups(listings: Iterable[GroupListing], group_filter: GroupFilter) -> GroupSelection:
    """First step of discovery: consumer groups that the filter accepts, in any state."""
    groups: list[str] = []
    rejected: dict[str, NotFollowed] = {}
    for listing in listings:
        if not is_consumer_group(listing):
            rejected[listing.group] = NotFollowed.NO_CONSUMER_GROUP
        elif not group_filter.should_replicate_group(listing.group):
            rejected[listing.group] = NotFollowed.EXCLUDED
        else:
            groups.append(listing.group)
    return GroupSelection(tuple(groups), rejected)


def select_consuming(
    committed: Mapping[str, Iterable[TopicPartition]], topic_filter: TopicFilter
) -> GroupSelection:
    """Second step: of these groups and their partitions, those with accepted topics.

    As in MirrorMaker 2, only the topic filter decides: an internal topic or a cycle is accepted
    here, but never gets a checkpoint.
    """
    groups: list[str] = []
    rejected: dict[str, NotFollowed] = {}
    for group, partitions in committed.items():
        if any(topic_filter.should_replicate_topic(tp.topic) for tp in partitions):
            groups.append(group)
        else:
            rejected[group] = NotFollowed.NO_TOPIC
    return GroupSelection(tuple(groups), rejected)


def is_consumer_group(listing: GroupListing) -> bool:
    """Whether offsets of the group are those of consumers."""
    # Brokers before KIP-848 return no type: all their groups are classic.
    group_type = listing.group_type.lower() or "classic"
    return group_type in _FOLLOWED_TYPES and listing.protocol_type in _FOLLOWED_PROTOCOLS


class GroupState(enum.Enum):
    """The state of a group on the target: whether its offsets may be written."""

    EMPTY = "Empty"
    ABSENT = "Dead"
    ACTIVE = "active"

    @classmethod
    def parse(cls, state: str) -> GroupState:
        """Parse DescribeGroups' state; every state except Empty and Dead may have members.

        A broker that returns GROUP_ID_NOT_FOUND instead means Dead.
        """
        return {"Empty": cls.EMPTY, "Dead": cls.ABSENT}.get(state, cls.ACTIVE)


class NotWritten(enum.Enum):
    """Why a group, or one of its partitions, keeps its offset on the target."""

    NO_CHECKPOINT = "the group has no checkpoint yet"
    ACTIVE = "the group has members on the target"
    NOT_DESCRIBED = "whether the group has members on the target is unknown"
    OFFSETS_UNREAD = "the group's offsets on the target could not be read"
    UNCHANGED = "the offset on the target is the same"
    ALREADY_AHEAD = "the offset on the target is further"
    BEYOND_END = "the checkpoint is beyond the end of the partition, which lost records"


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """The offsets for one group, by downstream partition.

    `reason` is about the whole group: then nothing else is set. `reset_by_others` lists partitions
    whose offset someone else deleted (-1); they are written, and the caller should warn.
    """

    write: Mapping[TopicPartition, CommittedOffset]
    kept: Mapping[TopicPartition, NotWritten]
    reset_by_others: tuple[TopicPartition, ...] = ()
    reason: NotWritten | None = None


def plan_group_offsets(
    groups: Iterable[str],
    checkpoints: Mapping[str, Mapping[TopicPartition, Checkpoint]],
    target_states: Mapping[str, GroupState],
    target_offsets: Mapping[str, Mapping[TopicPartition, int | None]],
    target_ends: Mapping[TopicPartition, int] = MappingProxyType({}),
) -> dict[str, GroupPlan]:
    """Decide for each group what to write on the target.

    `checkpoints` is the result of `CheckpointStore.by_group`. States and offsets must have been
    read on the target in this round, states first; leave out groups whose reading failed: nothing
    is written for them. An ABSENT group needs no offsets. The end of partitions that are not in
    `target_ends` is unknown. Write each plan with one request.
    """
    return {
        group: _plan_group(
            checkpoints.get(group, {}),
            target_states.get(group),
            target_offsets.get(group),
            target_ends,
        )
        for group in groups
    }


def _plan_group(
    checkpoints: Mapping[TopicPartition, Checkpoint],
    state: GroupState | None,
    offsets: Mapping[TopicPartition, int | None] | None,
    ends: Mapping[TopicPartition, int],
) -> GroupPlan:
    reason = _why_untouched(checkpoints, state, offsets)
    if reason is not None:
        return GroupPlan({}, {}, reason=reason)
    found = offsets or {}
    write: dict[TopicPartition, CommittedOffset] = {}
    kept: dict[TopicPartition, NotWritten] = {}
    for tp, checkpoint in checkpoints.items():
        verdict = _why_kept(checkpoint, found.get(tp), ends.get(tp))
        if verdict is None:
            write[tp] = CommittedOffset(checkpoint.downstream_offset, checkpoint.metadata)
        else:
            kept[tp] = verdict
    reset = tuple(tp for tp in write if tp in found and _is_none(found[tp]))
    return GroupPlan(write, kept, reset)


def _why_untouched(
    checkpoints: Mapping[TopicPartition, Checkpoint],
    state: GroupState | None,
    offsets: Mapping[TopicPartition, int | None] | None,
) -> NotWritten | None:
    if not checkpoints:
        return NotWritten.NO_CHECKPOINT
    if state is None:
        return NotWritten.NOT_DESCRIBED
    if state is GroupState.ACTIVE:
        return NotWritten.ACTIVE
    if state is GroupState.EMPTY and offsets is None:
        return NotWritten.OFFSETS_UNREAD
    return None


def _why_kept(
    checkpoint: Checkpoint, target_offset: int | None, end: int | None = None
) -> NotWritten | None:
    if end is not None and checkpoint.downstream_offset > end:
        return NotWritten.BEYOND_END
    if target_offset is None or _is_none(target_offset):
        return None
    if end is not None and target_offset > end:
        return None  # no consumer can be there: the offset is a leftover of deleted records
    if target_offset > checkpoint.downstream_offset:
        return NotWritten.ALREADY_AHEAD
    is_same = target_offset == checkpoint.downstream_offset
    return NotWritten.UNCHANGED if is_same else None


def _is_none(target_offset: int | None) -> bool:
    return target_offset is None or target_offset < 0
