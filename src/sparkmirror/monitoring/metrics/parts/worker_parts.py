"""All parts of the metrics of a worker process.

Runs on: worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.worker.metrics_keys import PerPartition
from sparkmirror.connect.source.mirror_source_connector import MirrorSourceConnector
from sparkmirror.monitoring.metrics.metrics_collector import FillIn
from sparkmirror.monitoring.metrics.parts.flow_samples import FlowSamples, LagReader
from sparkmirror.monitoring.metrics.parts.machine_samples import (
    CertificateSamples,
    ProcessSamples,
    SparkSamples,
)
from sparkmirror.monitoring.metrics.parts.task_samples import TaskSamples
from sparkmirror.monitoring.metrics.parts.worker_samples import WorkerSamples
from sparkmirror.monitoring.monitored import Monitored
from sparkmirror.wire.tls.tls_context import TlsSettings

NamedTls = Iterator[tuple[str, TlsSettings]]


def worker_parts(
    monitored: Monitored,
    lag: LagReader,
    per_partition: PerPartition,
    rest_tls: Callable[[], NamedTls],
) -> Mapping[str, FillIn]:
    """By name, as `sparkmirror_metrics_part_up` shows them."""

    def settings() -> NamedTls:
        yield from rest_tls()
        yield from _cluster_tls(monitored)

    return {
        "worker": WorkerSamples(monitored),
        "tasks": TaskSamples(monitored, per_partition),
        "lag": FlowSamples(lag, per_partition),
        "spark": SparkSamples(monitored),
        "process": ProcessSamples(),
        "certificates": CertificateSamples(settings),
    }


def _cluster_tls(monitored: Monitored) -> NamedTls:
    """Of the clusters that this worker connects to: by alias, each once."""
    clients: dict[str, ClientConfig] = {}
    for group in monitored():
        own = group.cluster.file.worker.client
        clients.setdefault(own.alias, own)
        for connector in group.cluster.loop.connectors().values():
            if isinstance(connector, MirrorSourceConnector):
                config = connector.spec.config
                clients.setdefault(config.source_alias, config.source_client)
                clients.setdefault(config.target_alias, config.target_client)
    for alias, client in clients.items():
        if client.security:
            yield alias, TlsSettings(client.security, f"'{alias}'")
