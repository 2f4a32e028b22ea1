"""The status of a flow, added up over its tasks.

Runs on: worker. Pure: reads what the tasks last reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sparkmirror.connect.connector import Connector, Task
from sparkmirror.connect.source.mirror_source_connector import MirrorSourceConnector
from sparkmirror.spark.task_runner import TaskRunner, TaskState, reason_of


@dataclass(frozen=True, slots=True)
class FlowStatus:
    """Totals since the worker started. `behind` is None until every task knows its positions.

    `stands_by`: why this process does not copy the flow; empty when it does.
    """

    flow: str
    records: int
    bytes: int
    behind: int | None
    tasks: int
    running: int
    lost: int
    skipped: int
    problems: int
    error: str
    stands_by: str = ""


@dataclass(frozen=True, slots=True)
class RunningFlow:
    """A source connector and those of its tasks that run here; compared by name only."""

    connector: str
    flow: str = field(compare=False)
    tasks: Sequence[TaskRunner] = field(compare=False)
    last_error: str = field(compare=False)
    stands_by: str = ""


def running_flows(
    connectors: Mapping[str, Connector], tasks: Mapping[str, Sequence[Task]]
) -> dict[str, RunningFlow]:
    """Flows by connector name; on the leader also those that have no tasks."""
    found = {}
    for name in sorted(connectors.keys() | tasks.keys()):
        connector = connectors.get(name)
        runners = [task.runner for task in tasks.get(name, ()) if task.runner is not None]
        if runners:
            flow = runners[0].task.partition("|")[0]
        elif isinstance(connector, MirrorSourceConnector):
            flow = str(connector.spec.flow)
        else:
            continue
        error = "" if connector is None else connector.last_error
        found[name] = RunningFlow(name, flow, runners, error)
    return found


class ShownFlow(Protocol):
    """A flow that runs, or may run, in this process."""

    @property
    def flow(self) -> object:
        """Its name."""

    @property
    def tasks(self) -> Sequence[TaskRunner]: ...
    @property
    def last_error(self) -> str: ...
    @property
    def stands_by(self) -> str: ...


def summarize(connector: ShownFlow) -> FlowStatus:
    """Add up the tasks of one flow."""
    tasks = list(connector.tasks)
    return FlowStatus(
        flow=str(connector.flow),
        records=sum(task.records for task in tasks),
        bytes=sum(task.bytes for task in tasks),
        behind=_behind(tasks),
        tasks=len(tasks),
        running=sum(task.state is TaskState.RUNNING for task in tasks),
        lost=sum(task.numbers.get("lost_records", 0) for task in tasks),
        skipped=sum(task.numbers.get("skipped_records", 0) for task in tasks),
        problems=sum(task.numbers.get("waiting", 0) for task in tasks),
        error=_error(connector, tasks),
        stands_by=connector.stands_by,
    )


def _behind(tasks: list[TaskRunner]) -> int | None:
    known = [task.numbers.get("behind") for task in tasks if task.state is TaskState.RUNNING]
    if len(known) < len(tasks) or None in known:
        return None
    return sum(int(count) for count in known if count is not None)


def _error(connector: ShownFlow, tasks: list[TaskRunner]) -> str:
    for task in tasks:
        if task.state is TaskState.FAILED:
            return f"{task.task} FAILED: {reason_of(task.trace)}"
    return connector.last_error
