"""Partitions and topics, mirrored and not.

Runs on: worker. Pure. See the package for what None means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sparkmirror.monitoring.views.rows.common import Reasons, Remedy


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition. `task`: the number of the task that copies it; `written`: see FlowRow."""

    flow: str
    topic: str
    partition: int
    target_topic: str
    state: str
    problem: str
    remedy: Remedy | None
    since_ms: int | None
    connector: str
    task: int | None
    worker: str
    position: int | None
    end_offset: int | None
    records_behind: int | None
    bytes_behind: int | None
    seconds_behind: float | None
    oldest_ms: int | None
    lost_records: int
    skipped_records: int
    retention_ms: int | None
    retention_bytes: int | None
    cleanup_policy: str
    seconds_until_loss: float | None
    loss_at_ms: int | None
    unknown: Reasons = field(default_factory=dict)
    not_applicable: Reasons = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StateCounts:
    """How many partitions are in each state."""

    total: int = 0
    live: int = 0
    idle: int = 0
    catching_up: int = 0
    paused: int = 0
    stuck: int = 0
    failed: int = 0
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class SettingDifference:
    """A setting of a topic that has another value on the target; "" for one that is not set."""

    key: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A mirrored topic. `word`: its state in words, counted where only some partitions have it."""

    flow: str
    topic: str
    target_topic: str
    state: str
    word: str
    partitions: StateCounts
    records_behind: int | None
    bytes_behind: int | None
    seconds_behind: float | None
    bytes_per_second: float | None
    records_per_second: float | None
    end_offsets: int | None
    lost_records: int
    skipped_records: int
    seconds_until_loss: float | None
    loss_at_ms: int | None
    differences: Sequence[SettingDifference] | None
    unknown: Reasons = field(default_factory=dict)
    not_applicable: Reasons = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule in the order in which it is asked. `passed`: None if it was not reached."""

    rule: str
    value: str
    verdict: str
    passed: bool | None


@dataclass(frozen=True, slots=True)
class UnmirroredRow:
    """A topic that is not mirrored. `verdict`: by rule or blocked; `count`: topics folded in it."""

    flow: str
    topic: str
    count: int
    topics: Sequence[str]
    verdict: str
    reason: str
    note: str
    key: str
    rules: Sequence[RuleRow]
    remedy: Remedy | None
    explain: str
    since_ms: int | None = None
