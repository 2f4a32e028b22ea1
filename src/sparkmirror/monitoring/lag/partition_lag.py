"""How far one partition is behind, in what state it is, and when it would begin to lose records.

Runs on: worker. Pure.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from sparkmirror.spark.figures import NOTHING, Window
from sparkmirror.types import TopicPartition


class PartitionState(enum.StrEnum):
    """The page's words, the worst first."""

    FAILED = "failed"
    STUCK = "stuck"
    PAUSED = "paused"
    CATCHING_UP = "catching up"
    LIVE = "live"
    IDLE = "idle"

    @property
    def severity(self) -> int:
        """The worst has the lowest."""
        return list(PartitionState).index(self)


class NoLoss(enum.StrEnum):
    """Why there is no time until loss begins."""

    COMPACTED = "compacted"
    UNLIMITED = "unlimited"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Retention:
    """What the source topic's settings say of it; None where there is no limit."""

    cleanup_policy: str = ""
    ms: int | None = None
    bytes: int | None = None

    @property
    def is_compacted(self) -> bool:
        """Whether nothing is deleted but records that a later one of their key replaces."""
        return "compact" in self.cleanup_policy and "delete" not in self.cleanup_policy

    @property
    def is_unlimited(self) -> bool:
        """Whether nothing is deleted at all."""
        return self.ms is None and self.bytes is None


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One source partition of one connector.

    None means unknown, never zero. `position`: the next source offset that the target lacks.
    `bytes_behind` is an estimate from the mean size of the records that were copied.
    `seconds_behind`: age of the oldest record that the target lacks, by its timestamp; 0 if it
    lacks none. `records`, `bytes`, `lost_records` and `skipped_records` count since the worker
    began to run the task. `age` and `latency`: milliseconds, over the last 30 to 60 s, see
    `PartitionFigures`. `at_ms`: when this was true. `is_running`: a running task reported it.
    `no_loss` says why `seconds_until_loss` is None; it is "" otherwise.
    """

    flow: str
    connector: str
    task: int
    source: TopicPartition
    target: TopicPartition
    state: PartitionState
    at_ms: int
    is_running: bool = True
    position: int | None = None
    end_offset: int | None = None
    records_behind: int | None = None
    bytes_behind: int | None = None
    seconds_behind: float | None = None
    oldest_ms: int | None = None
    problem: str = ""
    records: int = 0
    bytes: int = 0
    lost_records: int = 0
    skipped_records: int = 0
    age: Window = NOTHING
    latency: Window = NOTHING
    retention_ms: int | None = None
    retention_bytes: int | None = None
    cleanup_policy: str = ""
    seconds_until_loss: float | None = None
    no_loss: str = NoLoss.UNKNOWN
