"""What a copy task knows of each of its partitions, on its way to the worker.

Runs on: both. Pure. A task counts per batch, never per record, and once a second sends the rows
that have changed; the worker keeps the newest row of each partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sparkmirror.types import TopicPartition

# The type of a task's reports over the control link.
FIGURES = "figures"
# Upper bounds of the histogram of replication latency; one more bucket is for all beyond them.
LATENCY_BOUNDS_MS = (
    5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 3_600_000,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Window:
    """Milliseconds measured for a while: the last ones, and their extremes, sum and number.

    On the way from a task: since its last report. On the worker: over the last 30 to 60 s, as
    Kafka's metrics are (two samples of 30 s); then `last` is kept, and the others are 0.
    """

    last: float = 0.0
    least: float = 0.0
    most: float = 0.0
    total: float = 0.0
    count: int = 0

    def with_later(self, later: Window) -> Window:
        """Both together."""
        if not later.count or not self.count:
            return later if later.count else self
        return Window(
            later.last,
            min(self.least, later.least),
            max(self.most, later.most),
            self.total + later.total,
            self.count + later.count,
        )


NOTHING: Final = Window()


@dataclass(frozen=True, slots=True)
class PartitionFigures:
    """One source partition.

    `position`: the next source offset that the target does not have. `end_offset`: of the source's
    log as far as records may be read, None while it is not known. `oldest_ms`: timestamp of the
    oldest record that the target does not have; None: there is none, or it is not known, see
    `behind`. `records`, `bytes` count what was stored since the task began, on the worker since it
    began to run the task; bytes are those of batches as they are in the log. `lost_records`: what
    retention deleted before it was copied; `skipped_records`: what the target rejected. `age`: wall
    clock minus a record's timestamp when it was fetched; `latency`: the same when the target
    acknowledged it. The timestamp is that of a record as consumers see it: when it was appended, if
    the topic has LogAppendTime, else what its producer says. `problem`: why it waits.
    """

    source: TopicPartition
    target: TopicPartition
    position: int | None = None
    end_offset: int | None = None
    oldest_ms: int | None = None
    records: int = 0
    bytes: int = 0
    age: Window = NOTHING
    latency: Window = NOTHING
    lost_records: int = 0
    skipped_records: int = 0
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
    """What one copy task last reported, added up over its attempts.

    `at`: when (time.time), 0.0 if it never did. `latency_buckets` count the records acknowledged
    within each of `LATENCY_BOUNDS_MS`, one more those beyond; `latency_sum_ms` is the sum of their
    latencies. `slow` counts batches that were not just passed through, by reason. `is_complete`:
    whether the running attempt has reported all of its partitions.
    """

    task: str
    partitions: Sequence[PartitionFigures] = ()
    latency_buckets: Sequence[int] = ()
    latency_sum_ms: float = 0.0
    slow: Mapping[str, int] = field(default_factory=dict)
    at: float = 0.0
    is_complete: bool = False


def encode_row(figures: PartitionFigures) -> list[Any]:
    """For the control link."""
    return [
        figures.source.topic,
        figures.target.topic,
        figures.source.partition,
        figures.position,
        figures.end_offset,
        figures.oldest_ms,
        figures.records,
        figures.bytes,
        _encode_window(figures.age),
        _encode_window(figures.latency),
        figures.lost_records,
        figures.skipped_records,
        figures.problem,
    ]


def _encode_window(window: Window) -> list[float] | None:
    if not window.count:
        return None
    return [window.last, window.least, window.most, window.total, window.count]


def decode_row(row: Sequence[Any]) -> PartitionFigures:
    """The reverse."""
    source, target, partition, position, end, oldest, records, size, age, latency, *rest = row
    return PartitionFigures(
        TopicPartition(source, partition),
        TopicPartition(target, partition),
        position,
        end,
        oldest,
        records,
        size,
        Window(*age) if age else NOTHING,
        Window(*latency) if latency else NOTHING,
        *rest,
    )
