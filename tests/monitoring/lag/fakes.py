"""A worker with one source connector, for tests of lag: its tasks report what a test says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from sparkmirror.connect.entities import TargetState
from sparkmirror.mirror.task_configs import PARTITIONS
from sparkmirror.monitoring.monitored import MonitoredGroup
from sparkmirror.spark.figures import PartitionFigures, TaskFigures
from sparkmirror.spark.task_runner import TaskState
from sparkmirror.types import TopicPartition
from tests.connect.herder_fakes import FakeConfigs, FakeStatuses, worker_file

NAME = "a->b.MirrorSourceConnector"
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Clock:
    """Monotonic and wall clock at once."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class FakeRunner:
    """What a task on Spark has reported."""

    def __init__(self, number: int = 0) -> None:
        self.task = f"a->b|{NAME}-{number}"
        self.state = TaskState.RUNNING
        self.has_failed = False
        self.trace = ""
        self.numbers: dict[str, Any] = {"behind": 0}
        self.records = self.bytes = 0
        self.reported = TaskFigures(self.task)

    def figures(self) -> TaskFigures:
        return self.reported

    def report(self, *rows: PartitionFigures, at: float, is_complete: bool = True) -> None:
        """Its newest rows."""
        self.reported = replace(self.reported, partitions=rows, at=at, is_complete=is_complete)


class FakeTask:
    """On this worker."""

    def __init__(self, number: int, runner: FakeRunner | None, partitions: str) -> None:
        self.ids = (number,)
        self.runner = runner
        self.configs = {number: {PARTITIONS: partitions}}
        self.last_error = ""


class FakeLoop:
    """What this worker runs, and on a leader who runs the rest."""

    def __init__(self) -> None:
        self.is_leader = True
        self.here: dict[str, Sequence[FakeTask]] = {}
        self.elsewhere: dict[tuple[str, int], str] = {}

    def tasks(self) -> Mapping[str, Sequence[FakeTask]]:
        return self.here

    def leads(self) -> bool:
        return self.is_leader

    def worker_of(self, name: str, number: int) -> str:
        return self.elsewhere.get((name, number), "")


class World:
    """One group, whose connector copies topic t."""

    def __init__(
        self, folder: Path, source: str = "127.0.0.1:1", target: str = "127.0.0.1:1"
    ) -> None:
        self.configs, self.statuses, self.loop = FakeConfigs(), FakeStatuses(), FakeLoop()
        file = worker_file(folder, bootstrap_servers=target)
        cluster = SimpleNamespace(
            configs=self.configs, statuses=self.statuses, loop=self.loop, file=file
        )
        self.group = MonitoredGroup("", cast("Any", cluster), cast("Any", None))
        self.config: dict[str, str | None] = {
            "name": NAME,
            "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "source.cluster.alias": "a",
            "target.cluster.alias": "b",
            "source.cluster.bootstrap.servers": source,
            "target.cluster.bootstrap.servers": target,
            "topics": "t",
            "tasks.max": "1",
        }
        self.configs.put_connector(NAME, self.config, None)

    def assign(self, *partitions: str) -> None:
        """In the config topic: each is that of one task."""
        self.configs.put_tasks(NAME, [{PARTITIONS: each} for each in partitions])

    def run(self, *partitions: str) -> list[FakeRunner]:
        """Here, one task each."""
        self.assign(*partitions)
        runners = [FakeRunner(at) for at in range(len(partitions))]
        self.loop.here[NAME] = [
            FakeTask(at, runner, partitions[at]) for at, runner in enumerate(runners)
        ]
        return runners

    def want(self, state: TargetState) -> None:
        """As a user does; its tasks end."""
        self.configs.put_target_state(NAME, state)
        if state is not TargetState.STARTED:
            self.loop.here.clear()
        if state is TargetState.STOPPED:
            self.configs.put_tasks(NAME, [])


def row(tp: TopicPartition = T0, **values: Any) -> PartitionFigures:
    """The figures of one partition."""
    return PartitionFigures(tp, TopicPartition(f"a.{tp.topic}", tp.partition), **values)
