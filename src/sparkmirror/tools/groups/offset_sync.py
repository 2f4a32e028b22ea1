"""Group offset sync as a tool beside the mirror: from the checkpoints topic to group offsets.

Runs on: any machine; needs only the target cluster. The checkpoints may be this program's or
MirrorMaker 2's. Mirrors: RemoteClusterUtils.translateOffsets (4.4), for all groups at once.
"""

from __future__ import annotations

import enum
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sparkmirror.batches.records import Record
from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.patterns.name_patterns import NamePattern
from sparkmirror.connect.checkpoint.group_plans import TargetGroups, is_in_use, plan_on_target
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.group_offsets import GroupPlan, NotWritten
from sparkmirror.mirror.policy import ReplicationPolicy
from sparkmirror.mirror.records import Checkpoint, RecordError, UnsupportedRecordError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.admin import TopicView

log = logging.getLogger(__name__)

READ_SECONDS = 60.0
PLAIN_NAME = re.compile(r"[\w.-]+")


class SyncTarget(TargetGroups, Protocol):
    """The part of a `GroupAdmin` that the tool needs."""

    def list_topics(self) -> Mapping[str, TopicView]:
        """All topics."""


class CheckpointReader(Protocol):
    """The part of a `LogReader` that the tool needs."""

    restarted: bool

    def catch_up(self, seconds: float) -> Sequence[Record]:
        """Records added since the last call."""


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """Which groups are synced, from which source, on which target."""

    groups: tuple[str, ...]
    pattern: NamePattern
    source_alias: str
    policy: ReplicationPolicy
    admin: ClientConfig
    reader: ClientConfig
    admin_timeout_ms: int

    @property
    def checkpoints_topic(self) -> str:
        """The topic to read, on the target."""
        return self.policy.checkpoints_topic(self.source_alias)


class SyncOutcome(enum.StrEnum):
    """The result for one partition of a group, or for a group."""

    WRITTEN = "written"
    WOULD_WRITE = "would be written"
    KEPT = "kept"
    NOT_WRITTEN = "not written"


@dataclass(frozen=True, slots=True)
class SyncRow:
    """One line of the result; without a partition it is about the whole group."""

    group: str
    outcome: SyncOutcome
    reason: str = ""
    tp: TopicPartition | None = None
    upstream_offset: int | None = None
    before: int | None = None
    offset: int | None = None

    def as_json(self) -> dict[str, Any]:
        """For scripts: names as in `kafka-consumer-groups`, null where there is nothing."""
        return {
            "group": self.group,
            "topic": self.tp.topic if self.tp else None,
            "partition": self.tp.partition if self.tp else None,
            "source_offset": self.upstream_offset,
            "before": self.before,
            "offset": self.offset,
            "result": self.outcome.value,
            "reason": self.reason or None,
        }


class CheckpointTable:
    """The last checkpoint of each group and partition, from the records of the topic in order."""

    def __init__(self) -> None:
        self._last: dict[bytes, Checkpoint] = {}
        self._malformed = 0

    def add(self, records: Iterable[Record]) -> None:
        """Add the next records; a tombstone removes its checkpoint.

        Raises:
            UnsupportedRecordError: a newer MirrorMaker wrote one.
        """
        for record in records:
            key = record.key or b""
            if record.value is None:
                self._last.pop(key, None)
                continue
            try:
                self._last[key] = Checkpoint.decode(key, record.value)
            except UnsupportedRecordError:
                raise
            except RecordError as error:
                self._skip(record, error)

    def clear(self) -> None:
        """Forget everything: the topic was recreated."""
        self._last.clear()

    def by_group(self) -> dict[str, dict[TopicPartition, Checkpoint]]:
        """The checkpoints of each group, by downstream partition."""
        found: dict[str, dict[TopicPartition, Checkpoint]] = {}
        for each in self._last.values():
            found.setdefault(each.group, {})[TopicPartition(each.topic, each.partition)] = each
        return found

    def _skip(self, record: Record, error: RecordError) -> None:
        if not self._malformed:
            log.warning(
                "skipped a checkpoint (offset %d), and all like it: %s", record.offset, error
            )
        self._malformed += 1


class GroupTool:
    """Rounds of group offset sync. Offsets never move back; groups in use are left alone."""

    def __init__(
        self, settings: SyncSettings, target: SyncTarget, checkpoints: CheckpointReader
    ) -> None:
        self._settings = settings
        self._target = target
        self._reader = checkpoints
        self._table = CheckpointTable()

    def round(self, *, dry_run: bool = False) -> list[SyncRow]:
        """Read new checkpoints and write offsets; returns a row for each group and partition.

        Raises:
            KafkaError: the checkpoints cannot be read.
        """
        self._check_topic()
        records = self._reader.catch_up(READ_SECONDS)
        if self._reader.restarted:
            self._table.clear()
        self._table.add(records)
        checkpoints = self._table.by_group()
        groups = self._choose(checkpoints)
        return self._apply(checkpoints, groups, dry_run)

    def _check_topic(self) -> None:
        topic, policy = self._settings.checkpoints_topic, self._settings.policy
        topics = self._target.list_topics()
        if topic in topics:
            return
        others = sorted(name for name in topics if policy.is_checkpoints_topic(name))
        found = f"it has {', '.join(others)}" if others else "it has no checkpoints of any source"
        raise KafkaError(
            f"cluster '{self._settings.admin.alias}' has no topic '{topic}' ({found}); check the "
            "source alias and the policy, and that checkpoints are being written"
        )

    def _choose(self, checkpoints: Mapping[str, object]) -> list[str]:
        """Matching groups that have checkpoints, and requested names that have none."""
        found = [group for group in checkpoints if self._settings.pattern.fullmatch(group)]
        asked = [name for name in self._settings.groups if PLAIN_NAME.fullmatch(name)]
        return sorted({*found, *(name for name in asked if not _any_matches(name, found))})

    def _apply(
        self,
        checkpoints: Mapping[str, Mapping[TopicPartition, Checkpoint]],
        groups: Sequence[str],
        dry_run: bool,
    ) -> list[SyncRow]:
        planned = plan_on_target(groups, checkpoints, self._target)
        rows: list[SyncRow] = []
        for group, plan in planned.plans.items():
            before = planned.offsets.get(group, {})
            given = _Given(group, plan, checkpoints.get(group, {}), before)
            rows += self._group_rows(given, planned.errors.get(group), dry_run)
        return rows

    def _group_rows(self, given: _Given, error: KafkaError | None, dry_run: bool) -> list[SyncRow]:
        plan = given.plan
        if plan.reason is not None:
            reason = f"{plan.reason.value}: {error}" if error else plan.reason.value
            return [SyncRow(given.group, SyncOutcome.NOT_WRITTEN, reason)]
        rows = [given.row(tp, SyncOutcome.KEPT, reason.value) for tp, reason in plan.kept.items()]
        if dry_run:
            rows += [given.row(tp, SyncOutcome.WOULD_WRITE, "") for tp in plan.write]
        elif plan.write:
            outcomes = self._target.alter_offsets(given.group, plan.write)
            rows += [given.written(tp, outcomes.get(tp)) for tp in plan.write]
        return sorted(rows, key=lambda row: row.tp or TopicPartition("", 0))


@dataclass(frozen=True, slots=True)
class _Given:
    """The plan for one group, with the checkpoints and offsets behind it."""

    group: str
    plan: GroupPlan
    checkpoints: Mapping[TopicPartition, Checkpoint]
    before: Mapping[TopicPartition, int | None]

    def written(self, tp: TopicPartition, error: KafkaError | None) -> SyncRow:
        if error is None:
            was_reset = tp in self.plan.reset_by_others
            note = "its offset was deleted on the target" if was_reset else ""
            return self.row(tp, SyncOutcome.WRITTEN, note)
        reason = NotWritten.ACTIVE.value if is_in_use(error) else str(error)
        return self.row(tp, SyncOutcome.NOT_WRITTEN, reason)

    def row(self, tp: TopicPartition, outcome: SyncOutcome, reason: str) -> SyncRow:
        before = self.before.get(tp)
        checkpoint = self.checkpoints[tp]
        return SyncRow(
            self.group,
            outcome,
            reason,
            tp,
            upstream_offset=checkpoint.upstream_offset,
            before=None if before is None or before < 0 else before,
            offset=checkpoint.downstream_offset,
        )


def _any_matches(name: str, groups: Iterable[str]) -> bool:
    """Whether `name`, perhaps an expression like `orders.`, matches one of the groups."""
    return any(re.fullmatch(name, group, re.ASCII) for group in groups)
