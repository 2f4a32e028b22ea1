"""Everything that views are made of, at one time: figures of all workers, clusters, connectors.

Runs on: worker, on threads of the REST API. Views of one second share one picture.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.events import EventKind
from sparkmirror.mirror.policy import flow_policy
from sparkmirror.monitoring.clusters.flow_specs import FlowSpecs, SpecReader
from sparkmirror.monitoring.clusters.flow_watch import FlowWatch, Watches
from sparkmirror.monitoring.gathering.expected import Expected, task_places
from sparkmirror.monitoring.gathering.gathering import Gathered, Gathering, GroupFigures
from sparkmirror.monitoring.gathering.rates import SpeedMeter, Speeds
from sparkmirror.monitoring.views.connectors_view import connector_rows
from sparkmirror.monitoring.views.events_view import event_rows
from sparkmirror.monitoring.views.partition_view import (
    UNKNOWN,
    ExpectedPartition,
    expected_row,
    partition_row,
)
from sparkmirror.monitoring.views.rows.connector_rows import ConnectorRow
from sparkmirror.monitoring.views.rows.flow_rows import EventRow
from sparkmirror.monitoring.views.rows.partition_rows import PartitionRow, TopicRow
from sparkmirror.monitoring.views.topics_view import topic_rows
from sparkmirror.types import TopicPartition

NOT_REPORTED = "its task has not reported yet"
BAD_STATES = ("failed", "stuck")
FINE_STATES = ("live", "idle")


@dataclass(frozen=True, slots=True)
class Picture:
    """`partitions` and `topics` by flow; `latency_max_ms` by flow, of the last minute.

    `caught_up_ms`: when a flow that was behind had caught up, since this worker looks.
    """

    at_ms: int
    gathered: Gathered
    rates: Speeds
    flows: Sequence[FlowSpecs]
    watches: Mapping[str, FlowWatch]
    partitions: Mapping[str, Sequence[PartitionRow]]
    topics: Mapping[str, Sequence[TopicRow]]
    connectors: Sequence[ConnectorRow]
    events: Sequence[EventRow]
    latency_max_ms: Mapping[str, float]
    caught_up_ms: Mapping[str, int]

    @property
    def missing(self) -> list[str]:
        """What is not in here, with the reasons."""
        found = list(self.gathered.missing)
        for specs in self.flows:
            found += [f"connector {name}: {why}" for name, why in specs.problems.items()]
            watch = self.watches[specs.flow]
            for alias, known in zip(specs.aliases, (watch.source, watch.target), strict=True):
                if known.error and known.is_asked:
                    found.append(f"cluster {alias}: {known.error}")
        return list(dict.fromkeys(found))

    def row_of(self, flow: str) -> FlowSpecs | None:
        """The flow of this name."""
        return next((specs for specs in self.flows if specs.flow == flow), None)


def data_partitions(
    picture: Picture, flow: str, rows: Sequence[PartitionRow]
) -> list[PartitionRow]:
    """Without heartbeats: the mirror writes them all the time, and nobody misses them."""
    specs = picture.row_of(flow)
    if specs is None or specs.source is None:
        return list(rows)
    policy = flow_policy(specs.source.config)
    return [row for row in rows if not policy.is_heartbeats_topic(row.topic)]


class Pictures:
    """Takes them; for any thread."""

    def __init__(self, gathering: Gathering, specs: SpecReader, watches: Watches) -> None:
        self._gathering = gathering
        self._specs = specs
        self._watches = watches
        self._rates = SpeedMeter()
        self._expected = Expected()
        self._since: dict[tuple[str, TopicPartition], tuple[str, int]] = {}
        self._late: set[str] = set()
        self._caught_up: dict[str, int] = {}
        self._lock = threading.Lock()
        self._last: Picture | None = None

    def take(self) -> Picture:
        """The newest."""
        gathered = self._gathering.now()
        with self._lock:
            if self._last is None or self._last.gathered is not gathered:
                self._last = self._make(gathered)
            return self._last

    def _make(self, gathered: Gathered) -> Picture:
        flows = self._specs.flows()
        watches = {specs.flow: self._watches.of(specs) for specs in flows}
        rates = self._rates.take(gathered)
        events = event_rows(gathered)
        self._note_states(gathered, events)
        by_group = {figures.group.prefix: figures for figures in gathered.groups}
        partitions = {
            specs.flow: self._partitions(specs, by_group[specs.group.prefix])
            for specs in flows
            if specs.group.prefix in by_group
        }
        topics = {
            flow: topic_rows(rows, rates.topics, watches) for flow, rows in partitions.items()
        }
        slowest: dict[str, float] = {}
        for lag, _ in gathered.partitions:
            slowest[lag.flow] = max(slowest.get(lag.flow, 0.0), lag.latency.most)
        groups = [figures.group for figures in gathered.groups]
        return Picture(
            gathered.at_ms,
            gathered,
            rates,
            flows,
            watches,
            partitions,
            topics,
            connector_rows(groups, partitions),
            events,
            slowest,
            self._note_late(partitions, gathered.at_ms),
        )

    def _note_late(
        self, partitions: Mapping[str, Sequence[PartitionRow]], now_ms: int
    ) -> Mapping[str, int]:
        for flow, rows in partitions.items():
            if any(row.state not in FINE_STATES for row in rows):
                self._late.add(flow)
                self._caught_up.pop(flow, None)
            elif flow in self._late:
                self._late.discard(flow)
                self._caught_up[flow] = now_ms
        return dict(self._caught_up)

    def _partitions(self, specs: FlowSpecs, figures: GroupFigures) -> list[PartitionRow]:
        rows = []
        told = set()
        for lag, worker in figures.partitions:
            if lag.flow == specs.flow:
                told.add((lag.connector, lag.source))
                since = self._since.get((lag.connector, lag.source))
                rows.append(partition_row(lag, worker, None if since is None else since[1]))
        for name in specs.names:
            rows += self._untold(specs, figures, name, told)
        return rows

    def _untold(
        self,
        specs: FlowSpecs,
        figures: GroupFigures,
        name: str,
        told: set[tuple[str, TopicPartition]],
    ) -> list[PartitionRow]:
        shares = self._expected.shares(specs, name)
        if not any((name, tp) not in told for share in shares for tp in share):
            return []
        workers, paused = task_places(specs, name)
        problems = {
            member.url.partition("://")[2].rstrip("/"): member.problem
            for member in figures.members
            if member.problem
        }
        rows: list[PartitionRow] = []
        for number, share in enumerate(shares):
            worker = workers.get(number, "")
            problem = problems.get(worker, "")
            why = f"worker {worker}: {problem}" if problem else NOT_REPORTED
            rows += [
                expected_row(
                    ExpectedPartition(
                        specs.flow,
                        name,
                        number,
                        worker,
                        tp,
                        self._expected.remote(specs, tp.topic),
                        paused or UNKNOWN,
                        why,
                    )
                )
                for tp in share
                if (name, tp) not in told
            ]
        return rows

    def _note_states(self, gathered: Gathered, events: Sequence[EventRow]) -> None:
        """Since when each partition is stuck or has failed: as its event says, else since seen."""
        began = {
            (row.connector, TopicPartition(row.topic, row.partition)): row.time_ms
            for row in reversed(events)
            if row.partition is not None
            and row.ended_ms is None
            and row.kind in (EventKind.STUCK.value, EventKind.FAILED.value)
        }
        found: dict[tuple[str, TopicPartition], tuple[str, int]] = {}
        for lag, _ in gathered.partitions:
            if lag.state in BAD_STATES:
                key = lag.connector, lag.source
                known = self._since.get(key)
                if known is not None and known[0] == lag.state:
                    found[key] = known
                else:
                    found[key] = str(lag.state), min(began.get(key, gathered.at_ms), lag.at_ms)
        self._since = found
