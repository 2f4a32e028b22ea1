"""The brokers of this folder, and one mirror per policy for most of its tests."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sparkmirror.embedded import KafkaCluster
from tests.clusters import start_cluster
from tests.mm2_suite.groups import consume_all
from tests.mm2_suite.topics import create_topics, write
from tests.mm2_suite.worlds import POLICIES, Clusters, World, make_world

WARM_UP = "warm-up-transactional"


@pytest.fixture(scope="package")
def clusters() -> Iterator[Clusters]:
    """Both clusters, started side by side."""
    primary, backup = start_cluster("primary"), start_cluster("backup")
    try:
        primary.launch()
        backup.launch()
        primary.wait_ready()
        backup.wait_ready()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(_warm_up, (primary, backup)))
        yield Clusters(primary, backup)
    finally:
        primary.stop()
        backup.stop()


def _warm_up(cluster: KafkaCluster) -> None:
    """Let the cluster create its own topics: clients wait long for groups and transactions."""
    create_topics(cluster, [WARM_UP], partitions=1)
    write(cluster, [WARM_UP], [0])
    consume_all(cluster, "consumer-group-dummy", [WARM_UP])


# The other policy is in tests/users and tests/failover too; a suite of its own takes long.
OTHERS = [pytest.param(name, marks=pytest.mark.long) for name in POLICIES if name != "default"]


@pytest.fixture(scope="package", params=["default", *OTHERS])
def world(
    request: pytest.FixtureRequest, clusters: Clusters, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """A running mirror; it must stop in an orderly way after all tests that use it."""
    made = make_world(tmp_path_factory.mktemp(request.param), clusters, request.param)
    made.mirror.start()
    try:
        yield made
        made.mirror.stop()
    finally:
        made.mirror.kill()
