"""Real causes, a real Prometheus, and the alerts of deploy/monitoring that fire on them.

`for` is left out, so that an alert fires as soon as its condition holds, and a task that fails is
watched for half a minute instead of five. How long each waits is tested in test_promtool.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient

from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.ports import ReservedPort
from tests.certificates import make_ca
from tests.clusters import Record, end_offset, produce, start_clusters, wait_for
from tests.mm2_suite.topics import alter_configs
from tests.monitoring_files.alert_scenarios import RULES
from tests.monitoring_files.live_flow import (
    PARTITIONS,
    RETENTION_MS,
    LiveFlow,
    connector_settings,
    flow_on_worker,
)
from tests.monitoring_files.prometheus_server import PrometheusServer
from tests.worker_cluster.workers import Flow, Worker, connector_path

pytestmark = [pytest.mark.long, pytest.mark.kafka]

SECONDS = 120.0
AGE_MS = 2 * 3_600_000
RECORDS, LEFT = 20, 5
# Without `for` these fire for a moment: while a task starts, its lag is not known; when it starts
# for the fifth time, as it does here, that is worth a warning.
ALLOWED = {"SparkmirrorLagUnknown", "SparkmirrorMetricsIncomplete", "SparkmirrorTaskRestarts"}


@dataclass(frozen=True, slots=True)
class Scene:
    """A worker whose flow is watched."""

    flow: LiveFlow
    worker: Worker
    connectors: Flow
    prometheus: PrometheusServer
    trusted: Path

    def firing(self) -> set[str]:
        """The names of the alerts that fire."""
        active = self.prometheus.alerts()
        return {name for name, state in active.items() if state == "firing"} - ALLOWED

    def wait_firing(self, *alerts: str) -> None:
        """Until these fire, and no others."""
        wait_for(
            lambda: self.firing() == set(alerts),
            within=SECONDS,
            describe=lambda: f"{alerts} fire: {self.firing()}; {self.worker.log_end()}",
        )

    def wait_for_alert(self, alert: str) -> None:
        """Until it fires."""
        wait_for(
            lambda: alert in self.firing(),
            within=SECONDS,
            describe=lambda: f"{alert} fires: {self.firing()}; {self.worker.log_end()}",
        )

    def wait_for_end(self, alert: str) -> None:
        """Until it no longer fires."""
        wait_for(
            lambda: alert not in self.firing(),
            within=SECONDS,
            describe=lambda: f"{alert} ends: {self.prometheus.alerts()}; {self.worker.log_end()}",
        )

    def change(self, connector: str, action: str) -> None:
        """`pause`, `resume` or `stop` a connector."""
        done = self.worker.ask("PUT", connector_path(connector, action))
        assert done.is_success, done.text

    def reconfigure(self, connector: str, **settings: str) -> None:
        """Change settings of a connector, which restarts it."""
        config = {**connector_settings(self.connectors)[connector], **settings}
        done = self.worker.ask("PUT", connector_path(connector, "config"), config)
        assert done.is_success, done.text

    def write(self, age_ms: int = 0) -> None:
        """Records of that age."""
        timestamp = int(time.time() * 1000) - age_ms
        records = [Record(b"x" * 100, timestamp_ms=timestamp)] * RECORDS
        for partition in range(PARTITIONS):
            produce(self.flow.source, self.flow.topic, records, partition=partition)


@pytest.fixture(scope="module")
def clusters() -> Iterator[list[KafkaCluster]]:
    """Its own, because it freezes one."""
    with start_clusters("alerts-source", "alerts-target") as clusters:
        yield clusters


@pytest.fixture(scope="module")
def scene(
    clusters: list[KafkaCluster], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    rules = tmp_path_factory.mktemp("rules") / "alerts.yml"
    text = re.sub(r"\n +for: \w+", "", RULES.read_text("ascii"))
    rules.write_text(text.replace("[5m]", "[30s]"), "ascii")
    folder = tmp_path_factory.mktemp("alerts")
    source, target = clusters
    trusted = folder / "ca.pem"
    trusted.write_text(make_ca().pem)
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(trusted)}
    with (
        flow_on_worker(folder, source, target, trust) as (flow, worker, connectors),
        ReservedPort() as port,
    ):
        flow.fill(RECORDS, 100)
        flow.wait_copied()
        flow.commit(RECORDS)
        server = PrometheusServer(
            tmp_path_factory.mktemp("prometheus"), port, [flow.metrics], [rules]
        )
        with server:
            server.wait_scraped()
            yield Scene(flow, worker, connectors, server, trusted)


def test_nothing_fires_while_all_is_well(scene: Scene) -> None:
    scene.wait_firing()  # the group has its first checkpoint
    for _ in range(10):
        scene.write()
        time.sleep(1)
        assert scene.firing() == set()


def test_a_paused_flow_falls_behind_until_retention_threatens(scene: Scene) -> None:
    flow, source = scene.flow, scene.connectors.source_name
    scene.change(source, "pause")
    scene.worker.wait_for_states(source, "PAUSED")
    scene.write(AGE_MS)
    scene.wait_firing("SparkmirrorLag", "SparkmirrorLossBegins")
    left = scene.prometheus.number("min(sparkmirror_flow_seconds_until_loss)")
    behind = scene.prometheus.number("max(sparkmirror_flow_lag_seconds)")
    assert behind == pytest.approx(AGE_MS / 1000, abs=SECONDS)
    assert left == pytest.approx((RETENTION_MS - AGE_MS) / 1000, abs=SECONDS)
    scene.change(source, "resume")
    flow.wait_copied()
    scene.wait_firing()


def test_records_that_were_deleted_are_lost(scene: Scene) -> None:
    flow, source = scene.flow, scene.connectors.source_name
    scene.change(source, "pause")
    scene.worker.wait_for_states(source, "PAUSED")
    scene.write()
    end = end_offset(flow.source, flow.topic)
    admin = AdminClient({"bootstrap.servers": flow.source.bootstrap_servers})
    (deleted,) = admin.delete_records([ClientPartition(flow.topic, 0, end - LEFT)]).values()
    deleted.result(30)
    scene.change(source, "resume")
    scene.wait_for_alert("SparkmirrorRecordsLost")
    assert scene.prometheus.number("max(sparkmirror_flow_lost_records_total)") == RECORDS - LEFT


def test_a_record_that_the_target_rejects_fails_the_task_or_is_skipped(scene: Scene) -> None:
    flow, source = scene.flow, scene.connectors.source_name
    alter_configs(flow.target, flow.remote, {"max.message.bytes": "2000"})
    produce(flow.source, flow.topic, [b"x" * 4000])
    scene.wait_for_alert("SparkmirrorTaskFailed")
    scene.reconfigure(source, **{"errors.tolerance": "all"})
    scene.wait_for_alert("SparkmirrorRecordsSkipped")
    scene.wait_for_end("SparkmirrorTaskFailed")
    assert scene.prometheus.number("max(sparkmirror_flow_skipped_records_total)") == 1
    alter_configs(flow.target, flow.remote, {"max.message.bytes": None})


def test_a_cluster_that_cannot_be_reached_fails_the_connector(scene: Scene) -> None:
    source = scene.connectors.source_name
    with ReservedPort() as closed:
        nowhere = f"127.0.0.1:{closed.number}"
        scene.reconfigure(source, **{"source.cluster.bootstrap.servers": nowhere})
        scene.wait_for_alert("SparkmirrorConnectorFailed")
        scene.reconfigure(source)
    scene.wait_for_end("SparkmirrorConnectorFailed")


def test_partitions_of_a_frozen_source_are_stuck(scene: Scene) -> None:
    with frozen(scene.flow.source):
        scene.wait_for_alert("SparkmirrorPartitionStuck")
        problems = scene.prometheus.ask("sparkmirror_partition_stuck")
        assert {each.labels["topic"] for each in problems} == {scene.flow.topic}
    scene.wait_for_end("SparkmirrorPartitionStuck")


def test_a_frozen_target_takes_no_heartbeats_and_no_worker_leads(scene: Scene) -> None:
    """The group's coordinator is there: its worker may not go on when its session has ended."""
    alerts = ("SparkmirrorNoHeartbeat", "SparkmirrorNoLeader")
    with frozen(scene.flow.target):
        for alert in alerts:
            scene.wait_for_alert(alert)
    for alert in alerts:
        scene.wait_for_end(alert)


@contextmanager
def frozen(cluster: KafkaCluster) -> Iterator[None]:
    """Connections stay open, and no response comes."""
    (broker,) = cluster.brokers
    broker.pause()
    try:
        yield
    finally:
        broker.resume()


def test_a_worker_that_was_killed_is_down_until_it_comes_back_with_an_old_ca(scene: Scene) -> None:
    scene.worker.kill()
    scene.wait_for_alert("SparkmirrorWorkerDown")
    old = make_ca().issue("old", hosts=(), lasts=timedelta(days=8), is_ca=True)
    scene.trusted.write_text(old.pem)
    scene.worker.start()
    scene.wait_for_alert("SparkmirrorCertificateExpires")
    scene.wait_for_end("SparkmirrorWorkerDown")
