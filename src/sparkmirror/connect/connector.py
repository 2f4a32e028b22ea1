"""The contracts of connectors and tasks: a connector publishes what its tasks do, workers do it.

Runs on: worker. Types only. A connector runs on the leader and owns no task: it tells which tasks
there shall be, the leader writes that to the config topic, and each worker runs the tasks that it
is assigned. So a leader that changes stops no task.
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
"""What the config topic says of some tasks of one connector, by their numbers."""


@dataclass(frozen=True, slots=True)
class StateAndTrace:
    """The state of a connector or of a task, and why it is in it."""

    state: State
    trace: str = ""


@dataclass(frozen=True, slots=True)
class TaskReport:
    """How a task is, as an event for the table of states."""

    event: TaskEvent
    trace: str = ""


class ConnectorContext(Protocol):
    """What a connector may ask of the worker that runs it; for any thread."""

    def request_task_reconfiguration(self) -> None:
        """`task_configs` may say something else now."""

    def stored_tasks(self) -> Sequence[Mapping[str, str]]:
        """Tasks that the config topic has; none if `tasks.max` was another when it got them."""


class Connector(Protocol):
    """One connector, on the leader only. `connect`, `start`, `stop`, `join` come once each.

    `task_class` is the name that MirrorMaker 2's tasks have. `notice`: what users shall know
    though all is well, "" if nothing.
    """

    task_class: str

    @property
    def notice(self) -> str: ...

    @property
    def last_error(self) -> str:
        """What keeps it from its work; empty while it does it."""

    def connect(self) -> None:
        """Reach the clusters; nothing is changed anywhere. KafkaError says why it fails."""

    def start(self, context: ConnectorContext) -> None:
        """Begin. MirrorError says why it cannot."""

    def refresh(self) -> str:
        """Look for changes now, on the connector's own thread; what failed, "" if nothing did."""

    def refresh_soon(self, topics: Sequence[str]) -> None:
        """A task misses these topics."""

    def task_configs(self) -> Sequence[TaskSettings] | None:
        """What each task has of its own; None while it is not known which tasks there will be."""

    def stop(self) -> None:
        """End; does not wait."""

    def join(self, seconds: float) -> bool:
        """Wait for the end and close everything; tells whether it came."""


class TaskWork(Protocol):
    """One life of a task. `connect`, `start`, `stop`, `join` come once each, on its thread.

    `runner`: None if Spark has no part in it.
    """

    @property
    def last_error(self) -> str:
        """What keeps it from its work; empty while it does it."""

    @property
    def runner(self) -> TaskRunner | None: ...

    def connect(self) -> None:
        """Reach what it needs; it writes nothing yet. MirrorError says why it fails."""

    def start(self) -> None:
        """Begin."""

    def look(self) -> None:
        """Called every few seconds."""

    def reconfigure(self, configs: TaskConfigs) -> None:
        """Do what these say, without a new start. MirrorError: try again."""

    def restart(self) -> bool:
        """Begin again now, if it can by itself; False: it needs another life."""

    def stop(self) -> None:
        """Commit and end; does not wait."""

    def join(self, seconds: float) -> bool:
        """Wait for the end and close everything; tells whether all was stored."""

    @property
    def is_released(self) -> bool:
        """After `join`: whether nothing that it has sent can arrive any more."""

    def report(self) -> TaskReport:
        """How it is; for any thread."""

    def take_topics(self) -> set[str]:
        """Target topics that were written since the last call; for any thread."""


class Task(Protocol):
    """A task on the worker that it is assigned to, through all of its lives; for any thread.

    `ids`: its number; all of a checkpoint connector's, which are one unit: split, each would read
    the offset map as a whole. `is_clean`: whether its last life stored all that it had to.
    """

    name: str
    configs: TaskConfigs

    @property
    def is_clean(self) -> bool: ...

    @property
    def last_error(self) -> str:
        """What keeps it from its work; empty while it does it."""

    @property
    def ids(self) -> tuple[int, ...]: ...

    @property
    def work(self) -> TaskWork | None:
        """Its life, None while it is between two."""

    @property
    def runner(self) -> TaskRunner | None:
        """What keeps it running on Spark, if that has a part in it and it has begun."""

    @property
    def has_ended(self) -> bool:
        """Whether it holds nothing any more: another worker, or its successor, may start it."""

    @property
    def is_starting(self) -> bool:
        """Whether it has only begun to start: it has nothing to store."""

    def start(self) -> None:
        """Begin; what fails is tried again."""

    def reconfigure(self, configs: TaskConfigs) -> None:
        """Partitions or groups come and go; the task runs on."""

    def restart(self) -> None:
        """Commit, end, and begin again now; a pause after a failure ends."""

    def stop(self) -> None:
        """Commit and end, or be killed after a while; does not wait."""

    def join(self, seconds: float) -> None:
        """Wait for the end."""

    def report(self) -> TaskReport:
        """How it is."""

    def take_topics(self) -> set[str]:
        """Target topics that were written since the last call."""


class WorkerFactory(Protocol):
    """Makes what a worker runs."""

    def make_connector(self, props: ConnectorProps) -> Connector: ...
    def make_task(self, name: str, configs: TaskConfigs, lease: Lender) -> Task:
        """`lease` tells for how many seconds the task may still write."""
