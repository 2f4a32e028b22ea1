"""What this worker runs: all connectors and their tasks while it leads, none while it does not.

Runs on: worker. One thread looks at the config topic and at the group, tells each connector's
thread what is wanted, and starts, changes and stops the tasks that the config topic has; it waits
for none of them. Mirrors: org.apache.kafka.connect.runtime.distributed.DistributedHerder.tick.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from sparkmirror.connect.connector import Connector, Task, TaskConfigs
from sparkmirror.connect.entities import ConnectorProps, TargetState
from sparkmirror.connect.group.tenure import Tenure
from sparkmirror.connect.runtime.connector_tasks import ConnectorTasks
from sparkmirror.connect.runtime.status_publisher import (
    ConnectorStatuses,
    TaskStatuses,
    WorkerIdentity,
)
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.runtime.worker_connector import (
    ConnectorTarget,
    PendingRestart,
    WorkerConnector,
)
from sparkmirror.connect.storage.backing_stores import Stores
from sparkmirror.connect.storage.config_records import ConfigSnapshot
from sparkmirror.errors import MirrorError
from sparkmirror.spark.task_runner import TaskRunner

log = logging.getLogger(__name__)

TICK_SECONDS = 0.2
SLOT_SECONDS = 1.0
# At the end, for a connector that has only begun to start: it has nothing to store.
STARTING_SECONDS = 1.0
JOIN_SECONDS = 0.1


class Factory(Protocol):
    """Makes what runs here; `ConnectorFactory` is one, behind threads."""

    def make_connector(self, props: ConnectorProps) -> Connector: ...
    def make_task(self, name: str, configs: TaskConfigs) -> Task: ...


class HerderLoop:
    """Connectors and their tasks, by name of the connector.

    `problem` says why this worker must end: Spark is gone, and nothing here can bring it back.
    """

    def __init__(
        self,
        stores: Stores,
        identity: WorkerIdentity,
        factory: Factory,
        spark: Worker,
        stop_seconds: float = 5.0,
    ) -> None:
        self.problem = ""
        self.last_turn = time.monotonic()
        self._stores = stores
        self._configs = stores.configs
        self._group = stores.group
        self._identity = identity
        self._factory = factory
        self._spark = spark
        self._stop_seconds = stop_seconds
        self._tenure = Tenure(stores.group)
        self._lock = threading.Lock()
        self._connectors: dict[str, WorkerConnector] = {}
        self._tasks: dict[str, ConnectorTasks] = {}
        self._leaving: list[WorkerConnector] = []
        self._leaving_tasks: list[ConnectorTasks] = []
        self._restarts: list[tuple[str, PendingRestart]] = []
        self._has_claimed = False
        # The last error of a turn, so that it is logged once.
        self._said = ""
        self._slots_at = 0.0
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="herder", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._configs.on_change(self._wake.set)
        self._group.on_change(self._wake.set)
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """Stop all connectors and Spark; tells whether all that had anything to store ended."""
        self._stopping.set()
        self._wake.set()
        deadline = time.monotonic() + seconds
        if self._thread.is_alive():
            self._thread.join(seconds)
        self._step_down("the worker ends")
        # Connectors that wait for Spark need not wait any longer.
        self._spark.give_up_start()
        starting_until = time.monotonic() + STARTING_SECONDS
        for connector in self._leaving:
            until = starting_until if connector.is_starting else deadline
            connector.join(max(0.1, until - time.monotonic()))
        for tasks in self._leaving_tasks:
            self._wait_for(tasks, starting_until, deadline)
        has_ended = all(each.has_ended or each.is_starting for each in self._leaving)
        has_ended = has_ended and not any(tasks.has_copied for tasks in self._leaving_tasks)
        self._spark.close()
        return has_ended

    def _wait_for(self, tasks: ConnectorTasks, starting_until: float, deadline: float) -> None:
        """Tasks that have only begun to start have nothing to store."""
        while not tasks.is_idle:
            until = deadline if tasks.has_copied else starting_until
            if time.monotonic() >= until:
                return
            tasks.join(JOIN_SECONDS)
        if self.leads():
            tasks.say_released()

    def wake(self) -> None:
        """Look now."""
        self._wake.set()

    def leads(self) -> bool:
        """Whether this worker leads, and nobody else can."""
        return self._tenure.leads()

    def connector(self, name: str) -> WorkerConnector | None:
        """The connector `name`, if it is kept here."""
        with self._lock:
            return self._connectors.get(name)

    def connectors(self) -> dict[str, Connector]:
        """The connectors that run here, by their names."""
        with self._lock:
            found = {name: each.connector for name, each in self._connectors.items()}
        return {name: connector for name, connector in found.items() if connector is not None}

    def tasks(self) -> dict[str, list[Task]]:
        """The tasks that run here, by the names of their connectors."""
        with self._lock:
            found = dict(self._tasks)
        return {name: tasks.running() for name, tasks in found.items()}

    def is_idle(self, name: str) -> bool:
        """Whether nothing of the connector runs, begins or ends here."""
        connector = self.connector(name)
        return (connector is None or connector.is_idle) and not self._has_tasks(name)

    def restart(self, name: str, restart: PendingRestart) -> bool:
        """Restart what it names; False when the connector is not kept here, or not yet."""
        if restart.tasks:
            tasks = PendingRestart(connector=False, tasks=restart.tasks)
            with self._lock:
                self._restarts.append((name, tasks if restart.connector else restart))
            self._wake.set()
            if not restart.connector:
                return True
        connector = self.connector(name)
        return connector is not None and connector.restart(restart)

    def refresh_soon(self, name: str, topics: list[str]) -> None:
        """A task of the connector misses topics; if it runs elsewhere, it looks by itself."""
        connector = self.connectors().get(name)
        if connector is not None:
            connector.refresh_soon(topics)

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                self.reconcile()
                self._said = ""
            except MirrorError as error:
                self._complain(str(error))
            except Exception:  # the next turn may do better, and nobody else would
                log.exception("looking after the connectors failed")
            self.last_turn = time.monotonic()
            self._wake.wait(TICK_SECONDS)

    def _complain(self, error: str) -> None:
        level = logging.DEBUG if error == self._said else logging.WARNING
        log.log(level, "connectors cannot be looked after: %s", error)
        self._said = error

    def reconcile(self) -> None:
        """One look: who leads, and what is wanted."""
        self._leaving = [each for each in self._leaving if not each.has_ended]
        self._leaving_tasks = [each for each in self._leaving_tasks if not each.is_idle]
        if self._tenure.has_lapsed():
            self._step_down("this worker leads no more")
        if self._group.tenure is None:
            self._close_spark()
        elif self.leads() and not self._leaving and not self._leaving_tasks:
            self._take_over()
            snapshot = self._configs.snapshot()
            self._apply(snapshot)
            self._apply_tasks(snapshot)
            self._restart_tasks()
            self._publish(snapshot)
            self._check_spark()

    def _take_over(self) -> None:
        if not self._has_claimed:
            self._configs.claim()
            self._has_claimed = True
            log.info("this worker leads, and runs the connectors")

    def _apply(self, snapshot: ConfigSnapshot) -> None:
        for name in self._connectors.keys() - snapshot.connectors.keys():
            if not self._connectors[name].want(None):
                with self._lock:
                    del self._connectors[name]
        for name, config in snapshot.connectors.items():
            self._want(
                name, ConnectorTarget(config, _target(snapshot, name), _tasks(snapshot, name))
            )

    def _want(self, name: str, desired: ConnectorTarget) -> None:
        connector = self._connectors.get(name)
        if connector is not None and connector.want(desired):
            return
        connector = WorkerConnector(
            name,
            self._factory.make_connector,
            ConnectorStatuses(name, self._stores, self._identity),
            self.leads,
            lambda: self._has_tasks(name),
            self._stop_seconds,
        )
        connector.want(desired)
        with self._lock:
            self._connectors[name] = connector
        connector.start()

    # -- tasks -------------------------------------------------------------------------------------

    def _apply_tasks(self, snapshot: ConfigSnapshot) -> None:
        """All tasks of the config topic run here: this worker leads."""
        for name in snapshot.connectors.keys() - self._tasks.keys():
            tasks = ConnectorTasks(
                name, self._task_maker(name), TaskStatuses(name, self._stores, self._identity)
            )
            with self._lock:
                self._tasks[name] = tasks
        for name, tasks in list(self._tasks.items()):
            configs = dict(enumerate(_tasks(snapshot, name)))
            tasks.want(configs, _target(snapshot, name))
            if name not in snapshot.connectors and tasks.is_idle:
                with self._lock:
                    del self._tasks[name]

    def _task_maker(self, name: str) -> Callable[[TaskConfigs], Task]:
        return lambda configs: self._factory.make_task(name, configs)

    def _restart_tasks(self) -> None:
        with self._lock:
            restarts, self._restarts = self._restarts, []
        for name, restart in restarts:
            tasks = self._tasks.get(name)
            found = [tasks is not None and tasks.restart(number) for number in restart.tasks]
            restart.is_missed = not all(found)
            if any(found):
                log.info("connector %s: restart of %s", name, restart)
            restart.done.set()

    def _publish(self, snapshot: ConfigSnapshot) -> None:
        for name, tasks in self._tasks.items():
            if name in snapshot.connectors:
                tasks.publish()

    def _has_tasks(self, name: str) -> bool:
        with self._lock:
            tasks = self._tasks.get(name)
        return tasks is not None and not tasks.is_idle

    def _step_down(self, why: str) -> None:
        self._has_claimed = False
        with self._lock:
            connectors, self._connectors = list(self._connectors.values()), {}
            tasks, self._tasks = list(self._tasks.values()), {}
        if connectors:
            log.info("%s: %d connectors stop here", why, len(connectors))
        for each in tasks:
            each.leave()
        for connector in connectors:
            connector.leave()
        self._leaving += connectors
        self._leaving_tasks += tasks

    # -- Spark -------------------------------------------------------------------------------------

    def _close_spark(self) -> None:
        if not self._leaving and not self._leaving_tasks:
            self._spark.close()

    def _check_spark(self) -> None:
        if time.monotonic() < self._slots_at:
            return
        self._slots_at = time.monotonic() + SLOT_SECONDS
        runners = [runner for tasks in self.tasks().values() for runner in runners_of(tasks)]
        try:
            self._spark.check_alive()
            for runner in runners:
                runner.check_slot(len(runners))
        except MirrorError as error:
            if not self.problem:
                log.error("%s", error)  # noqa: TRY400
            self.problem = str(error)


def runners_of(tasks: Iterable[Task]) -> list[TaskRunner]:
    """Those of tasks that Spark runs."""
    found = (task.runner for task in tasks)
    return [runner for runner in found if runner is not None]


def _tasks(snapshot: ConfigSnapshot, name: str) -> Sequence[Mapping[str, str]]:
    return snapshot.tasks.get(name, ())


def _target(snapshot: ConfigSnapshot, name: str) -> TargetState:
    return _target_state(snapshot.target_states.get(name))


def _target_state(text: str | None) -> TargetState:
    """Of later versions there may be others: like Connect, take those for STARTED."""
    return TargetState(text) if text in set(TargetState) else TargetState.STARTED
