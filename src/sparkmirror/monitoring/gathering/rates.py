"""How fast topics and flows copy, how fast the source writes, and whether a backlog falls.

Runs on: worker; for any thread. Compares offsets with those of 10 to 40 s ago: offsets go on when a
task moves to another worker, counters begin again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sparkmirror.monitoring.gathering.gathering import Gathered
from sparkmirror.monitoring.lag.partition_lag import PartitionLag
from sparkmirror.spark.figures import LATENCY_BOUNDS_MS
from sparkmirror.types import TopicPartition

WINDOW_MS: Final = 10_000
# Older is no comparison: nobody asked for a while.
OLDEST_MS: Final = 60_000
SPACING_MS: Final = 5_000
TOO_SHORT = "measured for less than 10 s"

_PartitionKey = tuple[str, TopicPartition]


class Point(NamedTuple):
    """One partition at one time."""

    position: int | None
    end_offset: int | None
    records: int
    bytes: int


@dataclass(frozen=True, slots=True)
class FlowSpeed:
    """Per second; None: not known yet."""

    records: float | None = None
    bytes: float | None = None
    written_records: float | None = None
    written_bytes: float | None = None

    def plus(self, other: FlowSpeed) -> FlowSpeed:
        """Both; what is not known of one is not known of both."""
        return FlowSpeed(
            *(
                None if one is None or two is None else one + two
                for one, two in zip(self._values, other._values, strict=True)
            )
        )

    @property
    def _values(self) -> tuple[float | None, ...]:
        return self.records, self.bytes, self.written_records, self.written_bytes


NOTHING_YET: Final = FlowSpeed()
ZERO: Final = FlowSpeed(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class LatencyFigures:
    """Milliseconds; None: nothing was copied in the window."""

    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class _Sample:
    at_ms: int
    points: Mapping[_PartitionKey, Point]
    behind: Mapping[str, int | None]
    buckets: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Speeds:
    """As of one gathering. `change`: by how many records per second the backlog of a flow grows."""

    topics: Mapping[tuple[str, str], FlowSpeed]
    change: Mapping[str, float]
    latency: Mapping[str, LatencyFigures]


class SpeedMeter:
    """Remembers a few gatherings."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._samples: deque[_Sample] = deque()

    def take(self, gathered: Gathered) -> Speeds:
        """Compare with what was 10 s ago."""
        sample = _sample(gathered)
        with self._lock:
            before = self._before(sample.at_ms)
            if not self._samples or sample.at_ms - self._samples[-1].at_ms >= SPACING_MS:
                self._samples.append(sample)
        if before is None:
            return Speeds({}, {}, {})
        return _compare(before, sample, [lag for lag, _ in gathered.partitions])

    def _before(self, now_ms: int) -> _Sample | None:
        while self._samples and now_ms - self._samples[0].at_ms > OLDEST_MS:
            self._samples.popleft()
        old = [each for each in self._samples if now_ms - each.at_ms >= WINDOW_MS]
        while len(old) > 1 and self._samples[0] is not old[-1]:
            self._samples.popleft()
        return old[-1] if old else None


def _sample(gathered: Gathered) -> _Sample:
    points: dict[_PartitionKey, Point] = {}
    behind: dict[str, int | None] = {}
    for lag, _ in gathered.partitions:
        points[lag.connector, lag.source] = Point(
            lag.position, lag.end_offset, lag.records, lag.bytes
        )
        known = behind.get(lag.flow, 0)
        is_known = known is not None and lag.records_behind is not None
        behind[lag.flow] = (known or 0) + (lag.records_behind or 0) if is_known else None
    buckets: dict[str, list[int]] = {}
    for group in gathered.groups:
        for member in group.members:
            for rate in () if member.figures is None else member.figures.rates:
                sums = buckets.setdefault(rate.flow, [])
                sums.extend([0] * (len(rate.latency_buckets) - len(sums)))
                for at, count in enumerate(rate.latency_buckets):
                    sums[at] += count
    return _Sample(gathered.at_ms, points, behind, buckets)


def _compare(before: _Sample, now: _Sample, lags: Sequence[PartitionLag]) -> Speeds:
    seconds = (now.at_ms - before.at_ms) / 1000
    topics: dict[tuple[str, str], FlowSpeed] = {}
    for lag in lags:
        key = lag.connector, lag.source
        old = before.points.get(key)
        rate = NOTHING_YET if old is None else _rate(old, now.points[key], seconds)
        at = lag.flow, lag.source.topic
        topics[at] = topics.get(at, ZERO).plus(rate)
    change = {
        flow: (behind - old_behind) / seconds
        for flow, behind in now.behind.items()
        if behind is not None and (old_behind := before.behind.get(flow)) is not None
    }
    latency = {}
    for flow, buckets in now.buckets.items():
        found = _latency(before.buckets.get(flow, ()), buckets)
        if found is not None:
            latency[flow] = found
    return Speeds(topics, change, latency)


def _rate(old: Point, new: Point, seconds: float) -> FlowSpeed:
    """Bytes are those of the same records, else of as many of the mean size."""
    size = new.bytes / new.records if new.records else None
    records = _difference(old.position, new.position)
    written = _difference(old.end_offset, new.end_offset)
    copied_bytes: float | None
    if new.records > old.records and new.bytes >= old.bytes:
        copied_bytes = float(new.bytes - old.bytes)
    else:
        copied_bytes = _times(records, size)
    return FlowSpeed(
        _per(records, seconds),
        _per(copied_bytes, seconds),
        _per(written, seconds),
        _per(_times(written, size), seconds),
    )


def _difference(old: int | None, new: int | None) -> float | None:
    """None also for a topic that was created again."""
    return None if old is None or new is None or new < old else float(new - old)


def _times(count: float | None, size: float | None) -> float | None:
    if count == 0:
        return 0.0
    return None if count is None or size is None else count * size


def _per(amount: float | None, seconds: float) -> float | None:
    return None if amount is None else amount / seconds


def _latency(old: Sequence[int], new: Sequence[int]) -> LatencyFigures | None:
    """Of what was acknowledged between the two; counters that began again count from zero."""
    padded = [*old, *[0] * (len(new) - len(old))]
    counts = [now - then for now, then in zip(new, padded, strict=False)]
    if any(count < 0 for count in counts):
        counts = list(new)
    total = sum(counts)
    if not total:
        return None
    return LatencyFigures(_quantile(counts, total * 0.5), _quantile(counts, total * 0.99))


def _quantile(counts: Sequence[int], rank: float) -> float:
    """Linear within a bucket, as Prometheus does; of the last one its lower bound."""
    bounds = [float(bound) for bound in LATENCY_BOUNDS_MS]
    below = 0
    for at, count in enumerate(counts):
        if count and below + count >= rank:
            if at >= len(bounds):
                return bounds[-1]
            low = bounds[at - 1] if at else 0.0
            return low + (bounds[at] - low) * (rank - below) / count
        below += count
    return bounds[-1]
