"""A worker's topics, its group and its connectors in memory, for tests of the herder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

from sparkmirror.config.worker.worker_file import WorkerFile, parse_worker_file
from sparkmirror.connect.connector import TaskConfigs
from sparkmirror.connect.entities import ConnectorProps, Json, State
from sparkmirror.connect.group.connect_protocol import Assignment, MemberState
from sparkmirror.connect.group.group_place import GroupView
from sparkmirror.connect.group.member_protocols import PlanAssignments
from sparkmirror.connect.runtime.herder import DistributedHerder
from sparkmirror.connect.runtime.herder_loop import HerderLoop
from sparkmirror.connect.runtime.status_publisher import WorkerIdentity
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.storage.backing_stores import StoredStatus, Stores
from sparkmirror.connect.storage.memory_stores import (
    MemoryConfigBackingStore,
    MemoryStatusBackingStore,
)
from sparkmirror.connect.thread_task import ThreadTask
from sparkmirror.errors import MirrorError
from sparkmirror.retry import wait_for
from sparkmirror.spark.link.lease import Lender, is_over
from sparkmirror.types import ConnectorTaskId
from tests.connect.connector_fakes import SECONDS, FakeRunning, FakeWork

WORKER_ID = "worker-1:8083"
OTHER_ID = "worker-2:8083"
# As a member of the group.
OWN = "member-1"
NAME = "a->b.MirrorHeartbeatConnector"
CONFIG: dict[str, str | None] = {
    "name": NAME,
    "connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
    "source.cluster.alias": "a",
    "target.cluster.alias": "b",
    "source.cluster.bootstrap.servers": "127.0.0.1:1",
    "target.cluster.bootstrap.servers": "127.0.0.1:1",
    "tasks.max": "1",
}


class FakeConfigs(MemoryConfigBackingStore):
    """A config topic that is read back at once."""

    def __init__(self) -> None:
        super().__init__()
        self.claims = 0
        self.puts: list[tuple[str, int]] = []
        self.failures: list[MirrorError] = []

    def claim(self) -> None:
        self.claims += 1

    def put_tasks(self, name: str, configs: Sequence[Mapping[str, str]]) -> None:
        if self.failures:
            raise self.failures.pop()
        self.puts.append((name, len(configs)))
        super().put_tasks(name, configs)


class FakeStatuses(MemoryStatusBackingStore):
    """A status topic that is read back at once; `said` has every write of a state."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[tuple[str, int | None, str]] = []

    def put_connector(self, name: str, status: StoredStatus) -> None:
        self.said.append((name, None, status.state))
        super().put_connector(name, status)

    def put_task(self, name: str, task: int, status: StoredStatus) -> None:
        self.said.append((name, task, status.state))
        super().put_task(name, task, status)

    def put_topic(self, topic: str, name: str, task: int, now_ms: int) -> None:
        assert now_ms > 0
        assert task >= 0
        super().put_topic(topic, name, task, now_ms)


class FakeOffsets:
    """An offsets topic, by connector."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[Json, Json]]] = {}

    def list(self, connector: str) -> Sequence[tuple[Json, Json]]:
        return list(self.rows.get(connector, ()))

    def write(self, connector: str, rows: Sequence[tuple[Json, Json | None]]) -> None:
        for partition, offset in rows:
            left = [row for row in self.list(connector) if row[0] != partition]
            self.rows[connector] = left + ([] if offset is None else [(partition, offset)])


class FakeGroup:
    """A group of this worker alone, which leads it until a test says otherwise.

    `others` are further members, by id, as they would describe themselves.
    """

    def __init__(self) -> None:
        self.leads = True
        self.generation = 7
        self.tenures = 1
        self.memberships = 1
        self.is_in_doubt = False
        self.leader_url = "http://worker-1:8083/"
        self.others: dict[str, MemberState] = {}
        self.rejoins = 0
        self.is_draining = False
        self.assignment: Assignment | None = Assignment()
        self.describe: Callable[[], MemberState] | None = None
        self.plan: PlanAssignments | None = None
        self._callbacks: list[Callable[[], None]] = []

    @property
    def is_leader(self) -> bool:
        return self.leads and not self.is_in_doubt

    @property
    def tenure(self) -> int | None:
        return self.tenures if self.leads else None

    @property
    def view(self) -> GroupView:
        return GroupView(
            OWN,
            self.generation,
            leads=self.leads,
            assignment=self.assignment,
            membership=self.memberships,
        )

    @property
    def membership(self) -> int | None:
        return self.memberships or None

    def lease_seconds(self) -> float:
        return 0.0 if self.is_in_doubt or not self.memberships else 60.0

    def lend_to(self, task: ConnectorTaskId, view: GroupView) -> Callable[[], float]:
        assert view.assignment is not None
        assert task in view.assignment.tasks
        return self.lease_seconds

    def request_rejoin(self) -> None:
        """The next generation, at once."""
        self.rejoins += 1
        if self.describe is None or self.plan is None or not self.leads:
            return
        self.generation += 1
        own = replace(self.describe(), draining=self.is_draining)
        found = self.plan({OWN: own, **self.others})
        self.take(found[OWN])

    def take(self, assignment: Assignment) -> None:
        """A generation with this assignment begins."""
        self.assignment = assignment
        for callback in self._callbacks:
            callback()

    def drain(self, seconds: float) -> bool:
        self.is_draining = True
        self.request_rejoin()
        assert self.describe is not None
        with suppress(TimeoutError):
            wait_for(lambda: self.describe and not self.describe().tasks, within=seconds)
        return not self.describe().tasks

    def on_change(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def lose_lead(self) -> None:
        """Another worker leads; this one stays a member."""
        self.leads, self.leader_url = False, "http://worker-2:8083/"
        for callback in self._callbacks:
            callback()

    def lose(self) -> None:
        """The group has gone on without this worker."""
        self.memberships, self.assignment = 0, None
        self.lose_lead()


class FakeSpark:
    """Spark that is never started."""

    slots = 256
    is_up = True

    def __init__(self) -> None:
        self.closed = 0
        self.begun = 0
        self.failure: MirrorError | None = None

    def check_alive(self) -> None:
        if self.failure is not None:
            raise self.failure

    def give_up_start(self) -> None:
        """It does not start."""

    def begin(self) -> None:
        self.begun += 1

    def close_if_elsewhere(self) -> None:
        self.closed += 1


class FakeWorker:
    """The real herder and its loop over fakes. `prepare` gets each connector that is made."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.configs, self.statuses = FakeConfigs(), FakeStatuses()
        self.offsets, self.group, self.spark = FakeOffsets(), FakeGroup(), FakeSpark()
        self.made: list[FakeRunning] = []
        self.prepare: Callable[[FakeRunning], None] = lambda running: None
        self._is_stopping = False
        stores = Stores(self.configs, self.statuses, self.offsets, self.group)
        self.loop = HerderLoop(
            stores,
            WorkerIdentity(WORKER_ID, "4.3.1"),
            self,
            cast("Worker", self.spark),
            1.0,
        )
        self.group.describe, self.group.plan = self.loop.describe, self.loop.plan
        self.file = worker_file(folder, **settings)
        self.herder = DistributedHerder(self.file, stores, self.loop, "cluster-1")

    def start(self) -> None:
        self.loop.start()
        self.herder.start()

    def stop(self) -> None:
        self._is_stopping = True
        for running in self.made:
            running.gate.set()
            running.task_gate.set()
        assert self.loop.stop(SECONDS)

    def make_connector(self, props: ConnectorProps) -> FakeRunning:
        running = FakeRunning(props)
        self.made.append(running)
        self.prepare(running)
        if self._is_stopping:
            running.gate.set()
        return running

    def make_task(self, name: str, configs: TaskConfigs, lease: Lender) -> ThreadTask:
        def make(configs: TaskConfigs) -> FakeWork:
            """Of the connector that was made last, or would be."""
            found = [running for running in self.made if running.config["name"] == name]
            return FakeWork(found[-1] if found else FakeRunning({"name": name}), configs)

        name_of_task = f"{name}-{min(configs)}"
        return ThreadTask(name_of_task, configs, make, lambda: not is_over(lease), 1.0)

    def states(self, name: str = NAME) -> list[str]:
        """Of the connector, if it has one, and of its tasks."""
        status = self.statuses.connector(name)
        tasks = sorted(self.statuses.tasks(name).items())
        return [*([] if status is None else [status.state]), *(each.state for _, each in tasks)]

    def wait_for_states(self, *states: State, name: str = NAME) -> None:
        wait_for(
            lambda: self.states(name) == list(states),
            within=SECONDS,
            describe=lambda: f"{name} is {self.states(name)}, not {list(states)}",
        )


def worker_file(folder: Path, **settings: str) -> WorkerFile:
    raw = {
        "bootstrap.servers": "127.0.0.1:1",
        "group.id": "workers",
        "config.storage.topic": "configs",
        "offset.storage.topic": "offsets",
        "status.storage.topic": "statuses",
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        **{key.replace("_", "."): value for key, value in settings.items()},
    }
    return parse_worker_file(raw, folder / "worker.properties")
