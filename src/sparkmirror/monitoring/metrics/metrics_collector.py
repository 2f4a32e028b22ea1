"""Collects all metrics when somebody asks, from what the worker knows at that moment.

Runs on: worker; on a thread of the REST server, or of the exporter for OpenTelemetry. Nothing is
counted for metrics alone but in the places that `table` names, and nothing is kept here between two
scrapes but what rates need. A part that cannot be read is left out, and
`sparkmirror_metrics_part_up` says so; the others are shown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from sparkmirror.errors import MirrorError
from sparkmirror.monitoring.metrics.sample_sheet import SampleSheet

log = logging.getLogger(__name__)

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
FillIn = Callable[[SampleSheet], None]


class MetricsCollector(Collector):
    """`parts` by name; for any thread."""

    def __init__(self, parts: Mapping[str, FillIn]) -> None:
        self._parts = parts
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """One scrape."""
        sheet = SampleSheet()
        for name, fill_in in self._parts.items():
            sheet.add("sparkmirror_metrics_part_up", _is_filled_in(sheet, name, fill_in), name)
        return sheet.families()

    def describe(self) -> Iterable[Metric]:
        """Nothing: a registry would collect to learn the names."""
        return ()

    def text(self) -> bytes:
        """In the format of Prometheus."""
        return generate_latest(self._registry)


def _is_filled_in(sheet: SampleSheet, name: str, fill_in: FillIn) -> bool:
    try:
        fill_in(sheet)
    except MirrorError as error:
        log.debug("metrics without %s: %s", name, error)
        return False
    # One of the boundaries: a mistake in one part must not cost users all others.
    except Exception:
        log.exception("metrics without %s", name)
        return False
    return True
