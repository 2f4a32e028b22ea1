"""A worker's group in memory, with connectors and tasks that a test makes up."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from sparkmirror.connect.group.connect_protocol import Assignment
from sparkmirror.connect.group.group_place import GroupView
from sparkmirror.connect.group.member_figures import MemberFigures
from sparkmirror.connect.start_counts import StartCounts
from sparkmirror.connect.storage.backing_stores import StoredStatus
from sparkmirror.monitoring.monitored import MonitoredGroup
from sparkmirror.types import ConnectorTaskId
from tests.connect.herder_fakes import FakeConfigs, FakeSpark, FakeStatuses, worker_file

OWN, OTHER = "worker-1:8083", "worker-2:8083"
SOURCE_TASK = {"task.class": "org.apache.kafka.connect.mirror.MirrorSourceTask"}


class FakeGroupOfWorkers:
    """What the metrics read of one group."""

    def __init__(self, folder: Path, now: list[float]) -> None:
        self.configs, self.statuses, self.spark = FakeConfigs(), FakeStatuses(), FakeSpark()
        self.figures = MemberFigures(lambda: now[0])
        self.tasks: dict[str, list[Any]] = {}
        self.connector_starts, self.task_starts = StartCounts(), StartCounts()
        self.assigned: frozenset[ConnectorTaskId] = frozenset()
        self.health = "healthy"
        file = worker_file(folder)
        self.name = file.worker.group_id
        cluster = SimpleNamespace(
            configs=self.configs,
            statuses=self.statuses,
            file=file,
            worker_id=OWN,
            spark=self.spark,
            task_starts=self.task_starts,
            loop=SimpleNamespace(
                connector_starts=self.connector_starts,
                tasks=lambda: self.tasks,
                connectors=dict,
            ),
            member=self,
        )
        herder = SimpleNamespace(health=lambda: (self.health, ""))
        self.group = MonitoredGroup("", cast("Any", cluster), cast("Any", herder))

    @property
    def is_leader(self) -> bool:
        return True

    @property
    def view(self) -> GroupView:
        urls = (f"http://{OWN}/", f"http://{OTHER}/")
        return GroupView("m", 7, members=urls, assignment=Assignment(tasks=self.assigned))

    def add(self, name: str, *states: tuple[str, str]) -> None:
        """A connector whose tasks have these states on these workers."""
        self.configs.put_connector(name, {"name": name}, None)
        self.configs.put_tasks(name, [SOURCE_TASK] * len(states))
        self.statuses.put_connector(name, StoredStatus("RUNNING", OWN, 7))
        for task, (state, worker) in enumerate(states):
            self.statuses.put_task(name, task, StoredStatus(state, worker, 7))
