"""Which checkpoints of consumer groups are written to the checkpoints topic.

Runs on: worker, in the checkpoint connector, at each checkpoint interval. Pure.
Mirrors: org.apache.kafka.connect.mirror.{MirrorCheckpointTask,CheckpointStore} (4.4).

Checkpoints only move forward, unless the group itself moved back on the source, or the target lost
records: a remote topic that was deleted and created again starts at offset 0. MirrorMaker 2 then
leaves groups at the old offset, ahead of the data.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.mirror.filters import TopicFilter
from sparkmirror.mirror.policy import ReplicationPolicy
from sparkmirror.mirror.records import Checkpoint
from sparkmirror.mirror.translation.offset_sync_store import Translation, TranslationKind
from sparkmirror.types import TopicPartition

Translate = Callable[[TopicPartition, int], Translation]
"""Translates a position in an upstream partition to one on the target."""


class CommittedOffset(NamedTuple):
    """A group's committed offset in a partition."""

    next_offset: int
    metadata: str = ""


class NoCheckpoint(enum.Enum):
    """Why a group's partition gets no checkpoint this time."""

    TOPIC_EXCLUDED = "the topic filter does not accept the topic"
    NOTHING_COMMITTED = "the group has no offset there"
    UNKNOWN = "the partition has no translation yet: no record was copied, or no sync was read"
    TOO_OLD = "the group is behind all known translations of the partition"
    UNCHANGED = "the last checkpoint is the same"
    GOES_BACK = "the last checkpoint is ahead, and the group itself did not move back"
    BEYOND_END = (
        "the target lost records (its topic was recreated or truncated), and has no new ones"
    )
    NO_TOPIC = "the target has no topic of that name"


_UNTRANSLATED = {
    TranslationKind.UNKNOWN: NoCheckpoint.UNKNOWN,
    TranslationKind.TOO_OLD: NoCheckpoint.TOO_OLD,
}


@dataclass(frozen=True, slots=True)
class CheckpointPlan:
    """The plan for one group: what to write, and why the rest is skipped, by upstream partition."""

    emit: tuple[Checkpoint, ...]
    skipped: Mapping[TopicPartition, NoCheckpoint]


class TargetEnds(NamedTuple):
    """Partitions on the target: the known ends, and the topics known to be missing."""

    ends: Mapping[TopicPartition, int]
    missing_topics: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CheckpointRules:
    """Makes checkpoints for the groups of one flow."""

    policy: ReplicationPolicy
    topic_filter: TopicFilter
    source_alias: str
    target_alias: str

    def rename_topic_partition(self, upstream: TopicPartition) -> TopicPartition:
        """The partition on the target where a consumer of `upstream` continues.

        For a topic that was copied from the target, this is its original there.
        """
        topic, partition = upstream
        if self.policy.topic_source(topic) == self.target_alias:
            return TopicPartition(self.policy.original_topic(topic), partition)
        return TopicPartition(self.policy.format_remote_topic(self.source_alias, topic), partition)

    def partitions_on_target(
        self, committed: Mapping[str, Iterable[TopicPartition]]
    ) -> set[TopicPartition]:
        """The partitions on the target that the offsets of these groups translate to."""
        accepts = self.topic_filter.should_replicate_topic
        upstream = {tp for offsets in committed.values() for tp in offsets}
        return {self.rename_topic_partition(tp) for tp in upstream if accepts(tp.topic)}

    def plan(
        self,
        group: str,
        committed: Mapping[TopicPartition, CommittedOffset | None],
        translate: Translate,
        last: Mapping[TopicPartition, Checkpoint],
        places: TargetEnds | None = None,
    ) -> CheckpointPlan:
        """Compare what a group committed on the source with its `last` checkpoints.

        `last` is the result of `CheckpointStore.of_group`, by downstream partition. Add the emitted
        checkpoints to the store at once, before they are written, or they are emitted again.
        `places` are on the target, and were read after everything that `translate` knows.
        """
        target_ends, missing_topics = places or TargetEnds({}, frozenset())
        last = without_beyond_end(last, target_ends)
        emit: list[Checkpoint] = []
        skipped: dict[TopicPartition, NoCheckpoint] = {}
        for upstream, offset in committed.items():
            verdict = self._decide(group, upstream, offset, translate, last)
            if isinstance(verdict, Checkpoint) and is_beyond_end(verdict, target_ends):
                skipped[upstream] = NoCheckpoint.BEYOND_END
            elif isinstance(verdict, Checkpoint) and verdict.topic in missing_topics:
                skipped[upstream] = NoCheckpoint.NO_TOPIC
            elif isinstance(verdict, Checkpoint):
                emit.append(verdict)
            else:
                skipped[upstream] = verdict
        return CheckpointPlan(tuple(emit), skipped)

    def _decide(
        self,
        group: str,
        upstream: TopicPartition,
        committed: CommittedOffset | None,
        translate: Translate,
        last: Mapping[TopicPartition, Checkpoint],
    ) -> Checkpoint | NoCheckpoint:
        if not self.topic_filter.should_replicate_topic(upstream.topic):
            return NoCheckpoint.TOPIC_EXCLUDED
        if committed is None or committed.next_offset < 0:
            return NoCheckpoint.NOTHING_COMMITTED
        translation = translate(upstream, committed.next_offset)
        if translation.downstream_offset is None:
            return _UNTRANSLATED[translation.kind]
        downstream = self.rename_topic_partition(upstream)
        checkpoint = Checkpoint(
            group,
            *downstream,
            committed.next_offset,
            translation.downstream_offset,
            committed.metadata,
        )
        may_go_back = translation.target_lost_records
        return why_not_emitted(checkpoint, last.get(downstream), may_go_back) or checkpoint


def is_beyond_end(checkpoint: Checkpoint, target_ends: Mapping[TopicPartition, int]) -> bool:
    """Whether a checkpoint points past the end of its partition, and so is invalid."""
    end = target_ends.get(TopicPartition(checkpoint.topic, checkpoint.partition))
    return end is not None and checkpoint.downstream_offset > end


def without_beyond_end(
    checkpoints: Mapping[TopicPartition, Checkpoint], target_ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Checkpoint]:
    """The checkpoints without those that point past the end of their partition."""
    return {tp: each for tp, each in checkpoints.items() if not is_beyond_end(each, target_ends)}


def why_not_emitted(
    checkpoint: Checkpoint, last: Checkpoint | None, may_go_back: bool = False
) -> NoCheckpoint | None:
    """Compare a checkpoint with the last one of the same group and partition; None: emit it."""
    if last is None:
        return None
    group_went_back = checkpoint.upstream_offset < last.upstream_offset
    moves_forward = checkpoint.downstream_offset > last.downstream_offset
    if group_went_back or moves_forward:
        return None
    if checkpoint.downstream_offset == last.downstream_offset:
        return NoCheckpoint.UNCHANGED
    return None if may_go_back else NoCheckpoint.GOES_BACK


class CheckpointStore:
    """The last checkpoint of each of our groups, or of all, by downstream partition.

    Filled from the checkpoints topic at the start, then with emitted checkpoints; group offset sync
    reads it. If the topic could not be read, leave it empty and create the `OffsetSyncStore` with
    `must_read_to_end`.
    """

    def __init__(self, groups: Collection[str] | None = None) -> None:
        self._groups = None if groups is None else frozenset(groups)
        self._last: dict[str, dict[TopicPartition, Checkpoint]] = {}

    def add(self, checkpoint: Checkpoint) -> None:
        """Add a later checkpoint; ignores those of groups that are not ours."""
        if self._groups is None or checkpoint.group in self._groups:
            downstream = TopicPartition(checkpoint.topic, checkpoint.partition)
            self._last.setdefault(checkpoint.group, {})[downstream] = checkpoint

    def of_group(self, group: str) -> Mapping[TopicPartition, Checkpoint]:
        """The last checkpoints of a group, by downstream partition."""
        return dict(self._last.get(group, {}))

    def by_group(self) -> Mapping[str, Mapping[TopicPartition, Checkpoint]]:
        """The last checkpoints of all groups that have any."""
        return {group: dict(last) for group, last in self._last.items()}
