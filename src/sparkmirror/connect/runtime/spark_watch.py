"""Watches the worker's Spark for the herder: is it up, and how many tasks has it room for?

Runs on: worker, on the herder's thread; `slots` and `problem` are for any thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from sparkmirror.connect.connector import Task
from sparkmirror.connect.runtime.connector_tasks import SOURCE_TASK
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.storage.config_records import ConfigSnapshot
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.task_configs import TASK_CLASS

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
# Spark replaces an executor that died within seconds: its tasks need not move to another worker.
LOST_SECONDS = 15.0


class SparkWatch:
    """`problem` says why this worker must end: Spark is gone, and nothing here can bring it back.

    `slots`: how many tasks this worker has room for. Before executors of a cluster have come it has
    none: they may all be another worker's.
    """

    def __init__(self, spark: Worker) -> None:
        self.problem = ""
        self.slots = spark.slots
        self._spark = spark
        self._look_at = 0.0
        # Since when there are fewer slots than were reported.
        self._fewer_since: float | None = None

    def warm_up(self, snapshot: ConfigSnapshot) -> None:
        """Start Spark before the first task is assigned: on take-over that would take seconds."""
        first_tasks = (tasks[0] for tasks in snapshot.tasks.values() if tasks)
        if any(task.get(TASK_CLASS) == SOURCE_TASK for task in first_tasks):
            self._spark.begin()

    def look(self, tasks: Iterable[Task]) -> None:
        """About once a second: log which of these tasks lack a slot, and why."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_SECONDS
        found = (task.runner for task in tasks)
        runners = [runner for runner in found if runner is not None]
        try:
            self._spark.check_alive()
            self._count_slots(now)
            for runner in runners:
                runner.check_slot(len(runners))
        except MirrorError as error:
            if not self.problem:
                log.error("%s", error)  # noqa: TRY400
            self.problem = str(error)

    def _count_slots(self, now: float) -> None:
        slots = self._spark.slots
        if slots >= self.slots:
            self.slots, self._fewer_since = slots, None
        elif self._fewer_since is None:
            self._fewer_since = now
        elif now - self._fewer_since >= LOST_SECONDS:
            self.slots, self._fewer_since = slots, None
