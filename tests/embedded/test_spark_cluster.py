"""A standalone Spark cluster starts, loses a worker, and leaves nothing behind.

That it runs tasks is shown in tests/spark_cluster.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.embedded import SparkCluster
from sparkmirror.embedded.process import pid_is_alive
from sparkmirror.errors import LocalProtocolError


def test_one_of_two_workers_may_be_lost(tmp_path: Path) -> None:
    with SparkCluster(workers=2, cores=1, memory="512m", folder=tmp_path) as cluster:
        assert cluster.alive_workers() == 2
        assert cluster.executor_pids == []
        before = cluster.worker_pids
        cluster.kill_worker(0)
        assert cluster.worker_pids == before[1:]
    assert not any(pid_is_alive(pid) for pid in before)
    assert (tmp_path / "master.log").exists()


def test_address_of_a_cluster_that_was_not_started_is_an_error() -> None:
    with pytest.raises(LocalProtocolError, match="not started"):
        _ = SparkCluster().master_url
