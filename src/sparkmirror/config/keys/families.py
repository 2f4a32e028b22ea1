"""Families of keys that Kafka Connect knows and that do nothing here, explained when set.

A family is everything under a prefix, such as `topic.creation.default.partitions`; its names are
the user's own, so no table of keys can list them.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.config.config_def import Definition
from sparkmirror.config.findings import Settings

NO_CONVERSION = "records are forwarded byte for byte, as with ByteArrayConverter"
NO_CREATION = (
    "remote topics are created like their source topics before anything is written to them"
)
NO_TRANSFORMS = "transforms does not name it"
NO_PREDICATES = "there are no transformations to apply them to"
NO_JMX = "there is no JMX here; /metrics has the metrics (docs/metrics.md)"
NO_REPORTER = (
    "no Java reporter runs here; /metrics has the metrics, also at sparkmirror.metrics.listeners"
)
CONVERTERS = dict.fromkeys(
    (f"{part}.converter." for part in ("key", "value", "header")), NO_CONVERSION
)
OF_CONNECTORS = {
    "topic.creation.": NO_CREATION,
    "transforms.": NO_TRANSFORMS,
    "predicates.": NO_PREDICATES,
    **CONVERTERS,
}
OF_WORKERS = {
    "metrics.context.": NO_JMX,
    "prometheus.metrics.reporter.": NO_REPORTER,
    "topic.creation.": NO_CREATION,
    **CONVERTERS,
}


def explain_families(
    settings: Settings, families: Mapping[str, str], known: Definition | None = None
) -> None:
    """Explain each key under these prefixes; keys of `known` have their own explanation."""
    for name in settings.values:
        if known is not None and name in known:
            continue
        for prefix, reason in families.items():
            if name.startswith(prefix):
                settings.findings.warn_key(name, f"has no effect: {reason}")
