"""The contracts of connectors and tasks: a connector configures its tasks, workers run them.

Runs on: worker. Types only. A connector runs on the leader and owns no task: it lists the task
configurations, the leader writes them to the config topic, and each worker runs the tasks that it
is assigned. So a change of leader stops no task.
Mirrors: org.apache.kafka.connect.{connector.Connector,connector.ConnectorContext,connector.Task}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.connect.entities import ConnectorProps, State
from sparkmirror.connect.states import TaskEvent
from sparkmirror.mirror.task_configs import TaskSettings
from sparkmirror.spark.link.lease import Lender
from sparkmirror.spark.task_runner import TaskRunner

TaskConfigs = Mapping[int, Mapping[str, str]]
"""The configurations of some tasks of one connector, by task number."""


@dataclass(frozen=True, slots=True)
class StateAndTrace:
    """The state of a connector or of a task, and why it is in it."""

    state: State
    trace: str = ""


@dataclass(frozen=True, slots=True)
class TaskReport:
    """A task's condition, as an event for the table of states."""

    event: TaskEvent
    trace: str = ""


class ConnectorContext(Protocol):
    """What a connector may request from the worker that runs it; for any thread."""

    def request_task_reconfiguration(self) -> None:
        """`task_configs` may have changed."""

    def stored_tasks(self) -> Sequence[Mapping[str, str]]:
        """The tasks in the config topic; none if they were written with another `tasks.max`."""


class Connector(Protocol):
    """One connector, on the leader only. `connect`, `start`, `stop`, `join` are called once each.

    `task_class` is the name that MirrorMaker 2's tasks have. `notice`: what users should know
    although nothing is wrong, "" if nothing.
    """

    task_class: str

    @property
    def notice(self) -> str: ...

    @property
    def last_error(self) -> str:
        """Why the connector cannot do its work; empty while it can."""

    def connect(self) -> None:
        """Connect to the clusters; changes nothing. Raises KafkaError."""

    def start(self, context: ConnectorContext) -> None:
        """Start. Raises MirrorError."""

    def refresh(self) -> str:
        """Look for changes now, on the connector's thread; return what failed, "" if nothing."""

    def refresh_soon(self, topics: Sequence[str]) -> None:
        """A task cannot find these target topics."""

    def task_configs(self) -> Sequence[TaskSettings] | None:
        """The settings that differ per task; None until the connector knows its tasks."""

    def stop(self) -> None:
        """Stop; does not wait."""

    def join(self, seconds: float) -> bool:
        """Wait for the end and close everything; return whether it ended in time."""


class TaskWork(Protocol):
    """One run of a task. `connect`, `start`, `stop`, `join` are called once each, on its thread.

    `runner`: None if Spark has no part in it.
    """

    @property
    def last_error(self) -> str:
        """Why the task cannot do its work; empty while it can."""

    @property
    def runner(self) -> TaskRunner | None: ...

    def connect(self) -> None:
        """Connect to what it needs; it writes nothing yet. Raises MirrorError."""

    def start(self) -> None:
        """Start."""

    def look(self) -> None:
        """Called every few seconds."""

    def reconfigure(self, configs: TaskConfigs) -> None:
        """Apply these configurations without a restart. MirrorError: try again."""

    def restart(self) -> bool:
        """Restart now, if it can do so by itself; False: the caller must make a new one."""

    def stop(self) -> None:
        """Commit and stop; does not wait."""

    def join(self, seconds: float) -> bool:
        """Wait for the end and close everything; return whether everything was stored."""

    @property
    def is_released(self) -> bool:
        """After `join`: whether nothing that it sent can still arrive."""

    def report(self) -> TaskReport:
        """Its condition; for any thread."""

    def take_topics(self) -> set[str]:
        """Target topics written since the last call (active topics, KIP-558); for any thread."""


class Task(Protocol):
    """A task on the worker that it is assigned to, through all of its runs; for any thread.

    `ids`: its number, or all numbers of a checkpoint connector: its tasks are one unit, because
    each of them would read the whole offset map. `is_clean`: whether its last run stored all that
    it had to.
    """

    name: str
    configs: TaskConfigs

    @property
    def is_clean(self) -> bool: ...

    @property
    def last_error(self) -> str:
        """Why the task cannot do its work; empty while it can."""

    @property
    def ids(self) -> tuple[int, ...]: ...

    @property
    def work(self) -> TaskWork | None:
        """Its life, None while it is between two."""

    @property
    def runner(self) -> TaskRunner | None:
        """What keeps it running on Spark; None before it has started, or without Spark."""

    @property
    def has_ended(self) -> bool:
        """Whether it holds nothing any more: another worker, or its successor, may start it."""

    @property
    def is_starting(self) -> bool:
        """Whether it is still starting and so has nothing to store."""

    def start(self) -> None:
        """Start; failures are retried."""

    def reconfigure(self, configs: TaskConfigs) -> None:
        """Add and remove partitions or groups while the task runs."""

    def restart(self) -> None:
        """Commit, stop and start again now, without waiting for the back-off of a failure."""

    def stop(self) -> None:
        """Commit and stop, or be killed after a timeout; does not wait."""

    def join(self, seconds: float) -> None:
        """Wait for the end."""

    def report(self) -> TaskReport:
        """Its condition."""

    def take_topics(self) -> set[str]:
        """Target topics written since the last call."""


class WorkerFactory(Protocol):
    """Makes the connectors and tasks of a worker."""

    def make_connector(self, props: ConnectorProps) -> Connector: ...
    def make_task(self, name: str, configs: TaskConfigs, lease: Lender) -> Task:
        """`lease` returns for how many seconds the task may still write."""
