"""Which source connectors there are, what runs of them here, and what runs nowhere.

Runs on: worker; for any thread. Reads what the worker keeps anyway.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sparkmirror.config.connector_spec import ConnectorSpec, parse_connector
from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.connect.connector import Task
from sparkmirror.connect.entities import ConnectorProps, State, TargetState
from sparkmirror.connect.runtime.assigned_tasks import target_state
from sparkmirror.connect.storage.config_records import ConfigSnapshot
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.policy import ReplicationPolicy, flow_policy
from sparkmirror.mirror.task_configs import PARTITIONS, assigned_partitions
from sparkmirror.monitoring.monitored import MonitoredGroup
from sparkmirror.spark.task_runner import TaskRunner, TaskState, reason_of
from sparkmirror.types import TopicPartition

SOURCE_CONNECTOR = "MirrorSourceConnector"
CLASS = "connector.class"
# The number of a task where there is none: partitions of a stopped connector.
NO_TASK = -1
# How soon settings that cannot be used are tried again.
AGAIN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class FlowTask:
    """A task that runs here, or one that runs on no worker; then `runner` is None.

    `problem` says why it does not copy; "" if it does.
    """

    number: int
    partitions: Sequence[TopicPartition]
    runner: TaskRunner | None = None
    is_failed: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SourceFlow:
    """One source connector. `tasks` are those that this process has to report about.

    `spec` is None where the settings cannot be used. `is_stopped`: it has no tasks, and its
    partitions are those with a stored position.
    """

    key: tuple[str, str]
    name: str
    flow: str
    spec: ConnectorSpec[SourceConfig] | None
    policy: ReplicationPolicy | None
    is_paused: bool
    is_stopped: bool
    tasks: Sequence[FlowTask]

    def target_of(self, source: TopicPartition) -> TopicPartition:
        """Where a partition is copied to."""
        if self.policy is None or self.spec is None:
            return source
        alias = self.spec.config.source_alias
        remote = self.policy.format_remote_topic(alias, source.topic)
        return TopicPartition(remote, source.partition)

    @property
    def runners(self) -> list[TaskRunner]:
        """Of the tasks that run here."""
        return [task.runner for task in self.tasks if task.runner is not None]


@dataclass(slots=True)
class _Parsed:
    props: ConnectorProps
    # What a config provider does not find now may be there later.
    again_at: float
    spec: ConnectorSpec[SourceConfig] | None = None
    policy: ReplicationPolicy | None = None


class SourceFlows:
    """Remembers the settings of connectors as long as they stay the same."""

    def __init__(self) -> None:
        self._parsed: dict[tuple[str, str], _Parsed] = {}

    def of(self, groups: Sequence[MonitoredGroup]) -> list[SourceFlow]:
        """All source connectors of these groups, by their names."""
        return [flow for group in groups for flow in self._of_group(group)]

    def _of_group(self, group: MonitoredGroup) -> Iterator[SourceFlow]:
        snapshot = group.cluster.configs.snapshot()
        running = group.cluster.loop.tasks()
        for name, props in sorted(snapshot.connectors.items()):
            if not (props.get(CLASS) or "").endswith(SOURCE_CONNECTOR):
                continue
            parsed = self._parse(group, name, props)
            state = target_state(snapshot, name)
            tasks = [_running(task) for task in running.get(name, ())]
            if group.cluster.loop.leads():
                tasks += _nowhere(group, snapshot, name, {task.number for task in tasks})
            yield SourceFlow(
                key=(group.prefix, name),
                name=name,
                flow=_flow(tasks, parsed),
                spec=parsed.spec,
                policy=parsed.policy,
                is_paused=state is not TargetState.STARTED,
                is_stopped=state is TargetState.STOPPED and group.cluster.loop.leads(),
                tasks=tasks,
            )

    def _parse(self, group: MonitoredGroup, name: str, props: ConnectorProps) -> _Parsed:
        key = group.prefix, name
        known = self._parsed.get(key)
        now = time.monotonic()
        if known is not None and known.props == props and (known.spec or now < known.again_at):
            return known
        found = _Parsed(props, now + AGAIN_SECONDS)
        try:
            found.spec = parse_connector(props, group.cluster.file).narrowed(SourceConfig)
            found.policy = None if found.spec is None else flow_policy(found.spec.config)
        except MirrorError:
            pass  # the status of the connector says what is wrong
        self._parsed[key] = found
        return found


def _flow(tasks: Sequence[FlowTask], parsed: _Parsed) -> str:
    if parsed.spec is not None:
        return str(parsed.spec.flow)
    named = [task.runner.task for task in tasks if task.runner is not None]
    return named[0].partition("|")[0] if named else ""


def _running(task: Task) -> FlowTask:
    runner, number = task.runner, task.ids[0]
    partitions = _partitions(task.configs[number])
    if runner is None:
        error = task.last_error.partition("\n")[0]
        return FlowTask(number, partitions, None, bool(error), error or "the task is starting")
    if runner.state is TaskState.RUNNING:
        return FlowTask(number, partitions, runner)
    if runner.has_failed:
        why = f"task {number} FAILED: {reason_of(runner.trace)}"
        return FlowTask(number, partitions, runner, is_failed=True, problem=why)
    return FlowTask(number, partitions, runner, problem=f"task {number} waits for Spark")


def _nowhere(
    group: MonitoredGroup, snapshot: ConfigSnapshot, name: str, here: set[int]
) -> Iterator[FlowTask]:
    """Tasks that run on no worker; for the leader, who alone knows."""
    loop = group.cluster.loop
    is_started = target_state(snapshot, name) is TargetState.STARTED
    statuses = group.cluster.statuses.tasks(name)
    for number, config in enumerate(snapshot.tasks.get(name, ())):
        if number in here or (is_started and loop.worker_of(name, number)):
            continue
        status = statuses.get(number)
        is_failed = status is not None and status.state == State.FAILED
        problem = f"task {number} is assigned to no worker" if is_started else ""
        yield FlowTask(number, _partitions(config), None, is_failed, problem)


def _partitions(config: Mapping[str, str]) -> Sequence[TopicPartition]:
    return _parsed_partitions(config.get(PARTITIONS, ""))


@lru_cache(maxsize=512)
def _parsed_partitions(text: str) -> Sequence[TopicPartition]:
    """Remembered: it is asked every second, and may be of thousands of partitions."""
    try:
        return tuple(assigned_partitions({PARTITIONS: text}))
    except ValueError:
        return ()  # of another version of Connect, perhaps
