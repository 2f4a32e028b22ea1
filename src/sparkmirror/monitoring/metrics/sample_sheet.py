"""The samples of one scrape, checked against the table of metrics.

Runs on: worker; owned by one scrape.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.metrics_core import Metric

from sparkmirror.monitoring.metrics.metric_table import METRICS
from sparkmirror.monitoring.metrics.table.metric_row import Merge, MetricRow, MetricType

# As prometheus-client calls it.
TYPES = {MetricType.UNTYPED: "unknown"}
LabelValues = tuple[str | None, ...]


class SampleSheet:
    """Values by metric and labels. Label values come in the order of the table, None: no label."""

    def __init__(self, table: Mapping[str, MetricRow] = METRICS) -> None:
        self._table = table
        self._values: dict[str, dict[LabelValues, float]] = {}
        self._summaries: dict[str, dict[LabelValues, tuple[int, float]]] = {}
        self._histograms: dict[str, dict[LabelValues, Histogram]] = {}

    def add(self, name: str, value: float | None, *labels: str | None) -> None:
        """None is not known, and has no sample."""
        if value is None:
            return
        found = self._values.get(name)
        if found is None:
            found = self._values[name] = {}
        if labels in found:
            value = _merged(self._table[name].merge, found[labels], value)
        found[labels] = float(value)

    def add_summary(self, name: str, count: int, total: float, *labels: str | None) -> None:
        """`count` observations that add up to `total`."""
        self._summaries.setdefault(name, {})[labels] = count, total

    def add_histogram(
        self,
        name: str,
        bounds: Sequence[float],
        counts: Sequence[int],
        total: float,
        *labels: str | None,
    ) -> None:
        """`counts` of each bucket, one more for those beyond all `bounds`."""
        self._histograms.setdefault(name, {})[labels] = (bounds, counts, total)

    def families(self) -> Iterator[Metric]:
        """In the order of the table; of those that have samples."""
        for name, row in self._table.items():
            if name in self._values:
                family = _family(row)
                for labels, value in self._values[name].items():
                    family.add_sample(name, _named(row, labels), value)
                yield family
            elif name in self._summaries:
                yield self._summary(row)
            elif name in self._histograms:
                yield self._histogram(row)

    def _summary(self, row: MetricRow) -> Metric:
        family = _family(row)
        for labels, (count, total) in self._summaries[row.name].items():
            family.add_sample(f"{row.name}_count", _named(row, labels), count)
            family.add_sample(f"{row.name}_sum", _named(row, labels), total)
        return family

    def _histogram(self, row: MetricRow) -> Metric:
        family = _family(row)
        for labels, (bounds, counts, total) in self._histograms[row.name].items():
            names, up_to = _named(row, labels), 0
            for bound, count in zip((*bounds, math.inf), counts, strict=True):
                up_to += count
                edge = "+Inf" if bound == math.inf else str(float(bound))
                family.add_sample(f"{row.name}_bucket", {**names, "le": edge}, up_to)
            family.add_sample(f"{row.name}_count", names, up_to)
            family.add_sample(f"{row.name}_sum", names, total)
        return family


Histogram = tuple[Sequence[float], Sequence[int], float]


def _family(row: MetricRow) -> Metric:
    return Metric(row.family, row.help, TYPES.get(row.type, row.type.value))


def _named(row: MetricRow, values: LabelValues) -> dict[str, str]:
    pairs = zip(row.labels, values, strict=True)
    return {name: value for name, value in pairs if value is not None}


def _merged(how: Merge, old: float, new: float) -> float:
    if how is Merge.ADD:
        return old + new
    if math.isnan(old) or math.isnan(new):
        return new if math.isnan(old) else old
    return max(old, new) if how is Merge.MOST else min(old, new)
