"""The metrics as a collector of OpenTelemetry gets them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from sparkmirror.config.worker.metrics_keys import MetricsConfig, PerPartition
from sparkmirror.monitoring.metrics.metrics_collector import MetricsCollector
from sparkmirror.monitoring.metrics.otlp import OtlpPush
from sparkmirror.monitoring.metrics.parts.flow_samples import FlowSamples
from tests.monitoring.metrics.lags import StubLag, flow_lag, partition_lag


class OtelCollector(HTTPServer):
    """Keeps what is pushed."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[bytes] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1/metrics"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, OtelCollector)
        self.server.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""


@pytest.fixture
def collector() -> Iterator[OtelCollector]:
    server = OtelCollector()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def push_to(collector: OtelCollector) -> OtlpPush:
    lag = StubLag([partition_lag()], [flow_lag()])
    metrics = MetricsCollector({"lag": FlowSamples(lag, PerPartition.AUTO)})
    return OtlpPush(metrics, MetricsConfig(otlp_endpoint=collector.url))


def test_a_push_has_all_families_under_their_names(collector: OtelCollector) -> None:
    push_to(collector).push()
    request = ExportMetricsServiceRequest.FromString(collector.bodies[0])
    (resource,) = request.resource_metrics
    attributes = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert attributes["service.name"] == "sparkmirror"
    found = {each.name: each for each in resource.scope_metrics[0].metrics}
    (lag,) = found["sparkmirror_flow_lag_seconds"].gauge.data_points
    assert lag.as_double == 2.0
    assert {each.key: each.value.string_value for each in lag.attributes} == {
        "source": "a",
        "target": "b",
        "connector": "a->b.src",
    }
    records = found["sparkmirror_flow_records_total"].sum
    assert records.is_monotonic
    (latency,) = found["sparkmirror_flow_replication_latency_seconds"].histogram.data_points
    assert list(latency.bucket_counts) == [1] * 16
    assert (latency.count, latency.sum, latency.explicit_bounds[0]) == (16, 1.5, 0.005)


def test_a_collector_that_rejects_a_push_is_logged_once(
    collector: OtelCollector, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="sparkmirror")
    push = push_to(collector)
    collector.status = 400
    push.push()
    push.push()
    collector.status = 200
    push.push()
    ours = [each.message for each in caplog.records if each.name.startswith("sparkmirror")]
    assert ours == [
        f"metrics cannot be pushed to {collector.url}; trying again",
        f"metrics are pushed to {collector.url} again",
    ]
