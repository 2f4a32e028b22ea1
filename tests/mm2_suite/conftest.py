"""The brokers of this folder, and one mirror per policy for most of its tests."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sparkmirror.embedded import KafkaCluster
from tests.certificates import Certificates
from tests.clusters import start_cluster
from tests.mm2_suite.connect_mirror import ConnectMirror
from tests.mm2_suite.flows import Flow
from tests.mm2_suite.groups import consume_all
from tests.mm2_suite.topics import create_topics, write
from tests.mm2_suite.worlds import RERUNS, SSL_LISTENER, Clusters, World, make_world

WARM_UP = "warm-up-transactional"


@pytest.fixture(scope="package")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """Both clusters, started side by side."""
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    primary = start_cluster("primary")
    backup = start_cluster("backup", properties=_tls(certificates), listeners={SSL_LISTENER: "SSL"})
    try:
        primary.launch()
        backup.launch()
        primary.wait_ready()
        backup.wait_ready()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(_warm_up, (primary, backup)))
        yield Clusters(primary, backup, certificates)
    finally:
        primary.stop()
        backup.stop()


def _tls(certificates: Certificates) -> dict[str, str]:
    keys = f"listener.name.{SSL_LISTENER.lower()}.ssl.keystore"
    return {
        "inter.broker.listener.name": "PLAINTEXT",
        f"{keys}.type": "PEM",
        f"{keys}.location": str(certificates.pem("broker")),
    }


def _warm_up(cluster: KafkaCluster) -> None:
    """Let the cluster create its own topics: clients wait long for groups and transactions."""
    create_topics(cluster, [WARM_UP], partitions=1)
    write(cluster, [WARM_UP], [0])
    consume_all(cluster, "consumer-group-dummy", [WARM_UP])


# What differs is in other tests too (tests/users, tests/failover, tests/kafka/test_tls.py).
OTHERS = [pytest.param(name, marks=pytest.mark.long) for name in RERUNS if name != "default"]


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


@pytest.fixture(scope="module")
def connect_flow(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    """The same flow as `synced`, of three connectors on a Connect worker."""
    mirror = ConnectMirror(tmp_path_factory.mktemp("connect"), clusters)
    try:
        mirror.start()
        yield mirror.flow
        mirror.stop()
    finally:
        mirror.close()
