"""The leader's plan: which worker runs which task, and which tasks all workers hold.

Runs on: worker. The member's thread makes the plan, once per generation, from the members' reports
and the config topic; any thread reads it. From it the leader knows which tasks are still ending on
other workers: until they have ended, their connector must not be deleted, its offsets must not be
altered, and its partitions must not move between tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sparkmirror.connect.group.assignor import assign
from sparkmirror.connect.group.connect_protocol import Assignment, MemberState
from sparkmirror.connect.runtime.connector_tasks import SOURCE_TASK, task_units
from sparkmirror.connect.storage.config_records import ConfigSnapshot
from sparkmirror.mirror.task_configs import TASK_CLASS
from sparkmirror.types import ConnectorTaskId

Tasks = frozenset[ConnectorTaskId]


@dataclass(frozen=True, slots=True)
class _Plan:
    """One value, so that other threads never see half of a plan.

    `needed_offset`: the furthest that any member has read the config topic. `urls`: the worker that
    each task was assigned to. `held`: tasks that a member runs, ends or may start.
    """

    configured: Tasks = frozenset()
    config_offset: int = -1
    needed_offset: int = -1
    assignments: Mapping[str, Assignment] = field(default_factory=dict)
    urls: Mapping[ConnectorTaskId, str] = field(default_factory=dict)
    held: Tasks = frozenset()


class TaskPlan:
    """The plans of the generations in which this worker leads."""

    def __init__(
        self,
        snapshot: Callable[[], ConfigSnapshot],
        on_missing: Callable[[str, list[str]], object],
        allows_new: Callable[[], bool] = lambda: True,
    ) -> None:
        """`on_missing`: tasks of this connector, on any worker, cannot find these target topics.

        `allows_new`: whether tasks may start that no worker runs yet.
        """
        self._snapshot = snapshot
        self._on_missing = on_missing
        self._allows_new = allows_new
        self._plan = _Plan()

    def make(self, members: Mapping[str, MemberState]) -> Mapping[str, Assignment]:
        """The assignment of each member, by member id. Called on the member's thread."""
        snapshot = self._snapshot()
        configured = self._allowed(snapshot, _all_of(each.tasks for each in members.values()))
        found = assign(
            members,
            configured,
            self._plan.assignments,
            config_offset=snapshot.end_offset,
            copying=copying_tasks(snapshot),
        )
        self._plan = _Plan(
            configured,
            snapshot.end_offset,
            max(member.config_offset for member in members.values()),
            found,
            {task: members[name].url for name, each in found.items() for task in each.tasks},
            _all_of(each.tasks for each in members.values())
            | _all_of(each.tasks for each in found.values()),
        )
        for member in members.values():
            for name, topics in member.missing.items():
                self._on_missing(name, list(topics))
        return found

    def is_outdated(self, snapshot: ConfigSnapshot) -> bool:
        """Whether the configured tasks have changed, or the leader has caught up with members."""
        plan = self._plan
        has_caught_up = plan.config_offset < plan.needed_offset <= snapshot.end_offset
        return has_caught_up or self._allowed(snapshot, plan.held) != plan.configured

    def _allowed(self, snapshot: ConfigSnapshot, held: Tasks) -> Tasks:
        configured = configured_tasks(snapshot)
        return configured if self._allows_new() else configured & held

    def holds(self, task: ConnectorTaskId) -> bool:
        """Whether a worker runs, ends or may start the task."""
        return task in self._plan.held

    def holds_any(self, connector: str) -> bool:
        """Whether a worker runs, ends or may start a task of the connector."""
        return any(task.connector == connector for task in self._plan.held)

    def url_of(self, task: ConnectorTaskId) -> str:
        """The worker that the task was assigned to; "" if none."""
        return self._plan.urls.get(task, "")


def configured_tasks(snapshot: ConfigSnapshot) -> Tasks:
    """All tasks in the config topic; tasks that run together are listed by their lowest."""
    return frozenset(
        ConnectorTaskId(name, unit)
        for name in snapshot.connectors
        for unit in task_units(dict(enumerate(snapshot.tasks.get(name, ()))))
    )


def copying_tasks(snapshot: ConfigSnapshot) -> Tasks:
    """The tasks that run on Spark."""
    return frozenset(
        ConnectorTaskId(name, number)
        for name, tasks in snapshot.tasks.items()
        for number, task in enumerate(tasks)
        if task.get(TASK_CLASS) == SOURCE_TASK
    )


def _all_of(parts: Iterable[Tasks]) -> Tasks:
    return frozenset().union(*parts)
