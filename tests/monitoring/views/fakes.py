"""Workers of one group in memory, for tests of the views: each says what a test gives it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

from sparkmirror.connect.entities import ConnectorStatus, RequestError, State, TaskStatus
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.task_configs import PARTITIONS
from sparkmirror.monitoring.clusters.flow_specs import FlowSpecs
from sparkmirror.monitoring.clusters.flow_watch import FlowWatch, Watches
from sparkmirror.monitoring.event_log import Event
from sparkmirror.monitoring.gathering.worker_figures import (
    FlowRate,
    WorkerFigures,
    encode_figures,
)
from sparkmirror.monitoring.lag.flow_lag import FlowLag
from sparkmirror.monitoring.lag.partition_lag import NoLoss, PartitionLag, PartitionState
from sparkmirror.monitoring.monitored import MonitoredGroup
from sparkmirror.monitoring.views.rows.common import Requester
from sparkmirror.monitoring.views.views import Views
from sparkmirror.types import TopicPartition
from tests.config.worker_files import worker_file
from tests.connect.herder_fakes import FakeConfigs

FLOW, NAME = "a->b", "mm2-msc-a"
NOW = 1_760_000_000_000
OWN, OTHER = "http://worker-1:8083/", "http://worker-2:8083/"
OPS = Requester("ops", "operator", True)
CLUSTERS = {
    "source.cluster.alias": "a",
    "target.cluster.alias": "b",
    "source.cluster.bootstrap.servers": "127.0.0.1:1",
    "target.cluster.bootstrap.servers": "127.0.0.1:1",
}
PACKAGE = "org.apache.kafka.connect.mirror."
SOURCE = {
    "name": NAME,
    "connector.class": f"{PACKAGE}MirrorSourceConnector",
    **CLUSTERS,
    "topics": "orders, payments",
    "source.cluster.sasl.jaas.config": 'x required username="u" password="very-secret-word";',
}


def lag(
    topic: str = "orders",
    partition: int = 0,
    state: PartitionState = PartitionState.LIVE,
    *,
    behind: int | None = 3,
    seconds: float | None = 0.4,
    problem: str = "",
    task: int = 0,
    until_loss: float | None = 600_000.0,
    at_ms: int = NOW,
    position: int = 1000,
    lost: int = 0,
    skipped: int = 0,
    is_running: bool = True,
) -> PartitionLag:
    """A partition of flow a->b."""
    return PartitionLag(
        flow=FLOW,
        connector=NAME,
        task=task,
        source=TopicPartition(topic, partition),
        target=TopicPartition(f"a.{topic}", partition),
        state=state,
        at_ms=at_ms,
        is_running=is_running,
        position=position,
        end_offset=None if behind is None else position + behind,
        records_behind=behind,
        bytes_behind=None if behind is None else behind * 100,
        seconds_behind=seconds,
        oldest_ms=None if seconds is None else NOW - int(seconds * 1000),
        problem=problem,
        records=position,
        bytes=position * 100,
        lost_records=lost,
        skipped_records=skipped,
        retention_ms=604_800_000,
        cleanup_policy="delete",
        seconds_until_loss=until_loss,
        no_loss="" if until_loss is not None else NoLoss.UNKNOWN,
    )


class FakeLags:
    """What this worker's lag model says."""

    def __init__(self, *lags: PartitionLag) -> None:
        self.lags = list(lags)
        self.rates: list[FlowLag] = []

    def partitions(self) -> Sequence[PartitionLag]:
        return self.lags

    def flows(self) -> Sequence[FlowLag]:
        return self.rates


class FakeEvents:
    """What this worker's event log has."""

    def __init__(self) -> None:
        self.found: list[Event] = []

    def events(self, since_id: int = 0) -> list[Event]:
        return [event for event in self.found if event.id > since_id]


class FakePeers:
    """The other workers, by URL: what they answer, or why they do not."""

    def __init__(self) -> None:
        self.answers: dict[str, bytes | MirrorError] = {}
        self.asked: list[str] = []

    def figures_of(self, group: MonitoredGroup, url: str) -> bytes:
        self.asked.append(url)
        found = self.answers[url]
        if isinstance(found, MirrorError):
            raise found
        return found


class FakeHerder:
    """States of connectors, as the status topic has them."""

    def __init__(self) -> None:
        self.statuses: dict[str, ConnectorStatus] = {}

    def connector_status(self, name: str) -> ConnectorStatus:
        if name not in self.statuses:
            raise RequestError(404, f"No status found for connector {name}")
        return self.statuses[name]


class QuietWatch(FlowWatch):
    """Looks at nothing: a test says what is known."""

    def touch(self) -> None:
        self.touches = getattr(self, "touches", 0) + 1


class FakeWatches(Watches):
    """One quiet watch per flow."""

    def __init__(self) -> None:
        super().__init__(QuietWatch)

    def of(self, specs: FlowSpecs) -> FlowWatch:
        self.last = super().of(specs)
        return self.last


@dataclass
class Scene:
    """One worker of a group, and what the others would answer."""

    lags: FakeLags = field(default_factory=FakeLags)
    events: FakeEvents = field(default_factory=FakeEvents)
    peers: FakePeers = field(default_factory=FakePeers)
    herder: FakeHerder = field(default_factory=FakeHerder)
    configs: FakeConfigs = field(default_factory=FakeConfigs)
    watches: FakeWatches = field(default_factory=FakeWatches)
    members: tuple[str, ...] = (OWN,)
    now_ms: int = NOW
    prefix: str = ""

    def __post_init__(self) -> None:
        member = SimpleNamespace(
            own_url=OWN, leader_url=OWN, members=(), view=SimpleNamespace(leads=True)
        )
        self.member = member
        cluster = SimpleNamespace(member=member, configs=self.configs, file=worker_file())
        self.group = MonitoredGroup(self.prefix, cast("None", cluster), cast("None", self.herder))  # type: ignore[arg-type]
        self.views = Views(
            lambda: [self.group],
            self.lags,
            self.events,
            self.peers,
            watches=self.watches,
            clock_ms=lambda: self.now_ms,
        )

    def add_source(self, *shares: str, state: State = State.RUNNING, trace: str = "") -> None:
        """The source connector with a task for each share of partitions, such as `orders-0`."""
        self.configs.put_connector(NAME, SOURCE, None)
        self.configs.put_tasks(NAME, [{PARTITIONS: share} for share in shares])
        tasks = [
            TaskStatus(at, state, "worker-1:8083", trace if state is State.FAILED else "")
            for at in range(len(shares))
        ]
        self.herder.statuses[NAME] = ConnectorStatus(NAME, State.RUNNING, "worker-1:8083", tasks)

    def add_worker(self, url: str, *lags: PartitionLag, at_ms: int = NOW) -> None:
        """Another worker that answers with these partitions."""
        figures = WorkerFigures(
            id=url.removeprefix("http://").rstrip("/"),
            url=url,
            at_ms=at_ms,
            partitions=lags,
            rates=[FlowRate(FLOW, NAME, 10.0, 1000.0, (0, 5, 5))],
        )
        self.peers.answers[url] = json.dumps(encode_figures(figures)).encode()
        self.member.members = (*(self.member.members or (OWN,)), url)

    def look_again(self, milliseconds: int = 1000) -> None:
        """Time goes on: the next view gathers anew."""
        self.now_ms += milliseconds
        self.views._gathering._last = None

    @property
    def watch(self) -> FlowWatch:
        """Of flow a->b."""
        self.views.flows(OPS)
        return self.watches.last
