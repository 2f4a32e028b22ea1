"""What this process knows of its own share of a group's work.

Runs on: worker, on threads of the REST API. Reads what is kept anyway.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol
from urllib.parse import urlsplit

from sparkmirror.monitoring.event_log import Event
from sparkmirror.monitoring.gathering.worker_figures import FlowRate, WorkerFigures
from sparkmirror.monitoring.lag.flow_lag import FlowLag
from sparkmirror.monitoring.lag.partition_lag import PartitionLag
from sparkmirror.monitoring.monitored import MonitoredGroup


class Lags(Protocol):
    """What a `LagModel` tells."""

    def partitions(self) -> Sequence[PartitionLag]:
        """All partitions that this process knows of."""

    def flows(self) -> Sequence[FlowLag]:
        """Every source connector of which it knows partitions."""


class Events(Protocol):
    """What an `EventLog` tells."""

    def events(self, since_id: int = 0) -> list[Event]:
        """Those with a higher id, oldest first."""


class OwnFigures:
    """Of this process; `make` says what it knows of one of its groups."""

    def __init__(
        self,
        lags: Lags,
        events: Events,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._lags = lags
        self._events = events
        self._clock_ms = clock_ms

    def make(self, group: MonitoredGroup) -> WorkerFigures:
        """Of one group. Events of no flow, such as lost brokers, are told with every group's."""
        member = group.cluster.member
        names = frozenset(group.cluster.configs.snapshot().connectors)
        flow = flow_of_prefix(group.prefix)
        lags = [lag for lag in self._lags.partitions() if _is_of(lag, names, flow)]
        rates = [
            FlowRate(
                found.flow,
                found.connector,
                found.records_per_second,
                found.bytes_per_second,
                tuple(found.latency_buckets),
            )
            for found in self._lags.flows()
            if found.connector in names and flow in ("", found.flow)
        ]
        events = [
            each for each in self._events.events() if not each.flow or flow in ("", each.flow)
        ]
        return WorkerFigures(
            id=urlsplit(member.own_url).netloc or member.own_url,
            url=member.own_url,
            at_ms=self._clock_ms(),
            leads=member.view.leads,
            partitions=lags,
            rates=rates,
            events=events,
        )


def flow_of_prefix(prefix: str) -> str:
    """The flow of a pair of dedicated mode; "" for a Connect worker, which may have many."""
    source, _, target = prefix.strip("/").partition("/")
    return f"{source}->{target}" if target else ""


def _is_of(lag: PartitionLag, names: frozenset[str], flow: str) -> bool:
    return lag.connector in names and flow in ("", lag.flow)
