"""The keys of our metrics: where they are served and pushed, and in how much detail.

A worker's file and an mm2 file have the same ones, at the top level.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sparkmirror.config.config_def import BadValue, Definition, Key, Type, fill
from sparkmirror.config.worker.rest_keys import Listener, parse_listeners


class PerPartition(enum.StrEnum):
    """Whether each partition has series of its own."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """`otlp_endpoint`: "" if nothing is pushed."""

    listeners: tuple[Listener, ...] = ()
    per_partition: PerPartition = PerPartition.AUTO
    otlp_endpoint: str = ""
    otlp_interval_ms: int = 60_000


def _endpoint(text: str) -> str:
    url = urlsplit(text)
    if text and (url.scheme not in ("http", "https") or not url.hostname):
        raise BadValue("is not a URL", "write http://host:4318/v1/metrics")
    return text


METRICS_KEYS = Definition(
    Key(
        name="sparkmirror.metrics.listeners",
        type=Type.LIST,
        default=(),
        attribute="listeners",
        convert=parse_listeners,
        doc="Further addresses that serve only `/metrics` (metrics.md), as `http://host:port`, "
        "such as `http://:9404`. Each REST listener serves it, too.",
    ),
    Key(
        name="sparkmirror.metrics.per.partition",
        type=Type.STRING,
        default=PerPartition.AUTO,
        one_of=tuple(PerPartition),
        attribute="per_partition",
        convert=PerPartition,
        doc="Whether `/metrics` has series for each partition. `auto`: up to 1,000 partitions; "
        "beyond that one per topic, and beyond 1,000 topics one per flow. `never`: at most per "
        "topic.",
    ),
    Key(
        name="sparkmirror.metrics.otlp.endpoint",
        type=Type.STRING,
        default="",
        attribute="otlp_endpoint",
        convert=_endpoint,
        doc="URL to which the metrics are pushed as OTLP over HTTP, such as "
        "`http://collector:4318/v1/metrics`; empty: none. Needs `pip install sparkmirror[otel]`.",
    ),
    Key(
        name="sparkmirror.metrics.otlp.interval.ms",
        type=Type.LONG,
        default=60_000,
        at_least=1000,
        attribute="otlp_interval_ms",
        doc="How often.",
    ),
)


def metrics_config(values: Mapping[str, Any]) -> MetricsConfig:
    """The metrics in the parsed METRICS_KEYS."""
    return fill(MetricsConfig, METRICS_KEYS, values)
