"""Connectors and tasks that only note what they are told, for tests of the herder."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from sparkmirror.connect.connector import ConnectorContext, TaskConfigs, TaskReport
from sparkmirror.connect.entities import ConnectorProps
from sparkmirror.connect.states import TaskEvent

SECONDS = 20.0
RUNS = TaskReport(TaskEvent.CALLED_IN)


class FakeRunning:
    """A connector that does nothing but note what it is told; its tasks are `FakeWork`."""

    task_class = "MirrorHeartbeatTask"
    last_error = ""

    def __init__(self, config: ConnectorProps) -> None:
        self.config = config
        self.calls: list[str] = []
        self.task_calls: list[str] = []
        self.reports: list[TaskReport] = [RUNS]
        # Those of each task, if it is one that copies.
        self.partitions: list[str] = []
        self.topics: set[str] = set()
        self.failures: dict[str, BaseException] = {}
        self.refresh_error = ""
        self.stored: Sequence[Mapping[str, str]] = ()
        self.notice = ""
        self.is_released = True
        self.gate = threading.Event()
        self.gate.set()
        # Of its tasks.
        self.task_gate = threading.Event()
        self.task_gate.set()

    def connect(self) -> None:
        self._note("connect")

    def start(self, context: ConnectorContext) -> None:
        self.stored = context.stored_tasks()
        self._note("start")

    def stop(self) -> None:
        self._note("stop")

    def join(self, seconds: float) -> bool:
        self._note("join")
        return seconds > 0

    def task_configs(self) -> list[dict[str, str]] | None:
        if self.partitions:
            return [{"task.assigned.partitions": each} for each in self.partitions]
        return [{"task.index": str(at)} for at in range(len(self.reports))]

    def refresh(self) -> str:
        self._note("refresh")
        return self.refresh_error

    def refresh_soon(self, topics: Sequence[str]) -> None:
        self._note(f"refresh for {' '.join(topics)}")

    def _note(self, call: str) -> None:
        self.calls.append(call)
        assert self.gate.wait(SECONDS)
        if call in self.failures:
            raise self.failures[call]


class FakeWork:
    """A life of a task, which the test plays through its connector."""

    runner = None
    last_error = ""

    def __init__(self, running: FakeRunning, configs: TaskConfigs) -> None:
        self._running = running
        self._configs = configs

    def connect(self) -> None:
        self._note("connect")

    def start(self) -> None:
        self._note("start")

    def look(self) -> None:
        """It looks after itself."""

    def reconfigure(self, configs: TaskConfigs) -> None:
        self._configs = configs
        self._note("reconfigure")

    def restart(self) -> bool:
        self._note("restart")
        return self._running.task_class == "MirrorSourceTask"

    def stop(self) -> None:
        self._note("stop")

    def join(self, seconds: float) -> bool:
        self._note("join")
        assert self._running.task_gate.wait(SECONDS)
        return seconds > 0

    @property
    def is_released(self) -> bool:
        return self._running.is_released

    def report(self) -> TaskReport:
        return self._running.reports[min(self._configs)]

    def take_topics(self) -> set[str]:
        taken, self._running.topics = self._running.topics, set()
        return taken

    def _note(self, call: str) -> None:
        numbers = ",".join(str(number) for number in sorted(self._configs))
        self._running.task_calls.append(f"{call} {numbers}")
