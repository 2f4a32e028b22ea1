"""A standalone Spark cluster, shared by the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sparkmirror.embedded import SparkCluster
from tests.spark_cluster.executors import CORES


@pytest.fixture(scope="package")
def spark_cluster() -> Iterator[SparkCluster]:
    """A master and two workers, each with room for one executor of an application."""
    with SparkCluster(workers=2, cores=CORES, memory="1g") as cluster:
        yield cluster
