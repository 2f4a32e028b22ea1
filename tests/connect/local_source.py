"""A source connector with its copy tasks beside it, without a worker between them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from sparkmirror.config.mm2 import FlowConfig
from sparkmirror.connect.source.mirror_source_connector import MirrorSourceConnector
from sparkmirror.connect.source.mirror_source_task import (
    FILES_SECONDS,
    MirrorSourceTask,
    SourceTaskSettings,
)
from sparkmirror.spark.link.frames import LinkMessage
from sparkmirror.spark.link.lease import Lender
from sparkmirror.spark.link.server import LinkServer
from sparkmirror.spark.session import SparkEngine
from sparkmirror.spark.task_runner import TaskRunner
from sparkmirror.types import TopicPartition

log = logging.getLogger(__name__)


class LocalSource(MirrorSourceConnector):
    """Keeps the copy tasks in line with what the connector finds; it is its own context."""

    # It copies, for whoever shows it beside flows that other processes copy.
    stands_by = ""

    def __init__(self, flow: FlowConfig) -> None:
        spec = flow.spec(flow.source)
        super().__init__(spec)
        self.flow = spec.flow
        self.file_flow = flow
        self._context = self
        self._copies: list[MirrorSourceTask] = []
        self.task_settings = SourceTaskSettings(spec, self._store)

    @property
    def tasks(self) -> list[TaskRunner]:
        """Those that run."""
        return [copy.runner for copy in self._copies if copy.runner is not None]

    def start_with_tasks(
        self, engine: SparkEngine, links: LinkServer, lease: Lender | None = None
    ) -> None:
        """Create what is missing, start the tasks, and go on looking for topics.

        `lease` tells how long tasks may write, if their flow has a group of its own.
        """
        self._engine, self._links, self._lease = engine, links, lease
        self._scheduler.repeat(
            "sending files to tasks",
            FILES_SECONDS,
            self._look_at_files,
            enabled=not engine.is_local,
        )
        self.start(self)

    def stop(self) -> None:
        """Ask all tasks to commit and end."""
        super().stop()
        for task in list(self._copies):
            task.stop()

    def join(self, seconds: float) -> bool:
        """Wait for the tasks; tells whether all of them ended clean."""
        deadline = time.monotonic() + seconds
        clean = [task.join(max(0.1, deadline - time.monotonic())) for task in self._copies]
        super().join(0.0)
        return all(clean)

    # -- the connector's context -------------------------------------------------------------------

    def stored_tasks(self) -> Sequence[Mapping[str, str]]:
        """Without a config topic there are none."""
        return ()

    def request_task_reconfiguration(self) -> None:
        """Tell each task what is new and what is gone; the others do not notice."""
        wanted = self.assignment
        for config in self.task_configs() or ():
            self.task_settings.note_stale(config)
        before = [task.partitions for task in self._copies]
        # Tasks that have nothing left keep their number, and are told so.
        wanted += [[]] * (len(before) - len(wanted))
        if wanted == before:
            return
        for task, partitions in zip(self._copies, wanted, strict=False):
            if partitions != task.partitions:
                task.assign(partitions)
        # Told to stop while it starts: none of the tasks would have anything to store.
        if not self._scheduler.is_stopping:
            for at in range(len(before), len(wanted)):
                self._start_copy(at, wanted[at])
        count = sum(map(len, wanted))
        log.info("[%s] %d partitions in %d tasks", self.flow, count, len(self._copies))

    def _start_copy(self, at: int, partitions: list[TopicPartition]) -> None:
        task = MirrorSourceTask(self.task_settings, at, partitions, self._new_runner)
        self._copies.append(task)
        task.connect()
        task.start()

    def _new_runner(self, name: str, make_message: Callable[[], LinkMessage]) -> TaskRunner:
        return TaskRunner(
            self._engine, self._links, name, make_message, self.refresh_soon, lease=self._lease
        )

    def _look_at_files(self) -> None:
        for task in list(self._copies):
            task.look()
