"""/metrics of a real worker and of a real node of dedicated mode."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.ports import ReservedPort
from sparkmirror.monitoring.metrics.metric_table import METRICS
from sparkmirror.types import TopicPartition
from tests.clusters import create_topic, produce, unique_name, wait_for
from tests.group_offsets import commit_offsets
from tests.kafka.mirror_process import Mirror
from tests.monitoring.metrics.expositions import Exposition, complaints
from tests.monitoring.metrics.facts import FACTS
from tests.users import files
from tests.users.workers import WorkerProcess, run_workers
from tests.users.worlds import records

pytestmark = pytest.mark.kafka

COUNT = 300
SOURCE = "kafka_connect_mirror_mirrorsourceconnector_"
NAMES = {"a->b.src": "Source", "a->b.chk": "Checkpoint", "a->b.hbt": "Heartbeat"}


@pytest.fixture(scope="module")
def scraped(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Exposition, WorkerProcess, int]]:
    """A worker with the three connectors under Strimzi's names, when all is copied."""
    topic, folder = unique_name(), tmp_path_factory.mktemp("metrics")
    create_topic(source_cluster, topic, partitions=2)
    for partition in range(2):
        produce(source_cluster, topic, records(COUNT), partition=partition)
    commit_offsets(source_cluster, "readers", {TopicPartition(topic, 0): 100})
    clusters = {"a": source_cluster.bootstrap_servers, "b": target_cluster.bootstrap_servers}
    with ReservedPort() as port:
        group = unique_name("g")
        more = {
            "group.id": group,
            "offset.storage.topic": f"{group}-offsets",
            "config.storage.topic": f"{group}-configs",
            "status.storage.topic": f"{group}-status",
            "offset.flush.interval.ms": "1000",
            "sparkmirror.metrics.listeners": f"http://127.0.0.1:{port.number}",
        }
        text = "".join(
            f"{line}\n"
            for line in files.CENTRAL_WORKER.splitlines()
            if line.partition("=")[0] not in more
        )
        file = files.write_worker(
            folder / "worker.properties", text, target_cluster.bootstrap_servers, 0, more
        )
        with run_workers(folder, [file]) as (worker,):
            for name, kind in NAMES.items():
                settings = {
                    "topics": topic,
                    "groups": "readers",
                    "replication.factor": "1",
                    "offset-syncs.topic.replication.factor": "1",
                    "checkpoints.topic.replication.factor": "1",
                    "heartbeats.topic.replication.factor": "1",
                    "emit.checkpoints.interval.seconds": "1",
                    "sync.group.offsets.enabled": "true",
                    "sync.group.offsets.interval.seconds": "1",
                }
                config = files.connector(kind, name, clusters, **settings)
                assert worker.ask("PUT", f"/connectors/{name}/config", config).status_code == 201

            def scrape() -> Exposition:
                return Exposition(worker.ask("GET", "/metrics").text)

            def is_done() -> bool:
                found = scrape()
                stored = found.samples(f"{SOURCE}record_count")
                written = found.samples("sparkmirror_groups", state="unchanged")
                return (
                    sum(each.value for each in stored) == 2 * COUNT
                    and any(each.value for each in written)
                    and bool(found.samples("sparkmirror_spark_executors"))
                )

            wait_for(is_done, within=90, describe=lambda: scrape().text)
            time.sleep(6)  # until rates are known
            yield scrape(), worker, port.number


def test_families_have_the_names_types_and_labels_of_strimzis_rules(
    scraped: tuple[Exposition, WorkerProcess, int],
) -> None:
    found = scraped[0]
    for family in found.families:
        for sample in family.samples:
            fact = FACTS.get(sample.name)
            if fact is not None:
                assert frozenset(sample.labels) in fact.labels, sample
    assert found.names >= {name for name in METRICS if name in FACTS}, {
        name for name in METRICS if name in FACTS
    } - found.names


def test_values_are_those_of_the_flow(scraped: tuple[Exposition, WorkerProcess, int]) -> None:
    found, worker, _ = scraped
    quoted = '"a->b.src"'
    assert found.value("kafka_connect_worker_connector_count") == 3
    assert found.value("kafka_connect_worker_task_count") == 3
    assert found.value("kafka_connect_worker_task_startup_success_total") >= 3
    assert found.value("kafka_connect_worker_connector_startup_success_percentage") == 1.0
    running = "kafka_connect_worker_connector_running_task_count"
    assert found.value(running, connector=quoted) == 1
    status = found.samples("kafka_connect_connector_status", connector=quoted, task="0")
    assert [each.labels["status"] for each in status] == ["running"]
    name = "kafka_connect_source_task_source_record_write_total"
    assert found.value(name, connector=quoted) == 2 * COUNT
    poll = "kafka_connect_source_task_source_record_poll_total"
    assert found.value(poll, connector=quoted) == 2 * COUNT
    consumer = '"a->b|a->b.src-0|replication-consumer"'
    lags = found.samples("kafka_consumer_fetch_manager_records_lag", clientid=consumer)
    assert [each.value for each in lags] == [0.0, 0.0]
    assert found.value("kafka_consumer_incoming_byte_total", clientid=consumer) > 2 * COUNT
    producer = '"connector-producer-a->b.src-0"'
    assert found.value("kafka_producer_outgoing_byte_total", clientid=producer) > 2 * COUNT
    assert found.value("kafka_producer_record_send_total", clientid=producer) == 2 * COUNT
    assert found.value("kafka_producer_buffer_available_bytes", clientid=producer) > 1 << 20
    flow = {"source": "a", "target": "b", "connector": "a->b.src"}
    assert found.value("sparkmirror_flow_lag_seconds", **flow) == 0
    assert found.value("sparkmirror_flow_records_total", **flow) == 2 * COUNT
    latency = "sparkmirror_flow_replication_latency_seconds_count"
    assert found.value(latency, **flow) == 2 * COUNT
    assert 0 <= found.value("sparkmirror_heartbeat_age_seconds", connector="a->b.hbt") < 30
    assert found.value("sparkmirror_worker_leader") == 1
    assert found.value("kafka_connect_worker_rebalance_completed_rebalances_total") >= 1
    assert 0 <= found.value("kafka_connect_coordinator_last_heartbeat_seconds_ago") < 5
    assert found.value("kafka_connect_coordinator_assigned_tasks") == 3
    assert found.value("sparkmirror_worker_healthy") == 1
    assert found.value("sparkmirror_spark_tasks") == 1
    assert found.value("jvm_memory_used_bytes", area="heap") > 1 << 20
    latency = "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms"
    assert found.value(latency, group="readers", partition="0") >= 0
    parts = found.samples("sparkmirror_metrics_part_up")
    assert {each.labels["part"]: each.value for each in parts} == dict.fromkeys(
        ("worker", "tasks", "lag", "spark", "process", "certificates"), 1.0
    )
    assert found.value("process_resident_memory_bytes") > 10 << 20
    assert worker.worker_id in found.samples("kafka_connect_version")[0].labels["clientid"]


def test_prometheus_finds_only_what_it_finds_of_strimzis_names(
    scraped: tuple[Exposition, WorkerProcess, int],
) -> None:
    found = complaints(scraped[0].text)
    assert {name for name in found if name.startswith("sparkmirror_")} == set()
    assert {name for name in found if name not in FACTS} - {
        f"{SOURCE}replication_record_lag"
    } == set()


def test_the_port_of_its_own_has_the_same(scraped: tuple[Exposition, WorkerProcess, int]) -> None:
    found, _, port = scraped
    response = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False)
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert Exposition(response.text).names == found.names
    assert httpx.get(f"http://127.0.0.1:{port}/connectors", trust_env=False).status_code == 404


def test_dedicated_mode_serves_metrics_without_a_rest_api(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = unique_name()
    create_topic(source_cluster, topic)
    produce(source_cluster, topic, records(COUNT))
    with ReservedPort() as port:
        settings = {"sparkmirror.metrics.listeners": f"http://127.0.0.1:{port.number}"}
        with Mirror(tmp_path, source_cluster, target_cluster, topic, settings):

            def scrape() -> Exposition:
                url = f"http://127.0.0.1:{port.number}/metrics"
                return Exposition(httpx.get(url, trust_env=False).text)

            def is_copied() -> bool:
                stored = scrape().samples(f"{SOURCE}record_count")
                return sum(each.value for each in stored) == COUNT

            wait_for(is_copied, within=90, describe=lambda: scrape().text)
            found = scrape()
    running = "kafka_connect_worker_connector_running_task_count"
    assert found.value(running, connector="MirrorSourceConnector") == 1
    assert found.value("kafka_connect_worker_connector_count") == 3
    assert complaints(found.text).keys() <= FACTS.keys() | {f"{SOURCE}replication_record_lag"}
