"""The tasks assigned to this worker: starts, changes and stops them, and publishes their states.

Runs on: worker. The herder's thread owns it and never waits here; `held` and `running` are for any
thread. A task that was revoked stays in `held` until nothing that it sent can still arrive: until
then the leader assigns it to no other worker (KIP-415).
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
    """Tasks by connector. `make` makes a task without starting it."""

    def __init__(self, make: MakeTask, statuses: Callable[[str], TaskStatuses]) -> None:
        self._make = make
        self._statuses = statuses
        self._lock = threading.Lock()
        self._connectors: dict[str, ConnectorTasks] = {}

    # -- for any thread ----------------------------------------------------------------------------

    def held(self) -> frozenset[ConnectorTaskId]:
        """Tasks that run or are ending; tasks that run together are listed by their lowest."""
        return frozenset(
            ConnectorTaskId(name, task.ids[0])
            for name, tasks in self._all()
            for task in tasks.held()
        )

    def running(self) -> dict[str, list[Task]]:
        """Tasks that run, by connector."""
        return {name: tasks.running() for name, tasks in self._all()}

    @property
    def has_copied(self) -> bool:
        """Whether a task that runs or is ending may have positions to store."""
        return any(tasks.has_copied for _, tasks in self._all())

    @property
    def ended_clean(self) -> bool:
        """Whether all tasks that ended since `count_ends` stored what they had to."""
        return all(tasks.ended_clean for _, tasks in self._all())

    def count_ends(self) -> None:
        """Start counting for `ended_clean`: the process stops."""
        for _, tasks in self._all():
            tasks.count_ends()

    def _all(self) -> list[tuple[str, ConnectorTasks]]:
        with self._lock:
            return list(self._connectors.items())

    # -- the herder's thread -----------------------------------------------------------------------

    def apply(self, assigned: Collection[ConnectorTaskId], snapshot: ConfigSnapshot) -> None:
        """Run these tasks from now on, as configured in `snapshot`, and no others."""
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
        """Publish the states that have changed."""
        for name, tasks in self._all():
            if name in snapshot.connectors:
                tasks.publish()

    def restart(self, task: ConnectorTaskId) -> bool:
        """Restart the task; return whether it is here."""
        with self._lock:
            tasks = self._connectors.get(task.connector)
        return tasks is not None and tasks.restart(task.task)

    def abandon(self) -> None:
        """Stop all tasks without writing anything: other workers may run them now."""
        for _, tasks in self._all():
            tasks.abandon()

    def join(self, seconds: float) -> None:
        """Wait for tasks that are ending, at most `seconds` per connector."""
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
    """The connector's target state. Like Connect, treats states of later versions as STARTED."""
    text = snapshot.target_states.get(name)
    return TargetState(text) if text in set(TargetState) else TargetState.STARTED


def stored_tasks(snapshot: ConfigSnapshot, name: str) -> Sequence[Mapping[str, str]]:
    """The settings of a connector's tasks."""
    return snapshot.tasks.get(name, ())
