"""The tasks that this worker was assigned: starts, changes and ends them, and shows their states.

Runs on: worker. The herder's thread owns it and never waits here; `held` and `running` are for any
thread. A task that was taken from this worker stays in `held` until nothing that it has sent can
arrive any more: until then the leader gives it to no other worker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence

from sparkmirror.connect.connector import Task, TaskConfigs
from sparkmirror.connect.entities import TargetState
from sparkmirror.connect.runtime.connector_tasks import ConnectorTasks, task_units
from sparkmirror.connect.runtime.status_publisher import TaskStatuses
from sparkmirror.connect.storage.config_records import ConfigSnapshot
from sparkmirror.types import ConnectorTaskId

MakeTask = Callable[[str, TaskConfigs], Task]


class AssignedTasks:
    """By connector. `make` makes a task that is not started yet."""

    def __init__(self, make: MakeTask, statuses: Callable[[str], TaskStatuses]) -> None:
        self._make = make
        self._statuses = statuses
        self._lock = threading.Lock()
        self._connectors: dict[str, ConnectorTasks] = {}

    # -- for any thread ----------------------------------------------------------------------------

    def held(self) -> frozenset[ConnectorTaskId]:
        """Those that run here or are ending; tasks that run together are named by the lowest."""
        return frozenset(
            ConnectorTaskId(name, task.ids[0])
            for name, tasks in self._all()
            for task in tasks.held()
        )

    def running(self) -> dict[str, list[Task]]:
        """Those that run, by the names of their connectors."""
        return {name: tasks.running() for name, tasks in self._all()}

    @property
    def has_copied(self) -> bool:
        """Whether something runs or ends that may have positions to store."""
        return any(tasks.has_copied for _, tasks in self._all())

    @property
    def ended_clean(self) -> bool:
        """Whether all that ended here stored what they had to, since `count_ends`."""
        return all(tasks.ended_clean for _, tasks in self._all())

    def count_ends(self) -> None:
        """The process stops: from now on it matters how tasks end."""
        for _, tasks in self._all():
            tasks.count_ends()

    def _all(self) -> list[tuple[str, ConnectorTasks]]:
        with self._lock:
            return list(self._connectors.items())

    # -- the herder's thread -----------------------------------------------------------------------

    def apply(self, assigned: Collection[ConnectorTaskId], snapshot: ConfigSnapshot) -> None:
        """Run these from now on, as the config topic says, and no others."""
        with self._lock:
            for name in snapshot.connectors.keys() - self._connectors.keys():
                tasks = ConnectorTasks(name, self._maker(name), self._statuses(name))
                self._connectors[name] = tasks
        for name, tasks in self._all():
            configs = dict(enumerate(snapshot.tasks.get(name, ())))
            tasks.want(
                _assigned_of(name, configs, assigned), target_state(snapshot, name), configs.keys()
            )
            if name not in snapshot.connectors and tasks.is_idle:
                with self._lock:
                    del self._connectors[name]

    def publish(self, snapshot: ConfigSnapshot) -> None:
        """Write the states that have changed."""
        for name, tasks in self._all():
            if name in snapshot.connectors:
                tasks.publish()

    def restart(self, task: ConnectorTaskId) -> bool:
        """Whether it is here."""
        with self._lock:
            tasks = self._connectors.get(task.connector)
        return tasks is not None and tasks.restart(task.task)

    def abandon(self) -> None:
        """Others may run them now: all end, and nothing is written of them."""
        for _, tasks in self._all():
            tasks.abandon()

    def join(self, seconds: float) -> None:
        """Wait for those that end, but for each no longer than that."""
        for _, tasks in self._all():
            tasks.join(seconds)

    def _maker(self, name: str) -> Callable[[TaskConfigs], Task]:
        return lambda configs: self._make(name, configs)


def _assigned_of(
    name: str,
    configs: Mapping[int, Mapping[str, str]],
    assigned: Collection[ConnectorTaskId],
) -> TaskConfigs:
    return {
        number: config
        for key, unit in task_units(configs).items()
        if ConnectorTaskId(name, key) in assigned
        for number, config in unit.items()
    }


def target_state(snapshot: ConfigSnapshot, name: str) -> TargetState:
    """Later versions may have others: like Connect, take those for STARTED."""
    text = snapshot.target_states.get(name)
    return TargetState(text) if text in set(TargetState) else TargetState.STARTED


def stored_tasks(snapshot: ConfigSnapshot, name: str) -> Sequence[Mapping[str, str]]:
    """The settings of a connector's tasks."""
    return snapshot.tasks.get(name, ())
