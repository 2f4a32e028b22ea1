"""What a failover would cost each consumer group of a flow: its offsets on both clusters.

Runs on: worker, on the thread of a flow's watch. It reads what the checkpoint task reads and
translates as that does, so it needs no figures of the worker that runs the task.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.config.masking import mask
from sparkmirror.config.mirror_configs import CheckpointConfig
from sparkmirror.connect.checkpoint.offset_translator import OffsetTranslator, make_translator
from sparkmirror.connect.storage.log_reader import LogReader
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.checkpoints import CheckpointRules
from sparkmirror.mirror.filters import make_group_filter, make_topic_filter
from sparkmirror.mirror.group_offsets import GroupListing, select_consuming, select_groups
from sparkmirror.mirror.policy import flow_policy
from sparkmirror.mirror.records import Checkpoint, RecordError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.group_admin import GroupOffset
from sparkmirror.wire.admin.watch_admin import WatchAdmin

READ_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """One partition of a group. `checkpoint`: the offset that sync writes on the target.

    `reread`: source records that a consumer would get again at its offset on the target; None:
    not known, see `why`.
    """

    upstream: TopicPartition
    downstream: TopicPartition
    committed: int
    translated: int | None
    is_exact: bool
    checkpoint: int | None
    on_target: int | None
    reread: int | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class GroupSeen:
    """A group; `error`: why it could not be asked. Members: None if they were not counted."""

    name: str
    places: Sequence[GroupPosition] = ()
    members: int | None = None
    members_on_target: int | None = None
    checkpoint_ms: int | None = None
    error: str = ""
    target_error: str = ""


@dataclass(frozen=True, slots=True)
class GroupsSeen:
    """All groups that the flow follows. `is_synced`: whether offsets are written on the target."""

    groups: Sequence[GroupSeen]
    is_synced: bool
    warning: str = ""


@dataclass(slots=True)
class _Checkpoints:
    """The last checkpoint of each group and partition, and when a group's newest was written."""

    offsets: dict[str, dict[TopicPartition, Checkpoint]] = field(default_factory=dict)
    newest_ms: dict[str, int] = field(default_factory=dict)


class _Answers(NamedTuple):
    """Of one group: its offsets on the target, and its members on both sides."""

    on_target: dict[TopicPartition, GroupOffset] | KafkaError
    members: int | KafkaError | None
    members_on_target: int | KafkaError | None


class GroupsLook:
    """Of one flow; `close` at the end. Owned by one thread."""

    def __init__(self, config: CheckpointConfig) -> None:
        self._config = config
        self._policy = flow_policy(config)
        self._topic_filter = make_topic_filter(config)
        self._group_filter = make_group_filter(config)
        self._rules = CheckpointRules(
            self._policy, self._topic_filter, config.source_alias, config.target_alias
        )
        self._translator: OffsetTranslator | None = None
        self._log: LogReader | None = None
        self._checkpoints = _Checkpoints()

    def close(self) -> None:
        """Close the readers' connections."""
        for each in (self._translator, self._log):
            if each is not None:
                each.close()
        self._translator = self._log = None

    def groups(self, source: WatchAdmin, target: WatchAdmin) -> GroupsSeen:
        """Ask both clusters. Raises KafkaError."""
        names = self._followed(source)
        committed = source.committed_offsets(names)
        consuming = select_consuming(
            {name: found for name, found in committed.items() if isinstance(found, dict)},
            self._topic_filter,
        ).groups
        failed = {name: mask(str(e)) for name, e in committed.items() if isinstance(e, KafkaError)}
        translator, warning = self._translate()
        self._read_checkpoints()
        on_target = target.committed_offsets(consuming)
        members, there = source.member_counts(consuming), target.member_counts(consuming)
        found = [
            self._group(
                name,
                committed[name],
                _Answers(on_target[name], members[name], there[name]),
                translator,
            )
            for name in sorted(consuming)
        ]
        found += [GroupSeen(name, error=why) for name, why in sorted(failed.items())]
        return GroupsSeen(found, self._config.sync_group_offsets_enabled, warning)

    def _followed(self, source: WatchAdmin) -> Sequence[str]:
        listings = [
            GroupListing(each.group_id, each.protocol_type, each.type)
            for each in source.list_groups()
        ]
        return select_groups(listings, self._group_filter).groups

    def _translate(self) -> tuple[OffsetTranslator, str]:
        """What cannot be read makes translation coarser, never wrong."""
        if self._translator is None:
            self._translator = make_translator(self._config, self._policy, must_read_to_end=False)
        try:
            self._translator.catch_up(READ_SECONDS)
        except KafkaError as error:
            return self._translator, mask(str(error))
        return self._translator, ""

    def _read_checkpoints(self) -> None:
        if self._log is None:
            topic = self._policy.checkpoints_topic(self._config.source_alias)
            self._log = LogReader(self._config.checkpoints_reader, topic)
        records = self._log.catch_up(READ_SECONDS)
        if self._log.restarted:
            self._checkpoints = _Checkpoints()
        for record in records:
            if record.value is None:
                continue
            try:
                found = Checkpoint.decode(record.key or b"", record.value)
            except RecordError:
                continue  # the checkpoint task's log names it
            place = TopicPartition(found.topic, found.partition)
            self._checkpoints.offsets.setdefault(found.group, {})[place] = found
            self._checkpoints.newest_ms[found.group] = record.timestamp

    def _group(
        self,
        name: str,
        committed: dict[TopicPartition, GroupOffset] | KafkaError,
        answers: _Answers,
        translator: OffsetTranslator,
    ) -> GroupSeen:
        assert isinstance(committed, dict), "only groups with offsets are followed"
        on_target, members, there = answers
        known = {} if isinstance(on_target, KafkaError) else on_target
        checkpoints = self._checkpoints.offsets.get(name, {})
        places = [
            self._place(tp, offset.next_offset, known, checkpoints, translator)
            for tp, offset in sorted(committed.items())
            if offset.next_offset >= 0 and self._topic_filter.should_replicate_topic(tp.topic)
        ]
        errors = [mask(str(each)) for each in (on_target, there) if isinstance(each, KafkaError)]
        return GroupSeen(
            name,
            places,
            members if isinstance(members, int) else None,
            there if isinstance(there, int) else None,
            self._checkpoints.newest_ms.get(name),
            target_error="; ".join(errors),
        )

    def _place(
        self,
        tp: TopicPartition,
        committed: int,
        on_target: Mapping[TopicPartition, GroupOffset],
        checkpoints: Mapping[TopicPartition, Checkpoint],
        translator: OffsetTranslator,
    ) -> GroupPosition:
        downstream = self._rules.rename_topic_partition(tp)
        found = translator.translate(tp, committed)
        at = on_target.get(downstream)
        there = at.next_offset if at is not None and at.next_offset >= 0 else None
        checkpoint = checkpoints.get(downstream)
        return GroupPosition(
            tp,
            downstream,
            committed,
            found.downstream_offset,
            translator.is_exact(tp, committed),
            None if checkpoint is None else checkpoint.downstream_offset,
            there,
            None if there is None else records_again(translator, tp, committed, there),
            "" if found.downstream_offset is not None else found.kind.value,
        )


def records_again(
    translator: OffsetTranslator, tp: TopicPartition, committed: int, on_target: int
) -> int:
    """The most source records below `committed` that lie at or after `on_target` on the target.

    All positions from the first that translates to `on_target` or more are read again; with the
    exact map that is the number, with MirrorMaker 2's rule at most that.
    """

    def position(upstream_offset: int) -> int:
        found = translator.translate(tp, upstream_offset).downstream_offset
        return -1 if found is None else found

    if position(committed) <= on_target and translator.is_exact(tp, committed):
        return 0
    return committed - bisect_left(range(committed), on_target, key=position)
