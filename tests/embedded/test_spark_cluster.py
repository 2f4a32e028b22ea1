"""A standalone Spark cluster runs Python tasks on its workers and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sparkmirror.embedded import SparkCluster
from sparkmirror.embedded.process import pid_is_alive
from sparkmirror.errors import LocalProtocolError
from tests.clusters import wait_for

# A driver in a process of its own, because a process has only one Spark context.
DRIVER = """
    import sys
    from pyspark import SparkConf, SparkContext
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    settings = {
        "spark.ui.enabled": "false",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": quick,
    }
    conf = SparkConf().setMaster(sys.argv[1]).setAppName("test").setAll(settings.items())
    context = SparkContext(conf=conf)
    def executable(_):
        import sys
        return sys.executable
    print(context.parallelize([0, 1], 2).map(executable).distinct().collect(), flush=True)
    sys.stdin.read()
    context.stop()
"""


def test_two_workers_run_python_tasks_and_one_may_be_lost(tmp_path: Path) -> None:
    with SparkCluster(workers=2, cores=1, memory="512m", folder=tmp_path) as cluster:
        assert cluster.alive_workers() == 2
        assert cluster.executor_pids == []
        command = [sys.executable, "-c", textwrap.dedent(DRIVER), cluster.master_url]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **cluster.driver_environment},
        ) as driver:
            assert driver.stdout is not None
            assert driver.stdout.readline().strip() == str([sys.executable])
            executors = cluster.executor_pids
            assert len(executors) == 2
            before = cluster.worker_pids
            cluster.kill_worker(0)
            assert cluster.worker_pids == before[1:]
            wait_for(
                lambda: len(cluster.executor_pids) == 1, within=10, describe="one executor left"
            )
    assert not any(pid_is_alive(pid) for pid in [*before, *executors])
    assert (tmp_path / "master.log").exists()


def test_address_of_a_cluster_that_was_not_started_is_an_error() -> None:
    with pytest.raises(LocalProtocolError, match="not started"):
        _ = SparkCluster().master_url
