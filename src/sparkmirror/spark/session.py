"""Spark's session for the worker: the user's `spark.*` keys, with defaults for tasks that live on.

Runs on: worker (the Spark driver).
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext

from sparkmirror.spark.copy_task import Ticket, run_copy_task

log = logging.getLogger(__name__)

MASTER = "spark.master"
# In local mode a slot is a thread that waits: as many as tasks can ever be wanted.
SPARE_SLOTS = 4

DEFAULTS = {
    "spark.app.name": "sparkmirror",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A task that lives on looks slow to speculation, which would run it twice.
    "spark.speculation": "false",
    # Idle executors hold running tasks; Spark must not take them away.
    "spark.dynamicAllocation.enabled": "false",
    # The worker restarts tasks itself, with fresh positions and back-off; Spark's own retry covers
    # the loss of an executor.
    "spark.task.maxFailures": "4",
    "spark.python.worker.reuse": "true",
    "spark.driver.memory": "512m",
}
LOCAL_DEFAULTS = {
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
}
# The driver's JVM only keeps the books: a small heap, one collector thread, no optimising compiler.
JVM_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"


class SparkEngine:
    """The one Spark session of a worker process."""

    def __init__(self, settings: Mapping[str, str], slots_wanted: int) -> None:
        self._settings = _complete(settings, slots_wanted)
        self.is_local = self._settings[MASTER].startswith("local")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        conf = SparkConf(loadDefaults=False)
        for key, value in self._settings.items():
            conf.set(key, value)
        self._context = SparkContext(conf=conf)
        self._context.setLogLevel("ERROR")

    @property
    def master(self) -> str:
        """The cluster that runs the tasks."""
        return self._settings[MASTER]

    @property
    def driver_host(self) -> str:
        """The address under which executors reach this process."""
        if self.is_local:
            return "127.0.0.1"
        return str(self._context.getConf().get("spark.driver.host"))

    @property
    def slots(self) -> int:
        """How many tasks can run at once, as far as Spark knows now."""
        found = re.fullmatch(r"local\[(\d+)(?:,\d+)?]", self.master)
        if found:
            return int(found.group(1))
        return int(self._context.defaultParallelism)

    def run_task(self, ticket: Ticket, description: str) -> str:
        """Run one copy task to its end; raises what Spark raises. Blocks: one thread per task."""
        self._context.setJobGroup(ticket.task, description, interruptOnCancel=False)
        rows: Iterable[str] = (
            self._context.parallelize([ticket], 1).mapPartitions(run_copy_task).collect()
        )
        return next(iter(rows), "ended")

    def cancel_task(self, task: str) -> None:
        """Kill a task that does not end by itself."""
        self._context.cancelJobGroup(task)

    def stop(self) -> None:
        """End the session; tasks must have ended."""
        self._context.stop()


def _complete(settings: Mapping[str, str], slots_wanted: int) -> dict[str, str]:
    """The user's settings over our defaults."""
    master = settings.get(MASTER, f"local[{slots_wanted + SPARE_SLOTS}]")
    found = {**DEFAULTS, MASTER: master}
    if master.startswith("local"):
        found |= LOCAL_DEFAULTS
    found["spark.driver.extraJavaOptions"] = f"{JVM_OPTIONS} {_quiet_logs()}"
    own_options = settings.get("spark.driver.extraJavaOptions")
    found |= settings
    if own_options:
        found["spark.driver.extraJavaOptions"] = f"{JVM_OPTIONS} {_quiet_logs()} {own_options}"
    return found


def _quiet_logs() -> str:
    """Spark's own log goes to stderr, errors only."""
    path = Path(str(resources.files("sparkmirror.spark") / "log4j2.properties"))
    return f"-Dlog4j2.configurationFile={path.as_uri()}"


InThread = Callable[[Callable[[], None]], Any]
