"""Adds up the partitions of one flow. Runs on: worker. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from sparkmirror.monitoring.lag.flow_lag import FlowLag
from sparkmirror.monitoring.lag.lag_rules import Rates
from sparkmirror.monitoring.lag.partition_lag import PartitionLag, PartitionState
from sparkmirror.monitoring.lag.source_flows import SourceFlow
from sparkmirror.spark.figures import LATENCY_BOUNDS_MS, TaskFigures


def sum_flow(
    flow: SourceFlow, lags: Sequence[PartitionLag], speed: Rates, figures: Sequence[TaskFigures]
) -> FlowLag:
    """The flow as a whole; its state is the worst of its partitions.

    What tasks count includes partitions that they no longer have: counters must not go back.
    """
    states = Counter(lag.state for lag in lags)
    no_lag = PartitionState.PAUSED if flow.is_paused else PartitionState.IDLE
    late = [lag for lag in lags if lag.seconds_behind is not None]
    worst = max(
        late, key=lambda lag: (lag.seconds_behind or 0, lag.records_behind or 0), default=None
    )
    ending = [lag for lag in lags if lag.seconds_until_loss is not None]
    nearest = min(ending, key=lambda lag: lag.seconds_until_loss or 0, default=None)
    slow: Counter[str] = Counter()
    for each in figures:
        slow.update(each.slow)
    return FlowLag(
        flow=flow.flow,
        connector=flow.name,
        partitions=len(lags),
        unknown=sum(lag.records_behind is None for lag in lags),
        states=dict(states),
        state=min(states, key=lambda state: state.severity, default=no_lag),
        records_behind=_sum(lag.records_behind for lag in lags),
        bytes_behind=_sum(lag.bytes_behind for lag in lags),
        seconds_behind=None if worst is None else worst.seconds_behind,
        worst=worst,
        seconds_until_loss=None if nearest is None else nearest.seconds_until_loss,
        nearest_loss=nearest,
        records=_total(flow, "records"),
        bytes=_total(flow, "bytes"),
        lost_records=_total(flow, "lost_records"),
        skipped_records=_total(flow, "skipped_records"),
        records_per_second=speed.records,
        bytes_per_second=speed.bytes,
        backlog_per_second=speed.backlog,
        catch_up_seconds=speed.catch_up_seconds,
        latency_buckets=_sum_buckets(figures),
        latency_sum_ms=sum(each.latency_sum_ms for each in figures),
        slow=dict(slow),
    )


def _total(flow: SourceFlow, name: str) -> int:
    return sum(int(runner.numbers.get(name, 0)) for runner in flow.runners)


def _sum(values: Iterable[int | None]) -> int | None:
    """Of those that are known; None if none is."""
    known = [each for each in values if each is not None]
    return sum(known) if known else None


def _sum_buckets(figures: Sequence[TaskFigures]) -> tuple[int, ...]:
    rows = [each.latency_buckets for each in figures if each.latency_buckets]
    if not rows:
        return (0,) * (len(LATENCY_BOUNDS_MS) + 1)
    return tuple(map(sum, zip(*rows, strict=True)))
