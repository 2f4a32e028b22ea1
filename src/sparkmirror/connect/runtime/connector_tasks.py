"""The tasks of one connector that run on this worker.

Runs on: worker. Owned by the herder's thread, which it never blocks.

No partition ever has two tasks here: a task starts, or gets partitions, only when no other task
holds any of them, not even one that is ending. So when partitions move between tasks, all tasks
concerned end first, as in Kafka Connect.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from sparkmirror.connect.connector import StateAndTrace, Task, TaskConfigs
from sparkmirror.connect.entities import State, TargetState
from sparkmirror.connect.runtime.status_publisher import TaskStatuses
from sparkmirror.connect.states import StateMachine, TaskEvent, task_states
from sparkmirror.mirror.task_configs import (
    MIRROR_PACKAGE,
    PARTITIONS,
    TASK_CLASS,
    connector_settings,
)

log = logging.getLogger(__name__)

SOURCE_TASK = f"{MIRROR_PACKAGE}MirrorSourceTask"


@dataclass(slots=True)
class _Status:
    states: StateMachine[TaskEvent]
    trace: str = ""


class ConnectorTasks:
    """Tasks by number. `make` makes a task without starting it."""

    def __init__(
        self, name: str, make: Callable[[TaskConfigs], Task], statuses: TaskStatuses
    ) -> None:
        self._name = name
        self._make = make
        self._publisher = statuses
        self._configs: TaskConfigs = {}
        self._target = TargetState.STARTED
        # By their lowest number.
        self._running: dict[int, Task] = {}
        self._ending: list[Task] = []
        self._statuses: dict[int, _Status] = {}
        # Tasks that another worker will run as soon as they have ended here.
        self._moving: set[int] = set()
        # Tasks that ended without storing all that they had to.
        self._unclean: set[int] = set()
        self._is_settled = True

    # -- for any thread ----------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Whether no task runs, starts or is ending."""
        return not self._running and all(task.has_ended for task in list(self._ending))

    @property
    def has_copied(self) -> bool:
        """Whether a task that runs or is ending may have positions to store."""
        return any(not task.is_starting for task in self.held())

    @property
    def ended_clean(self) -> bool:
        """Whether all tasks that ended since `count_ends` stored what they had to."""
        return not self._unclean

    def count_ends(self) -> None:
        """Start counting for `ended_clean`: for earlier ends the next owner has copied again."""
        self._unclean.clear()

    def held(self) -> list[Task]:
        """Tasks that run or are ending: they may still write."""
        # In this order: a task that is being stopped is in both lists for a moment, never in none.
        running = list(self._running.copy().values())
        ending = [task for task in list(self._ending) if not task.has_ended]
        return [*running, *(task for task in ending if task not in running)]

    def running(self) -> list[Task]:
        """Tasks that run, in the order of their numbers."""
        return [task for _, task in sorted(self._running.copy().items())]

    # -- the herder's thread -----------------------------------------------------------------------

    def want(self, configs: TaskConfigs, target: TargetState, configured: Collection[int]) -> None:
        """Run these tasks from now on, or none if the target is not STARTED.

        `configured`: all tasks of the connector; the others run on other workers.
        """
        self._moving.intersection_update(configured)
        if configs == self._configs and target is self._target and self._is_settled:
            return
        self._moving |= (self._configs.keys() & set(configured)) - configs.keys()
        self._note(configs, target)
        wanted = task_units(configs) if target is TargetState.STARTED else {}
        for key, task in list(self._running.items()):
            if self._must_end(key, task, wanted):
                for number in self._statuses.keys() & set(task.ids):
                    self._fire(number, TaskEvent.RESTART)
                self._end(key, task)
        waiting = [key for key, unit in wanted.items() if not self._start_or_reconfigure(key, unit)]
        self._is_settled = not waiting and not self._ending

    def restart(self, number: int) -> bool:
        """Restart the task unless it is paused or stopped; return whether it is here."""
        if self._target is not TargetState.STARTED:
            return number in self._configs
        for task in self._running.values():
            if number in task.ids:
                for each in task.ids:
                    self._fire(each, TaskEvent.RESTART)
                self._publish_states()
                task.restart()
                return True
        return False

    def abandon(self) -> None:
        """Stop all tasks without writing anything: other workers may run them now."""
        for key, task in list(self._running.items()):
            self._end(key, task)
        for status in self._statuses.values():
            status.states.fire(TaskEvent.LEASE_OVER)
        self._statuses.clear()
        self._moving.clear()
        self._configs, self._is_settled = {}, False

    def join(self, seconds: float) -> None:
        """Wait for one of the tasks that are ending."""
        for task in self._ending[:1]:
            task.join(seconds)

    def publish(self) -> None:
        """Publish what has changed: states, topics, and which tasks others may run now."""
        self._prune()
        for task in self._running.values():
            found = task.report()
            for number in task.ids:
                status = self._statuses.get(number)
                if status is not None:
                    status.states.fire(found.event)
                    status.trace = found.trace if status.states.state is State.FAILED else ""
            self._publisher.add_topics(task.ids[0], task.take_topics())
        self._publish_states()
        held = {number for task in self.held() for number in task.ids}
        for number in sorted(self._moving - held):
            self._publisher.release(number)
        self._moving &= held

    # -- inside ------------------------------------------------------------------------------------

    def _note(self, configs: TaskConfigs, target: TargetState) -> None:
        self._configs, self._target = configs, target
        for number in self._statuses.keys() - configs.keys():
            event = TaskEvent.RELEASED if number in self._moving else TaskEvent.REMOVED
            self._statuses.pop(number).states.fire(event)
        self._moving -= configs.keys()
        event = TaskEvent.CONNECTOR_STARTED
        if target is not TargetState.STARTED:
            event = TaskEvent.CONNECTOR_PAUSED
        for number in configs:
            self._statuses.setdefault(number, _Status(task_states()))
            self._fire(number, event)

    def _must_end(self, key: int, task: Task, wanted: Mapping[int, TaskConfigs]) -> bool:
        unit = wanted.get(key)
        if unit is None:
            return True
        if unit == task.configs:
            return False
        if _settings(unit) != _settings(task.configs):
            return True
        others = (each for at, each in wanted.items() if at != key)
        return not (_partitions([task.configs]) - _partitions([unit])).isdisjoint(
            _partitions(others)
        )

    def _end(self, key: int, task: Task) -> None:
        self._ending.append(task)
        del self._running[key]
        task.stop()

    def _start_or_reconfigure(self, key: int, unit: TaskConfigs) -> bool:
        """Start or reconfigure the task; False: other tasks still hold some of its partitions."""
        task = self._running.get(key)
        if task is not None and task.configs == unit:
            return True
        held = _partitions(other.configs for other in self.held() if other is not task)
        if not held.isdisjoint(_partitions([unit])):
            return False
        if task is not None:
            task.reconfigure(unit)
            return True
        if any(set(ending.ids) & unit.keys() for ending in self._ending if not ending.has_ended):
            return False
        task = self._make(unit)
        self._running[key] = task
        task.start()
        return True

    def _prune(self) -> None:
        """Drop tasks that have ended, after publishing the last topics that they wrote."""
        for task in [task for task in self._ending if task.has_ended]:
            self._ending.remove(task)
            self._unclean.difference_update(task.ids)
            if not task.is_clean:
                self._unclean.update(task.ids)
            self._publisher.add_topics(task.ids[0], task.take_topics())

    def _fire(self, number: int, event: TaskEvent) -> None:
        status = self._statuses[number]
        status.states.fire(event)
        if status.states.state is not State.FAILED:
            status.trace = ""

    def _publish_states(self) -> None:
        for number, status in sorted(self._statuses.items()):
            self._publisher.show(number, StateAndTrace(status.states.state, status.trace))


def task_units(configs: TaskConfigs) -> dict[int, TaskConfigs]:
    """The tasks that run together, by their lowest number.

    Tasks that copy run separately. Those of a checkpoint connector share one thread, because each
    of them would read the whole offset map.
    """
    if not configs:
        return {}
    if next(iter(configs.values())).get(TASK_CLASS) == SOURCE_TASK:
        return {number: {number: config} for number, config in configs.items()}
    return {min(configs): configs}


def _settings(unit: TaskConfigs) -> Mapping[str, str]:
    return connector_settings(next(iter(unit.values())))


def _partitions(units: Iterable[TaskConfigs]) -> set[str]:
    return {
        part
        for unit in units
        for config in unit.values()
        for part in config.get(PARTITIONS, "").split(",")
        if part
    }
