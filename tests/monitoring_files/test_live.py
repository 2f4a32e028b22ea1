"""A real Prometheus beside a worker, and beside dedicated mode, that copy records.

Every query that has values with genuine MirrorMaker 2 (test_genuine) has values here, and those
that can be computed independently are right.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.ports import ReservedPort
from tests.clusters import wait_for
from tests.monitoring_files.dashboard_queries import (
    HERE,
    OURS,
    DashboardQuery,
    is_for_quoted_names,
    listed_queries,
    panel_queries,
)
from tests.monitoring_files.live_flow import (
    PARTITIONS,
    LiveFlow,
    flow_of_dedicated_mode,
    flow_on_worker,
)
from tests.monitoring_files.prometheus_server import PrometheusServer, promtool

pytestmark = [pytest.mark.long, pytest.mark.kafka]

VALUE_BYTES = 1000
FIRST, ROUNDS, EACH = 100, 20, 10
RECORDS = PARTITIONS * (FIRST + ROUNDS * EACH)
# Of 1,000 bytes that are all the same nothing is compressed by the test's producer.
MOST_BYTES = 1.2
SECONDS = 60.0
# Panels of our dashboard that are empty as long as all is well.
QUIET_PANELS = {
    "Topics that are furthest behind",
    "Topics that lose records first",
    "Partitions that are not copied, and why",
    "Groups that are not synced",
    "Caught up in",
    "Loss begins in",
    "Certificates",
    "Batches on the slow path, by reason",
}


@dataclass(frozen=True, slots=True)
class Watched:
    """A flow that has copied `RECORDS`, and the Prometheus that saw it."""

    flow: LiveFlow
    prometheus: PrometheusServer

    def number(self, query: str) -> float:
        """The only value; $topic is the remote topic."""
        return self.prometheus.number(query.replace("$topic", f'topic="{self.flow.remote}"'))

    def empty(self, rows: Sequence[DashboardQuery]) -> list[str]:
        """The panels without values."""
        return [row.panel for row in rows if not self.prometheus.ask(row.query)]


@pytest.fixture(scope="module", params=["worker", "dedicated"])
def watched(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "worker":
        with flow_on_worker(folder, source_cluster, target_cluster) as (flow, _, _):
            yield from watch(flow, tmp_path_factory)
    else:
        with flow_of_dedicated_mode(folder, source_cluster, target_cluster) as flow:
            yield from watch(flow, tmp_path_factory)


def watch(flow: LiveFlow, folders: pytest.TempPathFactory) -> Iterator[Watched]:
    flow.fill(FIRST, VALUE_BYTES)
    flow.wait_copied()
    flow.commit(FIRST // 2)
    with ReservedPort() as port:
        server = PrometheusServer(folders.mktemp("prometheus"), port, [flow.metrics])
        with server:
            server.wait_scraped()
            for _ in range(ROUNDS):
                flow.fill(EACH, VALUE_BYTES)
                time.sleep(0.2)
            flow.wait_copied()
            yield Watched(flow, server)


def test_every_query_that_works_has_values(watched: Watched) -> None:
    rows = [row for row in listed_queries() if row.state in HERE]
    if watched.flow.is_dedicated:
        rows = [row for row in rows if not is_for_quoted_names(row.query)]
    wait_for(
        lambda: not watched.empty(rows),
        within=SECONDS,
        describe=lambda: f"values for {watched.empty(rows)}",
    )


def test_the_others_have_none(watched: Watched) -> None:
    others = [row for row in listed_queries() if row.state not in HERE]
    assert watched.empty(others) == [row.panel for row in others]
    quoted = [row for row in listed_queries() if is_for_quoted_names(row.query)]
    assert quoted
    if watched.flow.is_dedicated:
        assert watched.empty(quoted) == [row.panel for row in quoted]


def test_every_panel_of_ours_has_values(watched: Watched) -> None:
    rows = [row for row in panel_queries(OURS.name) if row.panel not in QUIET_PANELS]
    wait_for(
        lambda: not watched.empty(rows),
        within=SECONDS,
        describe=lambda: f"values for {watched.empty(rows)}",
    )


@pytest.mark.parametrize(
    ("query", "low", "high"),
    [
        (
            "sum(kafka_connect_mirror_mirrorsourceconnector_record_count{$topic})",
            RECORDS,
            RECORDS,
        ),
        (
            "sum(kafka_connect_mirror_mirrorsourceconnector_byte_count{$topic})",
            RECORDS * VALUE_BYTES,
            RECORDS * VALUE_BYTES * MOST_BYTES,
        ),
        # Per second, over a minute or less.
        (
            "max_over_time(sum(kafka_connect_mirror_mirrorsourceconnector_record_rate)[5m:1s])",
            1,
            RECORDS,
        ),
        (
            "max(kafka_connect_mirror_mirrorsourceconnector_replication_latency_ms{$topic})",
            0,
            60_000,
        ),
        ("max(kafka_connect_mirror_mirrorsourceconnector_record_age_ms{$topic})", 0, 60_000),
        ('sum(kafka_consumer_fetch_manager_records_lag{clientid=~".*consumer.*"})', 0, 0),
        ("sum(kafka_connect_worker_connector_count)", 3, 3),
        ("sum(kafka_connect_worker_task_count)", 3, 3),
        ("sum(kafka_connect_worker_connector_running_task_count)", 3, 3),
        ("sum(kafka_connect_worker_connector_failed_task_count)", 0, 0),
        (
            "sum(kafka_consumer_incoming_byte_total)",
            RECORDS * VALUE_BYTES,
            RECORDS * VALUE_BYTES * 10,
        ),
        (
            "sum(kafka_producer_outgoing_byte_total)",
            RECORDS * VALUE_BYTES,
            RECORDS * VALUE_BYTES * 10,
        ),
        ("sum(jvm_memory_used_bytes)", 10e6, 2e9),
        ("sum(jvm_threads_current)", 5, 1000),
        ("sum(process_resident_memory_bytes)", 50e6, 2e9),
        ("sum(sparkmirror_flow_records_total)", RECORDS, RECORDS),
        ("max(sparkmirror_flow_lag_seconds)", 0, 0),
        ("sum(sparkmirror_flow_lag_records)", 0, 0),
        ("max(sparkmirror_heartbeat_age_seconds)", 0, 10),
        ("sum(sparkmirror_flow_replication_latency_seconds_count)", RECORDS, RECORDS),
    ],
)
def test_values_have_the_right_size(watched: Watched, query: str, low: float, high: float) -> None:
    wait_for(
        lambda: low <= watched.number(query) <= high,
        within=SECONDS,
        describe=lambda: f"{query} between {low:g} and {high:g}: {watched.number(query):g}",
    )


def test_promtool_accepts_the_metrics(watched: Watched) -> None:
    """Names that Kafka or the JMX exporter chose break its rules of style; ours do not."""
    checked = promtool("check", "metrics", given=watched.flow.scrape())
    assert "error while linting" not in checked.stderr
    foreign = ("kafka_", "jvm_")
    assert [line for line in checked.stderr.splitlines() if not line.startswith(foreign)] == []
