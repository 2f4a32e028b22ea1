"""Plans which offsets to write for groups on the target, from their current state there.

Runs on: worker, in group offset sync, and wherever `sparkmirror groups sync` is called.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.errors import BrokerError, KafkaError
from sparkmirror.mirror.group_offsets import GroupPlan, GroupState, plan_group_offsets
from sparkmirror.mirror.records import Checkpoint
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin import group_admin
from sparkmirror.wire.protocol.error_codes import UNKNOWN_MEMBER_ID

# A partition without a leader must not delay the groups of all others.
END_SECONDS = 2.0


class TargetGroups(Protocol):
    """The part of the target's `GroupAdmin` that is used here."""

    def describe_groups(self, group_ids: Iterable[str]) -> Mapping[str, group_admin.DescribedGroup]:
        """The state of each group."""

    def committed_offsets(
        self, group_ids: Iterable[str]
    ) -> Mapping[str, dict[TopicPartition, group_admin.GroupOffset] | KafkaError]:
        """All committed offsets of each group."""

    def end_offsets(
        self, partitions: Iterable[TopicPartition], seconds: float | None = None
    ) -> Mapping[TopicPartition, int | KafkaError]:
        """The end of each partition's log."""

    def alter_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, tuple[int, str]]
    ) -> Mapping[TopicPartition, KafkaError | None]:
        """Commit offsets for a group without members."""


@dataclass(frozen=True, slots=True)
class GroupPlans:
    """The plan of each group, the offsets it is based on, and the groups that failed."""

    plans: Mapping[str, GroupPlan]
    offsets: Mapping[str, Mapping[TopicPartition, int | None]]
    errors: Mapping[str, KafkaError]


def plan_on_target(
    groups: Collection[str],
    checkpoints: Mapping[str, Mapping[TopicPartition, Checkpoint]],
    target: TargetGroups,
) -> GroupPlans:
    """Plan for all `groups`; those without checkpoints cost nothing."""
    errors: dict[str, KafkaError] = {}
    # States come first: if a group gets members afterwards, the broker rejects the write.
    states: dict[str, GroupState] = {}
    described = target.describe_groups([group for group in groups if checkpoints.get(group)])
    for group, found in described.items():
        if found.error is None:
            states[group] = GroupState.parse(found.state)
        else:
            errors[group] = found.error
    offsets: dict[str, dict[TopicPartition, int | None]] = {}
    empty = [group for group, state in states.items() if state is GroupState.EMPTY]
    for group, result in target.committed_offsets(empty).items():
        if isinstance(result, KafkaError):
            errors[group] = result
        else:
            offsets[group] = {tp: committed.next_offset for tp, committed in result.items()}
    asked = {tp for group in states for tp in checkpoints[group]}
    ends = known_ends(target, asked)
    plans = plan_group_offsets(groups, checkpoints, states, offsets, ends)
    return GroupPlans(plans, offsets, errors)


def known_ends(
    target: TargetGroups, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """The end offsets of the partitions whose leaders respond."""
    found = target.end_offsets(partitions, END_SECONDS) if partitions else {}
    return {tp: end for tp, end in found.items() if isinstance(end, int)}


def is_in_use(error: KafkaError | None) -> bool:
    """Whether a write was rejected because the group has members."""
    return isinstance(error, BrokerError) and error.code == UNKNOWN_MEMBER_ID
