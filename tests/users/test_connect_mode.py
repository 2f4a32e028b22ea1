"""A, C, D and E on real brokers: workers, files and requests as the users have them today.

E logs in by SCRAM over TLS: only AWS can check IAM logins, so these are tested with a stand-in, in
tests/kafka/test_logins. D's group offset sync application and its runbook are tested in
tests/failover, Kafka UI's requests in tests/golden_rest, Prometheus in tests/monitoring_files.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation

from sparkmirror.demo.reading import partition_counts
from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.ports import ReservedPort
from sparkmirror.mirror.records import Checkpoint
from sparkmirror.types import TopicPartition
from tests.certificates import Certificates
from tests.clusters import create_topic, start_cluster, wait_for
from tests.group_offsets import commit_offsets, committed_offsets
from tests.kafka import guarded_clusters
from tests.kafka.guarded_clusters import AUTHORIZER, WORKER, rule
from tests.mirror_client.internal_records import last_by_key
from tests.mm2_suite.heartbeats import aliases_of_heartbeats
from tests.mm2_suite.topics import own_configs, topic_names
from tests.monitoring.metrics.expositions import Exposition
from tests.secure_cluster import (
    USER,
    USER_PASSWORD,
    add_scram_user,
    broker_properties,
)
from tests.users import files
from tests.users.smallest_connector import SmallestConnector
from tests.users.workers import WorkerProcess, run_worker, run_workers
from tests.users.worlds import SECONDS, Clusters

pytestmark = pytest.mark.kafka

# Brokers as they are installed create topics for whoever writes; E has ACLs.
PROPERTIES = {
    **AUTHORIZER,
    "super.users": f"{WORKER};User:{USER}",
    "auto.create.topics.enable": "true",
}
MM2_SH = Path(__file__).parents[2] / "deploy" / "mm2.sh"
RUNNING = "kafka_connect_worker_connector_running_task_count"
RECORD_COUNT = "kafka_connect_mirror_mirrorsourceconnector_record_count"
CENTRAL = ["mm2-cpc-source-0", "mm2-hbc-source-0", "mm2-msc-source-0"]


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    listeners = {"SASL_SSL": "SASL_SSL"}
    properties = {**broker_properties(certificates, listeners), **PROPERTIES}
    source, target = (
        start_cluster(name, brokers=2, properties=properties, listeners=listeners)
        for name in ("users-source", "users-target")
    )
    try:
        for cluster in (source, target):
            cluster.launch()
        for cluster in (source, target):
            cluster.wait_ready()
            add_scram_user(cluster, USER, USER_PASSWORD)
        yield Clusters(source, target, certificates)
    finally:
        source.stop()
        target.stop()


@pytest.fixture(scope="class")
def workers(
    clusters: Clusters, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[WorkerProcess]]:
    folder = tmp_path_factory.mktemp("central")
    _, target = clusters.servers
    with ReservedPort() as first, ReservedPort() as second:
        paths = [
            files.write_worker(
                folder / f"connect-{port.number}.properties",
                files.CENTRAL_WORKER,
                target,
                port.number,
            )
            for port in (first, second)
        ]
        with run_workers(folder, paths) as workers:
            yield workers


@pytest.fixture(scope="class")
def worker(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    source, _ = clusters.servers
    with ReservedPort() as port:
        variables = files.quickstart(source, port.number)
        with run_worker(tmp_path_factory.mktemp("smallest"), variables) as worker:
            yield worker


class TestCentralCluster:
    """A, and D on the same two workers, whose topics are on the target."""

    def test_a_deployed_by_script(
        self, clusters: Clusters, workers: list[WorkerProcess], tmp_path: Path
    ) -> None:
        create_topic(clusters.source, "test", partitions=5, replication_factor=2)
        clusters.fill("test", 5, 40)
        (tmp_path / "mm2").mkdir()
        files.write_central_files(tmp_path / "mm2", *clusters.servers)
        leader, follower = workers

        deployed = _mm2_sh("deploy", tmp_path, follower.url)
        assert deployed.returncode == 0, deployed.stderr
        assert f"{CENTRAL[2]}: created" in deployed.stdout.splitlines()
        clusters.wait_copied("test", "test")
        for worker in workers:
            assert sorted(worker.get("/connectors")) == CENTRAL
            config = worker.get(f"/connectors/{CENTRAL[2]}/config")
            assert config["sync.topic.acls.enabled"] == "false"
            worker.wait_running(CENTRAL[2], tasks=2, on=leader, others=[follower])
        # Tasks that have moved to the other worker took nothing along: count from here on.
        before = _metric_sums(workers)[RECORD_COUNT]
        clusters.fill("test", 5, 40)
        clusters.wait_copied("test", "test")
        _wait_for_metrics(workers, records=before + 5 * 40)

        # Their files ask for three copies of internal topics, of two brokers: there are two then.
        for topic in ("checkpoints", "heartbeats", "offset-syncs"):
            assert f"set {topic}.topic.replication.factor to at most" in leader.log + follower.log
        _wait_for_heartbeats(clusters.target, ("source-0", "target-0"))
        assert "mm2-offset-syncs.target-0.internal" in topic_names(clusters.source)

        again = _mm2_sh("deploy", tmp_path, leader.url)
        assert again.returncode == 0, again.stderr
        assert again.stdout.splitlines()[:3] == [
            f"{name}: already RUNNING, skipped" for name in CENTRAL
        ]
        shown = _mm2_sh("status", tmp_path, follower.url)
        assert shown.returncode == 0, shown.stdout
        assert all(name in shown.stdout for name in CENTRAL)

        clusters.fill("test", 5, 10)
        clusters.wait_copied("test", "test")
        for _ in range(2):  # a second time, there is nothing to delete
            undeployed = _mm2_sh("undeploy", tmp_path, follower.url)
            assert undeployed.returncode == 0, undeployed.stderr
        assert undeployed.stderr.count("not found") == len(CENTRAL)
        assert leader.get("/connectors") == []
        assert _mm2_sh("status", tmp_path, leader.url).returncode == 1

    def test_d_migration(self, clusters: Clusters, workers: list[WorkerProcess]) -> None:
        create_topic(clusters.source, "orders", partitions=2, replication_factor=2)
        clusters.fill("orders", 2, 30)
        commit_offsets(clusters.source, "billing", {TopicPartition("orders", 0): 30})
        source, target = clusters.servers
        flow = {"old": source, "new": target}
        connectors = files.migration(flow, "orders", tasks=2, sync_groups=False)
        leader, follower = workers
        for name, settings in connectors.items():
            created = follower.ask("PUT", f"/connectors/{name}/config", settings)
            assert created.status_code == 201, created.text
            assert created.json()["config"] == settings
        again = follower.ask("PUT", "/connectors/mm2-src/config", connectors["mm2-src"])
        assert again.status_code == 200, again.text

        clusters.wait_copied("orders", "orders")
        for name, tasks in {"mm2-src": 2, "mm2-chk": 1, "mm2-hbt": 1}.items():
            follower.wait_running(name, tasks, on=leader, others=[follower])
        assert "mm2-offset-syncs.new.internal" in topic_names(clusters.source)
        _wait_for_heartbeats(clusters.target, ("old", "new"))
        _wait_for_checkpoint(clusters.target, "old.checkpoints.internal", "billing", "orders")
        # That is for the application beside it.
        assert committed_offsets(clusters.target, "billing") == {}


class TestSmallestConnector(SmallestConnector):
    """C on the newest brokers; those that its users have are in test_old_brokers."""


class TestManagedCluster:
    """E, with another login."""

    def test_e_monitored_cluster(self, clusters: Clusters, tmp_path: Path) -> None:
        _prepare_managed(clusters.source)
        clusters.fill("ExampleTopic", 3, 30)
        offsets = {TopicPartition("ExampleTopic", at): 10 * (at + 1) for at in range(3)}
        commit_offsets(clusters.source, "example-group", offsets)
        source, target = clusters.secure_servers
        file = files.write_worker(
            tmp_path / "connect-distributed.properties",
            files.MANAGED_WORKER,
            target,
            more=files.login_lines(clusters.login, "", "producer.", "consumer.", "admin."),
        )
        with run_workers(tmp_path, [file, file]) as (first, second):
            assert first.get("/")["version"]
            # As `grep Herder connect.log` shows it.
            herder = [line for line in first.log.splitlines() if "Herder" in line]
            group = "[Worker clientId=connect-1, groupId="
            assert [line.partition(group)[2].partition("] ")[2] for line in herder] == [
                "Herder starting",
                "Herder started",
            ]
            flow = {"msksource": source, "mskdest": target}
            connectors = files.migration(
                flow, "ExampleTopic", tasks=4, sync_groups=True, login=clusters.login
            )
            for name, settings in connectors.items():
                created = first.ask("PUT", f"/connectors/{name}/config", settings)
                assert created.status_code == 201, created.text
            clusters.wait_copied("ExampleTopic", "ExampleTopic")
            second.wait_running("mm2-src", tasks=3, on=first, others=[second])
            _check_managed(clusters, offsets)

            first.stop()
            second.wait_running("mm2-src", tasks=3, on=second)
            clusters.fill("ExampleTopic", 3, 10)
            clusters.wait_copied("ExampleTopic", "ExampleTopic")
            assert USER_PASSWORD not in first.log + second.log


def _prepare_managed(source: KafkaCluster) -> None:
    config = {"retention.ms": "86400000", "max.message.bytes": "900000"}
    create_topic(source, "ExampleTopic", partitions=3, replication_factor=2, config=config)
    guarded_clusters.Cluster(source).create_acls([_read_rule()])


def _read_rule() -> tuple[object, ...]:
    return rule("ExampleTopic", AclOperation.READ, principal="User:app")


def _check_managed(clusters: Clusters, offsets: dict[TopicPartition, int]) -> None:
    assert "mm2-offset-syncs.mskdest.internal" in topic_names(clusters.source)
    target = clusters.target
    _wait_for_heartbeats(target, ("msksource", "mskdest"))
    topic = "msksource.checkpoints.internal"
    _wait_for_checkpoint(target, topic, "example-group", "ExampleTopic")
    settings = own_configs(target, "ExampleTopic")
    assert (settings["retention.ms"], settings["max.message.bytes"]) == ("86400000", "900000")
    wait_for(
        lambda: committed_offsets(target, "example-group") == offsets,
        within=SECONDS,
        describe=lambda: f"{offsets}; found {committed_offsets(target, 'example-group')}",
    )
    wait_for(
        lambda: _read_rule() in guarded_clusters.Cluster(target).acls("ExampleTopic"),
        within=SECONDS,
        describe="the ACL",
    )


def _wait_for_heartbeats(cluster: KafkaCluster, aliases: tuple[str, str]) -> None:
    wait_for(
        lambda: aliases in aliases_of_heartbeats(cluster, "heartbeats"),
        within=SECONDS,
        describe=lambda: f"{aliases}; found {aliases_of_heartbeats(cluster, 'heartbeats')}",
    )


def _metric_sums(workers: Sequence[WorkerProcess]) -> dict[str, float]:
    """What both workers show together; each has its share."""
    found = [Exposition(worker.ask("GET", "/metrics").text) for worker in workers]
    assert [each.value(RUNNING, connector=CENTRAL[2]) for each in found] == [1, 1]
    return {
        name: sum(sample.value for each in found for sample in each.samples(name))
        for name in (RECORD_COUNT, "kafka_connect_worker_connector_count")
    }


def _wait_for_metrics(workers: Sequence[WorkerProcess], records: float) -> None:
    """Each worker shows its share: together that is all, once."""
    wait_for(
        lambda: list(_metric_sums(workers).values()) == [records, 3],
        within=SECONDS,
        describe=lambda: str(_metric_sums(workers)),
    )


def _wait_for_checkpoint(cluster: KafkaCluster, topic: str, group: str, copied: str) -> None:
    def found() -> set[tuple[str, str]]:
        decoded = [Checkpoint.decode(*pair) for pair in last_by_key(cluster, topic).items()]
        return {(each.group, each.topic) for each in decoded}

    wait_for(
        lambda: (group, copied) in found(),
        within=SECONDS,
        describe=lambda: f"a checkpoint of {group} in {topic}; found {found()}",
    )
    assert partition_counts(cluster.bootstrap_servers, [topic]) == {topic: 1}
    assert own_configs(cluster, topic)["cleanup.policy"] == "compact"


def _mm2_sh(action: str, folder: Path, url: str) -> subprocess.CompletedProcess[str]:
    """The users' script, in the folder that has mm2/."""
    program = Path(sys.executable).with_name("sparkmirror")
    words: Sequence[str | Path] = ["sh", MM2_SH, action, "source-0"]
    environment = {**os.environ, "SPARKMIRROR": str(program), "CONNECT_URL": url}
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
