"""Pushes the metrics to an OpenTelemetry collector, as OTLP over HTTP: `sparkmirror[otel]`.

Runs on: worker, on a thread of its own. Each push is a scrape: the families of /metrics, under the
same names, go out as they are. OpenTelemetry's own instruments would count everything once more,
and drop what is beyond 2,000 series.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.metrics.export import Metric as OtelMetric
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

from sparkmirror import __version__
from sparkmirror.config.worker.metrics_keys import MetricsConfig
from sparkmirror.monitoring.metrics.metrics_collector import MetricsCollector

log = logging.getLogger(__name__)

NAME = "sparkmirror"
EXPORT_SECONDS = 10.0
STOP_SECONDS = 1.0
GROWS = AggregationTemporality.CUMULATIVE


class OtlpPush:
    """Pushes every `sparkmirror.metrics.otlp.interval.ms`, and continues after failures.

    The variables OTEL_EXPORTER_OTLP_HEADERS, ..._CERTIFICATE and the like are those of
    OpenTelemetry's exporter, which reads them itself.
    """

    def __init__(self, collector: MetricsCollector, config: MetricsConfig) -> None:
        self._collector = collector
        self._endpoint = config.otlp_endpoint
        self._interval = config.otlp_interval_ms / 1000
        self._exporter = OTLPMetricExporter(endpoint=config.otlp_endpoint, timeout=EXPORT_SECONDS)
        # It would say every failure again.
        logging.getLogger(OTLPMetricExporter.__module__).setLevel(logging.CRITICAL)
        self._began_ns = time.time_ns()
        self._is_failing = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics push", daemon=True)

    def start(self) -> None:
        """Push from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Push no more; what is under way is given a second."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopping.wait(self._interval):
            self.push()
        self._exporter.shutdown()

    def push(self) -> None:
        """Once, now."""
        data = otlp_data(self._collector.collect(), self._began_ns, time.time_ns())
        has_failed = self._exporter.export(data) is not MetricExportResult.SUCCESS
        if has_failed and not self._is_failing:
            log.warning("metrics cannot be pushed to %s; trying again", self._endpoint)
        elif self._is_failing and not has_failed:
            log.info("metrics are pushed to %s again", self._endpoint)
        self._is_failing = has_failed


def otlp_data(families: Iterable[Metric], began_ns: int, now_ns: int) -> MetricsData:
    """The families of one scrape."""
    metrics = [metric for family in families for metric in _metrics_of(family, began_ns, now_ns)]
    resource = Resource.create(
        {
            "service.name": NAME,
            "service.version": __version__,
            "service.instance.id": socket.gethostname(),
        }
    )
    scope = ScopeMetrics(InstrumentationScope(NAME, __version__), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _metrics_of(family: Metric, began_ns: int, now_ns: int) -> Iterator[OtelMetric]:
    if family.type == "histogram":
        points = list(_histogram_points(family.samples, began_ns, now_ns))
        yield OtelMetric(family.name, family.documentation, "s", Histogram(points, GROWS))
        return
    by_name: dict[str, list[NumberDataPoint]] = defaultdict(list)
    for sample in family.samples:
        point = NumberDataPoint(sample.labels, began_ns, now_ns, sample.value)
        by_name[sample.name].append(point)
    grows = family.type in ("counter", "summary")
    for name, found in by_name.items():
        data = Sum(found, GROWS, is_monotonic=True) if grows else Gauge(found)
        yield OtelMetric(name, family.documentation, "", data)


def _histogram_points(
    samples: Sequence[Sample], began_ns: int, now_ns: int
) -> Iterator[HistogramDataPoint]:
    """Samples of a histogram come together: the buckets up to +Inf, the count, the sum."""
    bounds: list[float] = []
    counts: list[int] = []
    count = 0
    for sample in samples:
        value = sample.value
        if sample.name.endswith("_bucket"):
            bounds.append(float(sample.labels["le"]))
            counts.append(int(value))
        elif sample.name.endswith("_count"):
            count = int(value)
        else:
            each = [b - a for a, b in zip([0, *counts], counts, strict=False)]
            yield HistogramDataPoint(
                attributes=sample.labels,
                start_time_unix_nano=began_ns,
                time_unix_nano=now_ns,
                count=count,
                sum=value,
                bucket_counts=each,
                explicit_bounds=bounds[:-1],
                # What the last minute's extremes were is not kept.
                min=float("nan"),
                max=float("nan"),
            )
            bounds, counts = [], []
