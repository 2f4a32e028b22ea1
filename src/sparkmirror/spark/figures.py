"""What a copy task knows of each of its partitions, on its way to the worker.

Runs on: both. Pure. A task counts per batch, never per record, and once a second sends the rows
that have changed; the worker keeps the newest row of each partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sparkmirror.types import TopicPartition


@dataclass(frozen=True, slots=True)
class Window:
    """Milliseconds measured since the last report: the last one, and their extremes and sum."""

    last: float = 0.0
    least: float = 0.0
    most: float = 0.0
    total: float = 0.0
    count: int = 0


@dataclass(frozen=True, slots=True)
class PartitionFigures:
    """One source partition.

    `position`: the next source offset that the target does not have. `end_offset`: of the source's
    log as far as records may be read, None while it is not known. `oldest_ms`: timestamp of the
    oldest record that the target does not have; None: there is none, or it is not known, see
    `behind`. `records`, `bytes` count what was stored since the task began; bytes are those of
    batches as they are in the log. `age`: wall clock minus a record's timestamp when it was
    fetched; `latency`: the same when the target acknowledged it. `problem`: why it waits.
    """

    source: TopicPartition
    target: TopicPartition
    position: int | None = None
    end_offset: int | None = None
    oldest_ms: int | None = None
    records: int = 0
    bytes: int = 0
    age: Window = field(default_factory=Window)
    latency: Window = field(default_factory=Window)
    problem: str = ""

    @property
    def behind(self) -> int | None:
        """Offsets that the target does not have yet; None while that is not known."""
        if self.position is None or self.end_offset is None:
            return None
        return max(0, self.end_offset - self.position)

    @property
    def bytes_behind(self) -> int | None:
        """An estimate, from the mean size of the records that were copied."""
        behind = self.behind
        if behind is None or not self.records:
            return 0 if behind == 0 else None
        return behind * self.bytes // self.records


@dataclass(frozen=True, slots=True)
class TaskFigures:
    """What one copy task last reported; `latency_buckets` count acknowledged batches' records."""

    task: str
    partitions: Sequence[PartitionFigures] = ()
    latency_buckets: Sequence[int] = ()
