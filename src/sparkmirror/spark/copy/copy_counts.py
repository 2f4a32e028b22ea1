"""What is counted of one partition while it is copied: for each batch, never for each record.

Runs on: executor, on the copy loop's thread. Records and bytes are counted with each batch. Ages
and latencies are measured at most every 50 ms for each partition: what was copied since the last
time counts with the batch that is measured. Under light load that is every batch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from time import time

from sparkmirror.batches.outgoing import OutgoingBatch
from sparkmirror.spark.figures import LATENCY_BOUNDS_MS, NOTHING, Window

SAMPLE_SECONDS = 0.05
# Clocks differ. A timestamp further ahead, or a negative one, is none: nothing is measured by it.
FUTURE_MS = 60_000.0


class Samples:
    """Milliseconds, measured since they were last taken."""

    __slots__ = ("_count", "_last", "_least", "_most", "_total", "due", "mean", "weight")

    def __init__(self) -> None:
        # When the next sample is due, and how many records there were since the last one.
        self.due = 0.0
        self.weight = 0
        # Of the last batch that was measured; None: by its timestamps that cannot be told.
        self.mean: float | None = None
        self._count = 0
        self._last = self._least = self._most = self._total = 0.0

    def add(self, now: float, oldest: int, newest: int) -> None:
        """Measure by the timestamps of a batch."""
        self.due = now + SAMPLE_SECONDS
        weight, self.weight = self.weight, 0
        now_ms = now * 1000
        if min(oldest, newest) < 0 or max(oldest, newest) > now_ms + FUTURE_MS:
            self.mean = None
            return
        # The first record of a batch need not be the oldest one: its producer sets timestamps.
        low, high = sorted((max(0.0, now_ms - newest), max(0.0, now_ms - oldest)))
        self.mean = (low + high) / 2
        self._least = min(low, self._least) if self._count else low
        self._most = max(high, self._most) if self._count else high
        self._last = max(0.0, now_ms - newest)
        self._total += self.mean * weight
        self._count += weight

    def add_rest(self) -> int:
        """Count what came after the last sample with it; returns how many records that is."""
        weight, self.weight = self.weight, 0
        if self.mean is None:
            return 0
        self._total += self.mean * weight
        self._count += weight
        return weight

    def take(self) -> Window:
        """What was measured since the last call."""
        self.add_rest()
        if not self._count:
            return NOTHING
        taken = Window(
            round(self._last),
            round(self._least),
            round(self._most),
            round(self._total),
            self._count,
        )
        self._count, self._total = 0, 0.0
        return taken


class CopyCounts:
    """Of one partition, since its copy began."""

    __slots__ = (
        "age",
        "bytes",
        "latency",
        "lost_records",
        "newest_ms",
        "records",
        "skipped_records",
    )

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0
        self.lost_records = 0
        self.skipped_records = 0
        self.age = Samples()
        self.latency = Samples()
        # The timestamp of the last record that was fetched.
        self.newest_ms = -1


class LatencyHistogram:
    """Of all partitions of one task: how many records were acknowledged within which time."""

    def __init__(self, wall_clock: Callable[[], float] = time) -> None:
        self._wall_clock = wall_clock
        self.buckets = [0] * (len(LATENCY_BOUNDS_MS) + 1)
        self.sum_ms = 0.0

    def count_stored(self, counts: CopyCounts, batch: OutgoingBatch) -> None:
        """The target has it."""
        counts.records += batch.count
        counts.bytes += batch.size
        latency = counts.latency
        latency.weight += batch.count
        now = self._wall_clock()
        if now < latency.due <= now + SAMPLE_SECONDS:  # the wall clock may be set back
            return
        weight = latency.weight
        latency.add(now, batch.base_timestamp, batch.max_timestamp)
        self._count(latency.mean, weight)

    def count_rest(self, counts: CopyCounts) -> None:
        """What was acknowledged after the last sample."""
        self._count(counts.latency.mean, counts.latency.add_rest())

    def _count(self, mean: float | None, weight: int) -> None:
        if mean is not None and weight:
            self.buckets[bisect_left(LATENCY_BOUNDS_MS, mean)] += weight
            self.sum_ms += mean * weight

    def count_fetched(self, counts: CopyCounts, first: OutgoingBatch, last: OutgoingBatch) -> None:
        """These are the first and the last batch that a response brought of the partition."""
        counts.newest_ms = last.max_timestamp
        age = counts.age
        age.weight += last.last_offset - first.first_offset + 1
        now = self._wall_clock()
        if not now < age.due <= now + SAMPLE_SECONDS:
            age.add(now, first.base_timestamp, last.max_timestamp)
