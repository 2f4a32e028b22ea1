"""What watches a running mirror: the lag model, events, views, metrics, and their servers.

Imported when a worker starts, because it imports Spark and the REST server.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from sparkmirror.config.worker.metrics_keys import MetricsConfig
from sparkmirror.config.worker.rest_keys import RestConfig
from sparkmirror.errors import MissingPart
from sparkmirror.monitoring.event_log import EventLog
from sparkmirror.monitoring.lag.lag_model import LagModel
from sparkmirror.monitoring.metrics.metrics_collector import CONTENT_TYPE, MetricsCollector
from sparkmirror.monitoring.metrics.parts.worker_parts import worker_parts
from sparkmirror.monitoring.monitored import Monitored
from sparkmirror.monitoring.views.views import Views
from sparkmirror.rest.metrics_api import metrics_app
from sparkmirror.rest.request import RestOptions, RestResponse
from sparkmirror.rest.rest_server import RestServer
from sparkmirror.rest.security.tls import client_contexts, listener_context
from sparkmirror.rest.views.event_stream import EventStreams
from sparkmirror.rest.views.peer_client import PeerClient
from sparkmirror.rest.views.static_files import StaticFiles
from sparkmirror.wire.tls.tls_context import TlsSettings

if TYPE_CHECKING:
    from sparkmirror.monitoring.metrics.otlp import OtlpPush

log = logging.getLogger("sparkmirror")


class Monitoring(AbstractContextManager["Monitoring"]):
    """Of one process, from its start to its end."""

    def __init__(self, monitored: Monitored, config: MetricsConfig, rest: RestConfig) -> None:
        self.lag = LagModel(monitored)
        self.events = EventLog()
        # From now on: what happens while the worker starts is worth to be seen too.
        log.addHandler(self.events)
        self._peers = PeerClient(client_contexts(rest.tls))
        self._views = Views(monitored, self.lag, self.events, self._peers)
        self._files = StaticFiles()
        self._is_open = rest.is_open
        self._collector = MetricsCollector(
            worker_parts(monitored, self.lag, config.per_partition, lambda: _tls_of(rest))
        )
        self._push = _push_of(self._collector, config)

    def metrics(self) -> RestResponse:
        """What GET /metrics returns."""
        return RestResponse(raw=self._collector.text(), content_type=CONTENT_TYPE)

    def options(self, options: RestOptions) -> RestOptions:
        """The same for a listener that shows all of it; each has streams of its own."""
        return replace(
            options,
            metrics=self.metrics,
            views=self._views,
            streams=EventStreams(self._views.overview, lambda: self._views.is_stopping),
            files=self._files,
            is_open=self._is_open,
        )

    def stop_streams(self) -> None:
        """Open pages would keep the servers from ending."""
        self._views.stop()

    def __enter__(self) -> Monitoring:
        self.lag.start()
        self._views.start()
        if self._push is not None:
            self._push.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._push is not None:
            self._push.stop()
        self._views.stop()
        self.lag.stop()
        self._peers.close()
        log.removeHandler(self.events)


class MetricsServer:
    """Serves `/metrics` at `sparkmirror.metrics.listeners`; does nothing where there are none."""

    def __init__(self, config: MetricsConfig, rest: RestConfig) -> None:
        self._listeners = config.listeners
        is_https = any(each.is_https for each in self._listeners)
        context = listener_context(rest.tls) if is_https else None
        self._server = RestServer(
            [(each.host, each.port) for each in self._listeners],
            [context if each.is_https else None for each in self._listeners],
        )

    @property
    def ports(self) -> list[int]:
        """Those that it listens on."""
        return self._server.ports

    def bind(self) -> MetricsServer:
        """Take the addresses. Raises AddressTaken, ConfigError."""
        self._server.bind()
        return self

    def start(self, options: RestOptions) -> None:
        """Serve; `options` are those of the REST API, with what there is to show."""
        if self._listeners:
            self._server.start(metrics_app(options))
            shown = (
                str(each._replace(port=port))
                for each, port in zip(self._listeners, self.ports, strict=True)
            )
            log.info("metrics at %s", ", ".join(f"{each}/metrics" for each in shown))

    def stop(self) -> None:
        """Close the listeners."""
        self._server.stop()


def _push_of(collector: MetricsCollector, config: MetricsConfig) -> OtlpPush | None:
    if not config.otlp_endpoint:
        return None
    try:
        from sparkmirror.monitoring.metrics.otlp import OtlpPush
    except ImportError as error:
        raise MissingPart(
            f"sparkmirror.metrics.otlp.endpoint needs a package: {error}; "
            "pip install 'sparkmirror[otel]', or remove the key"
        ) from error
    return OtlpPush(collector, config)


def _tls_of(rest: RestConfig) -> Iterator[tuple[str, TlsSettings]]:
    """Of the REST API's listeners."""
    for name, tls in (("listeners", rest.tls), ("admin.listeners", rest.admin_tls)):
        if tls.security:
            yield name, TlsSettings(tls.security, f"REST API ({tls.prefix}ssl.*)")
