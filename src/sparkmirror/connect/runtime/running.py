"""A connector that runs on this worker, whichever of the three it is.

Runs on: worker, the leader. Each of them is started by its keeper and asked by it now and then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sparkmirror.config.connector_spec import ConnectorConfig, ParsedConnector
from sparkmirror.config.mirror_configs import CheckpointConfig, HeartbeatConfig, SourceConfig
from sparkmirror.config.mm2 import HeartbeatPair
from sparkmirror.config.worker_config import WorkerConfig
from sparkmirror.connect.checkpoint.mirror_checkpoint_connector import MirrorCheckpointConnector
from sparkmirror.connect.entities import DEGRADED, State
from sparkmirror.connect.heartbeat.mirror_heartbeat_connector import MirrorHeartbeatConnector
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.source.mirror_source_connector import MirrorSourceConnector
from sparkmirror.mirror.task_configs import TaskSettings, checkpoint_tasks, source_tasks
from sparkmirror.spark.task_runner import TaskRunner, TaskState, reason_of
from sparkmirror.types import FlowName


@dataclass(frozen=True, slots=True)
class StateAndTrace:
    """The state of a connector or of a task, and why it is in it."""

    state: State
    trace: str = ""


RUNNING = StateAndTrace(State.RUNNING)
C = TypeVar("C", bound=MirrorCheckpointConnector | MirrorHeartbeatConnector)


class Running(Protocol):
    """One connector and its tasks. `connect`, `start`, `stop` and `join` come once each.

    `has_own_tasks`: each task can be restarted by itself. `notice`: what users shall know though
    all is well, "" if nothing.
    """

    task_class: str
    has_own_tasks: bool

    @property
    def notice(self) -> str: ...

    def connect(self) -> None:
        """Reach the clusters; nothing is changed anywhere. KafkaError says why it fails."""

    def start(self) -> None:
        """Begin. MirrorError says why it cannot."""

    def stop(self) -> None:
        """Commit and end; does not wait."""

    def join(self, seconds: float) -> bool:
        """Wait for the end and close everything; tells whether all was stored."""

    def tasks(self) -> Sequence[TaskSettings] | None:
        """What each task has of its own; None while it is not known which tasks there will be."""

    def view(self, task: int) -> StateAndTrace:
        """How a task is."""

    def restart(self) -> None:
        """Look for changes now; tasks go on."""

    def restart_task(self, task: int) -> None:
        """Start a task anew; only where it `has_own_tasks`."""

    def take_topics(self) -> dict[str, int]:
        """Target topics that were written since the last call, and by which task."""


ProblemOf = Callable[[ConnectorConfig], str]


def make_running(
    parsed: ParsedConnector, spark: Worker, problem_of: ProblemOf = lambda _: ""
) -> Running:
    """The connector that `parsed` describes, not started yet.

    `problem_of` tells how a connector differs from its partner on the same worker.
    """
    config = parsed.config
    if isinstance(config, SourceConfig):
        return RunningSource(parsed, config, spark)
    if isinstance(config, CheckpointConfig):
        return RunningCheckpoint(parsed, config, lambda: problem_of(config))
    return RunningHeartbeat(parsed, config)


@dataclass(frozen=True, slots=True)
class _SourceFlow:
    """What a MirrorSourceConnector is told of its flow."""

    name: FlowName
    worker: WorkerConfig
    source: SourceConfig
    worker_props: dict[str, str]


@dataclass(frozen=True, slots=True)
class _CheckpointFlow:
    """What a MirrorCheckpointConnector is told of its flow."""

    name: FlowName
    worker: WorkerConfig
    checkpoint: CheckpointConfig


class RunningSource:
    """Its tasks are Spark's: each has a state of its own."""

    task_class = "MirrorSourceTask"
    has_own_tasks = True

    def __init__(self, parsed: ParsedConnector, config: SourceConfig, spark: Worker) -> None:
        props = dict(parsed.worker_props)
        self._connector = MirrorSourceConnector(
            _SourceFlow(parsed.flow, parsed.worker, config, props)
        )
        self._elsewhere = parsed.elsewhere
        self._is_enabled = config.enabled
        self._spark = spark
        self._is_started = False

    @property
    def notice(self) -> str:
        """What does not work beside the copy, else what users shall know though all is well."""
        degraded = self._connector.degraded if self._is_started and self._is_enabled else ""
        return f"{DEGRADED}{degraded}" if degraded else self._elsewhere

    def connect(self) -> None:
        if self._is_enabled:
            self._connector.connect()

    def start(self) -> None:
        if self._is_enabled:
            self._connector.start(*self._spark.get())
        self._is_started = True

    def stop(self) -> None:
        self._connector.stop()

    def join(self, seconds: float) -> bool:
        return self._connector.join(seconds)

    def tasks(self) -> Sequence[TaskSettings] | None:
        return source_tasks(self._connector.assignment) if self._is_started else None

    def view(self, task: int) -> StateAndTrace:
        runner = self._runner(task)
        return StateAndTrace(State.UNASSIGNED) if runner is None else _view_of(runner)

    def restart(self) -> None:
        if self._is_enabled:
            self._connector.refresh()

    def restart_task(self, task: int) -> None:
        runner = self._runner(task)
        if runner is not None:
            runner.restart()

    def take_topics(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for at, runner in enumerate(list(self._connector.tasks)):
            found |= dict.fromkeys(runner.take_topics(), at)
        return found

    @property
    def connector(self) -> MirrorSourceConnector:
        """For what is shown of the flow."""
        return self._connector

    @property
    def task_count(self) -> int:
        """How many tasks want a Spark slot."""
        return len(self._connector.tasks)

    def check_slots(self, tasks_wanted: int) -> None:
        """Say which tasks lack a Spark slot; MirrorError when Spark is gone."""
        for runner in list(self._connector.tasks):
            runner.check_slot(tasks_wanted)

    def _runner(self, task: int) -> TaskRunner | None:
        runners = self._connector.tasks
        return runners[task] if task < len(runners) else None


def _view_of(runner: TaskRunner) -> StateAndTrace:
    """A task that waits for its next attempt has failed, until that one runs."""
    state, trace = runner.state, runner.trace
    if state is TaskState.RUNNING:
        return RUNNING
    if trace:
        reason = reason_of(trace)
        return StateAndTrace(State.FAILED, trace if trace == reason else f"{reason}\n{trace}")
    return StateAndTrace(State.UNASSIGNED)


class _Threads(Generic[C]):
    """A connector that is nothing but threads of this process; its tasks run as long as it does."""

    has_own_tasks = False

    def __init__(self, connector: C, notice: str) -> None:
        self._connector = connector
        self.notice = notice
        self._topics = _Written()

    @property
    def connector(self) -> C:
        """For what is shown of it."""
        return self._connector

    def connect(self) -> None:
        self._connector.connect()

    def start(self) -> None:
        self._connector.start()

    def stop(self) -> None:
        self._connector.stop()

    def join(self, seconds: float) -> bool:
        return self._connector.join(seconds)

    def view(self, task: int) -> StateAndTrace:
        del task
        blocked = self._connector.blocked
        return StateAndTrace(State.FAILED, blocked) if blocked else RUNNING

    def restart_task(self, task: int) -> None:
        """It begins anew with the whole."""

    def take_topics(self) -> dict[str, int]:
        return self._topics.take(self._connector.topic, self._connector.records)


class RunningCheckpoint(_Threads[MirrorCheckpointConnector]):
    """One thread follows all groups; its tasks are those that MirrorMaker 2 would have."""

    task_class = "MirrorCheckpointTask"

    def __init__(
        self, parsed: ParsedConnector, config: CheckpointConfig, problem: Callable[[], str]
    ) -> None:
        flow = _CheckpointFlow(parsed.flow, parsed.worker, config)
        super().__init__(MirrorCheckpointConnector(flow, partner_problem=problem), parsed.elsewhere)
        self._tasks_max = config.tasks_max

    def tasks(self) -> Sequence[TaskSettings] | None:
        if not self._connector.is_enabled:
            return []
        if not self._connector.knows_groups:
            return None
        return checkpoint_tasks(sorted(self._connector.groups), self._tasks_max)

    def restart(self) -> None:
        self._connector.refresh_soon()


class RunningHeartbeat(_Threads[MirrorHeartbeatConnector]):
    """One task, or none when heartbeats are off."""

    task_class = "MirrorHeartbeatTask"

    def __init__(self, parsed: ParsedConnector, config: HeartbeatConfig) -> None:
        pair = HeartbeatPair(parsed.flow, parsed.worker, config)
        super().__init__(MirrorHeartbeatConnector(pair), parsed.elsewhere)

    def tasks(self) -> Sequence[TaskSettings] | None:
        return [{}] if self._connector.is_enabled else []

    def restart(self) -> None:
        """There is nothing to look for."""


class _Written:
    """Whether a topic was written since the last look."""

    def __init__(self) -> None:
        self._seen = 0

    def take(self, topic: str, records: int) -> dict[str, int]:
        seen, self._seen = self._seen, records
        return {topic: 0} if records > seen else {}


def stop_now(running: Running, seconds: float) -> bool:
    """Stop and wait; tells whether all was stored."""
    deadline = time.monotonic() + seconds
    running.stop()
    return running.join(max(0.1, deadline - time.monotonic()))
