"""Executors of a standalone cluster as processes: which copy tasks run in each."""

from __future__ import annotations

import psutil

from sparkmirror.embedded import SparkCluster
from tests.clusters import wait_for

CORES = 3
TASKS = 4
# As many tasks as leave no executor without one, and a slot to spare on each side.
SETTINGS = {
    "tasks.max": str(TASKS),
    "spark.executor.cores": str(CORES),
    "spark.executor.memory": "512m",
    "spark.cores.max": str(2 * CORES),
    # How long the driver waits for the worker's report of an executor whose connection has ended.
    "spark.standalone.executorRemoveDelayOnDisconnection": "30s",
}
_DAEMON = "pyspark.daemon"


def on_cluster(cluster: SparkCluster, **more: str) -> dict[str, str]:
    """Settings of a flow that runs there, with two executors."""
    return {"spark.master": cluster.master_url, **cluster.driver_settings, **SETTINGS, **more}


def copying(executor_pid: int) -> list[psutil.Process]:
    """The processes that copy in one executor: those that its Python daemon has forked."""
    try:
        children = psutil.Process(executor_pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return [child for child in children if _is_forked(child)]


def wait_for_tasks(cluster: SparkCluster, count: int, *, within: float = 60.0) -> dict[int, int]:
    """Wait until so many tasks copy; how many in each executor."""
    wait_for(
        lambda: sum(_tasks(cluster).values()) == count,
        within=within,
        describe=lambda: f"{count} copy tasks on executors; there are {_tasks(cluster)}",
    )
    return _tasks(cluster)


def _tasks(cluster: SparkCluster) -> dict[int, int]:
    return {pid: len(copying(pid)) for pid in cluster.executor_pids}


def _is_forked(child: psutil.Process) -> bool:
    try:
        return _is_daemon(child) and _is_daemon(child.parent())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False


def _is_daemon(process: psutil.Process | None) -> bool:
    return process is not None and _DAEMON in process.cmdline()
