"""A, C, D and E on real brokers: workers, files and requests as the users have them today.

E logs in by SCRAM over TLS: only AWS can check IAM logins, so these are tested with a stand-in, in
tests/kafka/test_logins. Not here, because it is not in sparkmirror yet: Prometheus and Grafana (A,
E). D's group offset sync application and its runbook are tested in tests/failover, Kafka UI's
requests in tests/golden_rest.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation

from sparkmirror.demo.reading import Content, partition_counts, read_topic
from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.ports import ReservedPort
from sparkmirror.mirror.records import Checkpoint
from sparkmirror.types import TopicPartition
from tests.certificates import PASSWORD, Certificates
from tests.clusters import Record, create_topic, produce, start_cluster, wait_for
from tests.group_offsets import commit_offsets, committed_offsets
from tests.kafka import guarded_clusters
from tests.kafka.guarded_clusters import AUTHORIZER, WORKER, rule
from tests.mirror_client.internal_records import last_by_key
from tests.mm2_suite.heartbeats import aliases_of_heartbeats
from tests.mm2_suite.topics import ends, own_configs, topic_names
from tests.secure_cluster import (
    CLIENT_LOGINS,
    USER,
    USER_PASSWORD,
    add_scram_user,
    broker_properties,
)
from tests.users import files
from tests.users.workers import WorkerProcess, run_worker, run_workers

pytestmark = pytest.mark.kafka

SECONDS = 60.0
# Brokers as they are installed create topics for whoever writes; E has ACLs.
PROPERTIES = {
    **AUTHORIZER,
    "super.users": f"{WORKER};User:{USER}",
    "auto.create.topics.enable": "true",
}
MM2_SH = Path(__file__).parents[2] / "deploy" / "mm2.sh"
CENTRAL = ["mm2-cpc-source-0", "mm2-hbc-source-0", "mm2-msc-source-0"]


@dataclass(frozen=True, slots=True)
class Clusters:
    """Two brokers each."""

    source: KafkaCluster
    target: KafkaCluster
    certificates: Certificates

    @property
    def login(self) -> dict[str, str]:
        """E: what its clients need for the listener of `secure_servers`."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": CLIENT_LOGINS["SCRAM-SHA-512"],
            "ssl.truststore.location": str(self.certificates.trust_jks),
            "ssl.truststore.password": PASSWORD,
        }

    @property
    def secure_servers(self) -> tuple[str, str]:
        return self.source.servers_of("SASL_SSL"), self.target.servers_of("SASL_SSL")

    @property
    def servers(self) -> tuple[str, str]:
        return self.source.bootstrap_servers, self.target.bootstrap_servers

    def fill(self, topic: str, partitions: int, count: int) -> None:
        """Write to every partition of a topic of the source."""
        for partition in range(partitions):
            produce(self.source, topic, _records(count), partition=partition)

    def wait_copied(self, topic: str, remote: str) -> None:
        """Wait until the target has every record, and see that each is as it was."""
        self.wait_arrived(self.target, topic, remote)

    def wait_arrived(self, cluster: KafkaCluster, topic: str, remote: str) -> None:
        """The same, on whichever cluster."""
        wanted = {at: end for (_, at), end in ends(self.source, [topic]).items()}

        def found() -> dict[int, int]:
            return {at: end for (_, at), end in ends(cluster, [remote]).items()}

        wait_for(
            lambda: found() == wanted,
            within=SECONDS,
            describe=lambda: f"{remote} {wanted}; found {found()}",
        )
        assert _contents(cluster, remote) == _contents(self.source, topic)


def _records(count: int) -> Iterator[Record]:
    # Of today: older ones would soon be deleted.
    now_ms = time.time_ns() // 1_000_000
    for number in range(count):
        headers = (("trace", b"%d" % number), ("empty", None))
        yield Record(b"%d" % number, b"key-%d" % (number % 3), headers, now_ms + number)


def _contents(cluster: KafkaCluster, topic: str) -> dict[int, list[Content]]:
    partitions = read_topic(cluster.bootstrap_servers, topic, read_committed=True)
    return {at: [each.content for each in records] for at, records in partitions.items()}


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
            worker.wait_running(CENTRAL[2], tasks=2, on=leader)

        # Their files ask for three copies of internal topics, of two brokers: there are two then.
        for topic in ("checkpoints", "heartbeats", "offset-syncs"):
            assert f"set {topic}.topic.replication.factor to at most" in leader.log
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
            follower.wait_running(name, tasks, on=leader)
        assert "mm2-offset-syncs.new.internal" in topic_names(clusters.source)
        _wait_for_heartbeats(clusters.target, ("old", "new"))
        _wait_for_checkpoint(clusters.target, "old.checkpoints.internal", "billing", "orders")
        # That is for the application beside it.
        assert committed_offsets(clusters.target, "billing") == {}


class TestSmallestConnector:
    """C: the worker has variables and no file, and its own cluster is the source."""

    def test_c_records_go_to_the_overridden_cluster(
        self, clusters: Clusters, worker: WorkerProcess
    ) -> None:
        create_topic(clusters.source, "to_replicate")
        clusters.fill("to_replicate", 1, 20)
        source, target = clusters.servers
        config = files.smallest("test_mirror", "to_replicate", source, target)
        config["producer.override.bootstrap.servers"] = target
        created = worker.ask("POST", "/connectors", {"name": "test_mirror", "config": config})
        assert created.status_code == 201, created.text
        assert worker.get("/connectors") == ["test_mirror"]
        clusters.wait_copied("to_replicate", "source.to_replicate")
        clusters.fill("to_replicate", 1, 20)
        clusters.wait_copied("to_replicate", "source.to_replicate")
        status = worker.wait_running("test_mirror", tasks=1, on=worker)
        assert "trace" not in status["connector"]
        assert "records go to" not in worker.log
        # Quotes are part of a group's name, and of no host.
        assert '[Worker clientId=connect-1, groupId="quickstart"] Herder started' in worker.log
        assert status["tasks"][0]["worker_id"].startswith("localhost:")

    def test_c_records_go_to_the_workers_own_cluster(
        self, clusters: Clusters, worker: WorkerProcess
    ) -> None:
        create_topic(clusters.source, "to_keep")
        clusters.fill("to_keep", 1, 20)
        source, target = clusters.servers
        config = files.smallest("test_home", "to_keep", source, target)
        created = worker.ask("POST", "/connectors", {"name": "test_home", "config": config})
        assert created.status_code == 201, created.text
        clusters.wait_arrived(clusters.source, "to_keep", "source.to_keep")
        # The topic is created on the target, as the config says, and stays empty.
        assert ends(clusters.target, ["source.to_keep"]) == {TopicPartition("source.to_keep", 0): 0}
        status = worker.wait_running("test_home", tasks=1, on=worker)
        told = status["connector"]["trace"]
        assert told.startswith("records go to 127.0.0.1:")
        assert f"producer.override.bootstrap.servers={','.join(sorted(target.split(',')))}" in told
        warnings = [line for line in worker.log.splitlines() if told in line]
        assert warnings
        assert "WARN" in warnings[0]


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
            second.wait_running("mm2-src", tasks=3, on=first)
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
