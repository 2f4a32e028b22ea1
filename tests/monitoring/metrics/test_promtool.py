"""Prometheus's own check of what a worker with everything would show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sparkmirror.config.worker.metrics_keys import PerPartition
from sparkmirror.monitoring.metrics.metric_table import METRICS
from sparkmirror.monitoring.metrics.metrics_collector import FillIn, MetricsCollector
from sparkmirror.monitoring.metrics.parts.flow_samples import FlowSamples
from sparkmirror.monitoring.metrics.parts.machine_samples import ProcessSamples
from sparkmirror.monitoring.metrics.parts.worker_samples import WorkerSamples
from sparkmirror.monitoring.metrics.sample_sheet import SampleSheet
from sparkmirror.monitoring.metrics.table.metric_row import MetricType
from tests.monitoring.metrics.expositions import complaints
from tests.monitoring.metrics.facts import FACTS
from tests.monitoring.metrics.groups import OWN, FakeGroupOfWorkers
from tests.monitoring.metrics.lags import StubLag, flow_lag, partition_lag

KIP_971 = "kafka_connect_mirror_mirrorsourceconnector_replication_record_lag"


def every_metric(sheet: SampleSheet) -> None:
    """One sample of each row of the table."""
    for row in METRICS.values():
        values = ["x"] * len(row.labels)
        if row.type is MetricType.SUMMARY:
            sheet.add_summary(row.name, 1, 1.0, *values)
        elif row.type is MetricType.HISTOGRAM:
            sheet.add_histogram(row.name, (1.0,), (1, 2), 3.0, *values)
        else:
            sheet.add(row.name, 1.0, *values)


def test_prometheus_objects_to_no_name_of_ours() -> None:
    found = complaints(MetricsCollector({"all": every_metric}).text().decode())
    assert found.keys() <= FACTS.keys() | {KIP_971}


def test_prometheus_accepts_what_a_worker_shows(tmp_path: Path) -> None:
    world = FakeGroupOfWorkers(tmp_path, [0.0])
    world.add("a->b.src", ("RUNNING", OWN))
    lag = StubLag([partition_lag('odd"\\\ntopic')], [flow_lag()])
    parts: Mapping[str, FillIn] = {
        "worker": WorkerSamples(lambda: [world.group]),
        "lag": FlowSamples(lag, PerPartition.AUTO),
        "process": ProcessSamples(),
    }
    found = complaints(MetricsCollector(parts).text().decode())
    assert found.keys() <= FACTS.keys() | {KIP_971}
