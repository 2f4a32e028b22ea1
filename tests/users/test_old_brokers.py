"""B and C with the brokers that their users have: 2.4 and 2.8, with ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.demo.reading import partition_counts
from sparkmirror.embedded.kafka_releases import find_release
from sparkmirror.embedded.ports import ReservedPort
from tests.certificates import PASSWORD, Certificates
from tests.clusters import create_topic, side_by_side, start_cluster, wait_for
from tests.engines import mirror_process
from tests.kafka.releases.scene import HEAP, authorizer, fill_all_codecs
from tests.mm2_suite.topics import own_configs, topic_names
from tests.users import files
from tests.users.smallest_connector import SmallestConnector
from tests.users.workers import WorkerProcess, run_worker
from tests.users.worlds import SECONDS, Clusters

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(600)]

PARTITIONS = 3
# B, word for word; its host names are addresses here, and its password is that of the tests' store.
DEDICATED = """\
clusters=source, target
source.bootstrap.servers={source}
source.security.protocol=SSL
source.ssl.truststore.location={truststore}
source.ssl.truststore.password={password}
target.bootstrap.servers={target}
source->target.enabled=true
source->target.topics=orders
"""
INTERNAL = {f"mm2-{kind}.source.internal" for kind in ("configs", "offsets", "status")}


def tls_properties(certificates: Certificates) -> dict[str, str]:
    """Brokers before 2.7 read no PEM (KIP-651)."""
    store = "listener.name.ssl.ssl.keystore"
    return {
        "inter.broker.listener.name": "PLAINTEXT",
        f"{store}.type": "PKCS12",
        f"{store}.location": str(certificates.pkcs12("broker")),
        f"{store}.password": PASSWORD,
        "listener.name.ssl.ssl.key.password": PASSWORD,
    }


@pytest.fixture
def dedicated(tmp_path: Path) -> Iterator[Clusters]:
    """One broker with TLS, and three."""
    certificates = Certificates(tmp_path)
    source = start_cluster(
        "b-source",
        version="2.4",
        heap=HEAP,
        listeners={"SSL": "SSL"},
        properties=tls_properties(certificates),
    )
    target = start_cluster("b-target", version="2.4", heap=HEAP, brokers=3)
    with side_by_side([source, target]):
        yield Clusters(source, target, certificates)


def test_b_from_one_broker_with_tls_to_three(dedicated: Clusters, tmp_path: Path) -> None:
    source, target = dedicated.source, dedicated.target
    create_topic(source, "orders", partitions=PARTITIONS)
    dedicated.fill("orders", PARTITIONS, 40)
    file = tmp_path / "mm2.properties"
    text = DEDICATED.format(
        source=source.servers_of("SSL"),
        truststore=dedicated.certificates.trust_jks,
        password=PASSWORD,
        target=target.bootstrap_servers,
    )
    file.write_text(text)
    mirror = mirror_process("sparkmirror", file)
    mirror.start()
    try:
        wait_for(
            lambda: mirror.running_pid is None or "source.orders" in topic_names(target),
            within=SECONDS,
            describe=lambda: f"source.orders; {mirror.log_end()}",
        )
        dedicated.wait_copied("orders", "source.orders")
        dedicated.fill("orders", PARTITIONS, 40)
        dedicated.wait_copied("orders", "source.orders")
        mirror.stop()
    finally:
        mirror.kill()
    assert topic_names(target) >= INTERNAL
    assert {own_configs(target, topic)["cleanup.policy"] for topic in INTERNAL} == {"compact"}
    counts = partition_counts(target.bootstrap_servers, INTERNAL)
    assert counts == dict(zip(sorted(INTERNAL), (1, 25, 5), strict=True))
    log = mirror.log_path.read_text()
    assert "set offset-syncs.topic.replication.factor to at most" in log
    assert PASSWORD not in log


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """One broker and one ZooKeeper each, open to everyone as long as there are no ACLs."""
    properties = {**authorizer(find_release("2.8")), "auto.create.topics.enable": "true"}
    started = [
        start_cluster(name, version="2.8", heap=HEAP, properties=properties)
        for name in ("c-source", "c-target")
    ]
    with side_by_side(started) as (source, target):
        yield Clusters(source, target, Certificates(tmp_path_factory.mktemp("certificates")))


@pytest.fixture(scope="module")
def worker(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    source, _ = clusters.servers
    with ReservedPort() as port:
        variables = files.quickstart(source, port.number)
        with run_worker(tmp_path_factory.mktemp("smallest"), variables) as worker:
            yield worker


class TestSmallestConnectorOn28(SmallestConnector):
    """C."""

    def test_topics_of_old_message_formats_get_copies_that_can_be_written(
        self, clusters: Clusters, worker: WorkerProcess
    ) -> None:
        """Brokers refuse idempotent writes to a topic of format 0 or 1."""
        for topic, version in {"written-by-0-9": "0.9.0", "written-by-0-10": "0.10.0"}.items():
            config = {"message.format.version": version, "retention.ms": "-1"}
            create_topic(clusters.source, topic, config=config)
            fill_all_codecs(clusters.source, topic)
        # As MirrorMaker 2 leaves it.
        old_format = {"message.format.version": "0.10.0"}
        create_topic(clusters.target, "source.written-by-0-10", config=old_format)
        source, target = clusters.servers
        config = files.smallest("test_formats", "written-by.*", source, target)
        config["producer.override.bootstrap.servers"] = target
        config["sync.topic.configs.interval.seconds"] = "1"
        created = worker.ask("POST", "/connectors", {"name": "test_formats", "config": config})
        assert created.status_code == 201, created.text
        for topic in ("written-by-0-9", "written-by-0-10"):
            clusters.wait_copied(topic, f"source.{topic}")
            assert own_configs(clusters.target, f"source.{topic}") == {"retention.ms": "-1"}
