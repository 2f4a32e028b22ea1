"""Rules of lag: the state of a partition, when it begins to lose records, when a flow catches up.

Runs on: worker. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sparkmirror.monitoring.lag.partition_lag import NoLoss, PartitionState, Retention

# A partition that is no further behind copies what comes; beyond, it works off a backlog.
LIVE_SECONDS = 10.0
# The least time that windows of measurements are about.
WINDOW_SECONDS = 30.0
# An estimate needs a backlog that has fallen for so long; rates are of the same time.
TREND_SECONDS = 10.0


class Standing(NamedTuple):
    """What a partition's state follows from.

    `copied` is how many records were copied in the last 30 to 60 s.
    """

    is_failed: bool = False
    is_paused: bool = False
    is_running: bool = True
    problem: str = ""
    records_behind: int | None = None
    seconds_behind: float | None = None
    copied: int = 0


def judge(standing: Standing) -> PartitionState:
    """The first of these that applies.

    paused       its user wants it so          failed      its task failed: somebody must help
    stuck        it waits for a cluster or a slot, and continues by itself
    catching up  it is 10 s behind, and by more than it copies in that time; or that is not known
    idle         nothing came lately           live        all else
    """
    behind = standing.records_behind
    if standing.is_paused:
        return PartitionState.PAUSED
    if standing.is_failed:
        return PartitionState.FAILED
    if standing.problem or not standing.is_running:
        return PartitionState.STUCK
    if behind == 0:
        return PartitionState.LIVE if standing.copied else PartitionState.IDLE
    is_far = standing.seconds_behind is None or standing.seconds_behind > LIVE_SECONDS
    # By their timestamps records may be old when they come: those of a chain of mirrors are.
    keeps_up = behind is not None and behind <= standing.copied * LIVE_SECONDS / WINDOW_SECONDS
    return PartitionState.CATCHING_UP if is_far and not keeps_up else PartitionState.LIVE


def seconds_behind(oldest_ms: int | None, records_behind: int | None, now_ms: int) -> float | None:
    """The age of the oldest record that the target lacks; 0 without one, None if unknown."""
    if records_behind == 0:
        return 0.0
    return None if oldest_ms is None else max(0.0, (now_ms - oldest_ms) / 1000)


class LossTime(NamedTuple):
    """How long until retention deletes what was not copied, or why that is not known."""

    seconds: float | None = None
    why_not: str = ""


def time_until_loss(
    retention: Retention | None,
    behind: float | None,
    bytes_behind: int | None,
    bytes_per_second: float | None,
) -> LossTime:
    """The nearer of both limits; `behind` in seconds, `bytes_per_second` written on the source.

    Kafka deletes whole segments, and a limit is reached when the newest record of one reaches it.
    So the loss may begin later than this, never earlier.
    """
    if retention is None:
        return LossTime(None, NoLoss.UNKNOWN)
    if retention.is_compacted:
        return LossTime(None, NoLoss.COMPACTED)
    if retention.is_unlimited:
        return LossTime(None, NoLoss.UNLIMITED)
    found = []
    if retention.ms is not None:
        if behind is None:
            return LossTime(None, NoLoss.UNKNOWN)
        found.append(max(0.0, retention.ms / 1000 - behind))
    if retention.bytes is not None and bytes_behind is not None and bytes_per_second is not None:
        left = max(0, retention.bytes - bytes_behind)
        if bytes_per_second > 0:
            found.append(left / bytes_per_second)
        elif not found:
            return LossTime(None, NoLoss.UNLIMITED)  # while nothing is written
    return LossTime(min(found)) if found else LossTime(None, NoLoss.UNKNOWN)


class Reading(NamedTuple):
    """Totals of a flow at one moment, by a clock that never goes back."""

    at: float
    records: int
    bytes: int
    behind: int | None


class Rates(NamedTuple):
    """Per second. `catch_up_seconds`: see `FlowLag`."""

    records: float | None = None
    bytes: float | None = None
    backlog: float | None = None
    catch_up_seconds: float | None = None


def rates(readings: Sequence[Reading]) -> Rates:
    """From readings in order; what they do not cover for 10 s is unknown."""
    if len(readings) < 2:
        return Rates()
    last = readings[-1]
    first = _before(readings, last.at - TREND_SECONDS)
    if first is None:
        return Rates()
    seconds = last.at - first.at
    records, size = last.records - first.records, last.bytes - first.bytes
    if records < 0 or size < 0:
        return Rates()  # tasks have left
    return Rates(records / seconds, size / seconds, *_trend(readings))


def _trend(readings: Sequence[Reading]) -> tuple[float | None, float | None]:
    """How fast the backlog grows, and when it is gone if it falls all the time."""
    known = [each for each in readings if each.behind is not None]
    last = readings[-1]
    first = _before(known, last.at - TREND_SECONDS)
    middle = _before(known, last.at - TREND_SECONDS / 2)
    if first is None or first.behind is None or last.behind is None:
        return None, None
    speed = (last.behind - first.behind) / (last.at - first.at)
    if last.behind == 0:
        return speed, 0.0
    assert middle is not None  # it is no older than `first`
    falls = last.behind < (middle.behind or 0) < first.behind
    return speed, last.behind / -speed if falls else None


def _before(readings: Sequence[Reading], at: float) -> Reading | None:
    """The last one that is no later."""
    return next((each for each in reversed(readings) if each.at <= at), None)
