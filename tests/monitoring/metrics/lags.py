"""Lag as the lag model would tell it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sparkmirror.monitoring.lag.flow_lag import FlowLag
from sparkmirror.monitoring.lag.partition_lag import PartitionLag, PartitionState
from sparkmirror.spark.figures import LATENCY_BOUNDS_MS
from sparkmirror.types import TopicPartition

FLOW, CONNECTOR = "a->b", "a->b.src"


def partition_lag(topic: str = "t", partition: int = 0, **values: Any) -> PartitionLag:
    """Of a partition that is copied, with these values."""
    defaults: dict[str, Any] = {
        "task": 0,
        "state": PartitionState.LIVE,
        "at_ms": 0,
        "records": 10,
        "bytes": 1000,
        "records_behind": 5,
        "bytes_behind": 500,
        "seconds_behind": 2.0,
    }
    return PartitionLag(
        flow=FLOW,
        connector=CONNECTOR,
        source=TopicPartition(topic, partition),
        target=TopicPartition(f"a.{topic}", partition),
        **{**defaults, **values},
    )


def flow_lag(**values: Any) -> FlowLag:
    """Of the flow as a whole."""
    defaults: dict[str, Any] = {
        "partitions": 1,
        "unknown": 0,
        "states": {PartitionState.LIVE: 1},
        "state": PartitionState.LIVE,
        "records_behind": 5,
        "bytes_behind": 500,
        "seconds_behind": 2.0,
        "worst": None,
        "seconds_until_loss": None,
        "nearest_loss": None,
        "latency_buckets": [1] * (len(LATENCY_BOUNDS_MS) + 1),
        "latency_sum_ms": 1500.0,
    }
    return FlowLag(flow=FLOW, connector=CONNECTOR, **{**defaults, **values})


@dataclass
class StubLag:
    """A lag model that knows what a test says."""

    lags: Sequence[PartitionLag] = ()
    flow_lags: Sequence[FlowLag] = field(default_factory=list)

    def partitions(self) -> Sequence[PartitionLag]:
        return self.lags

    def flows(self) -> Sequence[FlowLag]:
        return self.flow_lags
