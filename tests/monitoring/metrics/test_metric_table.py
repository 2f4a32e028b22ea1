"""The table of metrics against the facts of genuine MirrorMaker 2, and the page made from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.monitoring.metrics import docs
from sparkmirror.monitoring.metrics.left_out import LEFT_OUT
from sparkmirror.monitoring.metrics.metric_table import ALL_ROWS, METRICS
from sparkmirror.monitoring.metrics.table.jvm_rows import JVM_ROWS, PROCESS_ROWS
from sparkmirror.monitoring.metrics.table.kafka_rows import KAFKA_ROWS, SOURCE
from sparkmirror.monitoring.metrics.table.metric_row import NAME
from tests.monitoring.metrics.facts import FACTS

# KIP-971's, which no release of Kafka has; and those of Strimzi's rules for Connect, which differ
# from those for MirrorMaker 2 in these.
BEYOND = {
    f"{SOURCE}replication_record_lag",
    "kafka_connect_connector_task_status",
    *(f"kafka_connect_connector_connector_{what}" for what in ("class", "type", "version")),
}
KNOWN_ROWS = [row for row in (*KAFKA_ROWS, *JVM_ROWS, *PROCESS_ROWS) if row.name not in BEYOND]


def test_every_metric_of_genuine_mm2_is_here_or_left_out_with_a_reason() -> None:
    unexplained = {
        name
        for name in FACTS
        if name not in METRICS and not any(each.covers(name) for each in LEFT_OUT)
    }
    assert unexplained == set()


def test_nothing_is_left_out_that_is_here() -> None:
    assert [
        (each.pattern, name) for each in LEFT_OUT for name in METRICS if each.covers(name)
    ] == []


def test_what_is_left_out_is_something_that_genuine_mm2_has() -> None:
    assert [each.pattern for each in LEFT_OUT if not any(map(each.covers, FACTS))] == []


@pytest.mark.parametrize("row", KNOWN_ROWS, ids=lambda row: row.name)
def test_row_has_the_type_and_the_labels_of_genuine_mm2(row: object) -> None:
    assert row in KNOWN_ROWS
    found = next(each for each in KNOWN_ROWS if each is row)
    fact = FACTS[found.name]
    assert found.type == fact.type
    assert set(found.labels) == frozenset().union(*fact.labels)


def test_names_are_unique_and_plain() -> None:
    assert len(METRICS) == len(ALL_ROWS)
    assert all(NAME.fullmatch(name) for name in METRICS)


def test_the_page_is_that_of_the_table(tmp_path: Path) -> None:
    assert docs.main(["--check"]) == 0
    stale = tmp_path / "metrics.md"
    stale.write_text("old")
    assert docs.main(["--check", str(stale)]) == 1
    assert docs.main([str(stale)]) == 0
    assert docs.main(["--check", str(stale)]) == 0
    text = stale.read_text()
    assert all(f"`{name}`" in text for name in METRICS)
