"""How far a flow is behind as a whole, how fast it copies, and when it will have caught up.

Runs on: worker. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.monitoring.lag.partition_lag import PartitionLag, PartitionState


@dataclass(frozen=True, slots=True)
class FlowLag:
    """One source connector; None means unknown, never zero.

    Sums leave out partitions of which nothing is known: `unknown` counts those. `seconds_behind` is
    that of the worst partition, which `worst` names. Rates are per second, over the last 10 s.
    `backlog_per_second` is how fast the backlog grows (negative: falls). `catch_up_seconds` is an
    estimate, and there is one only after the backlog has fallen for 10 s. `latency_buckets` count
    records acknowledged within `LATENCY_BOUNDS_MS`, the last one those beyond all of them, and
    `latency_sum_ms` is the sum of their latencies.
    """

    flow: str
    connector: str
    partitions: int
    unknown: int
    states: Mapping[PartitionState, int]
    state: PartitionState
    records_behind: int | None
    bytes_behind: int | None
    seconds_behind: float | None
    worst: PartitionLag | None
    seconds_until_loss: float | None
    nearest_loss: PartitionLag | None
    records: int = 0
    bytes: int = 0
    lost_records: int = 0
    skipped_records: int = 0
    records_per_second: float | None = None
    bytes_per_second: float | None = None
    backlog_per_second: float | None = None
    catch_up_seconds: float | None = None
    latency_buckets: Sequence[int] = ()
    latency_sum_ms: float = 0.0
    slow: Mapping[str, int] = field(default_factory=dict)
