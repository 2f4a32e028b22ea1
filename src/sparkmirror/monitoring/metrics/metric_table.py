"""The table of all metrics: samples are checked against it, and docs/metrics.md derives from it.

Runs on: worker. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.monitoring.metrics.table.jvm_rows import JVM_ROWS, PROCESS_ROWS
from sparkmirror.monitoring.metrics.table.kafka_rows import KAFKA_ROWS
from sparkmirror.monitoring.metrics.table.metric_row import MetricRow
from sparkmirror.monitoring.metrics.table.own_rows import OWN_ROWS

ALL_ROWS = (*KAFKA_ROWS, *JVM_ROWS, *PROCESS_ROWS, *OWN_ROWS)
METRICS: Mapping[str, MetricRow] = {row.name: row for row in ALL_ROWS}
