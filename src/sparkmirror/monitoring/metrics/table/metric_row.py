"""One row of the table of metrics.

Runs on: worker. Pure.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

UNITS = ("seconds", "bytes", "ratio", "percentage", "ms")
NAME = re.compile(r"[a-z_][a-z0-9_]*")


class MetricType(enum.StrEnum):
    """As Prometheus calls them."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"
    UNTYPED = "untyped"


class Merge(enum.StrEnum):
    """What becomes of two values with the same labels, as two pairs of an mm2 file may have."""

    ADD = "add"
    MOST = "most"
    LEAST = "least"


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric. `labels` in the order in which samples give their values.

    `origin` says where the value comes from. A value that is not known has no sample.
    """

    name: str
    type: MetricType
    help: str
    origin: str
    labels: tuple[str, ...] = ()
    merge: Merge = Merge.ADD

    @property
    def family(self) -> str:
        """The name in HELP and TYPE lines as prometheus-client wants it."""
        return self.name.removesuffix("_total") if self.type is MetricType.COUNTER else self.name

    @property
    def unit(self) -> str:
        """What its name says; "" if nothing."""
        words = self.name.removesuffix("_total").split("_")
        return next((unit for unit in UNITS if unit in words), "")


def gauge(
    name: str,
    labels: tuple[str, ...],
    text: str,
    origin: str,
    merge: Merge = Merge.ADD,
) -> MetricRow:
    """A value that goes up and down."""
    return MetricRow(name, MetricType.GAUGE, text, origin, labels, merge)


def counter(name: str, labels: tuple[str, ...], text: str, origin: str) -> MetricRow:
    """A value that only grows, and begins at zero again with the process."""
    return MetricRow(name, MetricType.COUNTER, text, origin, labels)
