"""What can be checked of alerts, dashboards and their pages without Prometheus."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest
import yaml

from sparkmirror.monitoring.metrics.metric_table import METRICS
from sparkmirror.monitoring.metrics.table.metric_row import MetricType
from tests.deploy.files import ROOT
from tests.monitoring_files.alert_scenarios import RULES
from tests.monitoring_files.dashboard_queries import (
    HERE,
    OURS,
    PLAIN,
    STATES,
    WITH_GENUINE,
    listed_queries,
    metric_names,
    panel_queries,
)
from tests.monitoring_files.replay import GENUINE

SEVERITIES = {"warning", "critical"}
SUFFIXES = {
    MetricType.HISTOGRAM: ("_bucket", "_sum", "_count"),
    MetricType.SUMMARY: ("_sum", "_count"),
}
EXPORTED = {
    name + suffix for name, row in METRICS.items() for suffix in SUFFIXES.get(row.type, ("",))
}
OPERATIONS = ROOT / "docs" / "operations.md"
# What each paragraph of the runbook has to say.
STEPS = ("**Symptom.**", "**Cause.**", "**Run.**", "**Over**")

Rule = dict[str, Any]


def alert_rules() -> list[Rule]:
    groups = yaml.safe_load(RULES.read_text("ascii"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.mark.parametrize("rule", alert_rules(), ids=lambda rule: str(rule["alert"]))
def test_an_alert_names_its_runbook_paragraph(rule: Rule) -> None:
    assert rule["labels"]["severity"] in SEVERITIES
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert ROOT / page == OPERATIONS
    paragraph = runbook()[anchor]
    assert [step for step in STEPS if f"- {step}" not in paragraph] == []


def test_the_runbook_has_no_other_paragraphs() -> None:
    named = {rule["annotations"]["runbook"].partition("#")[2] for rule in alert_rules()}
    assert named == set(runbook())


def runbook() -> dict[str, str]:
    """The paragraphs below "Alerts", by anchor."""
    _, _, text = OPERATIONS.read_text("ascii").partition("\n## Alerts\n")
    text, *_ = re.split(r"^## ", text, flags=re.M)
    _, *parts = re.split(r"^### (.+)\n", text, flags=re.M)
    return {title.lower(): body for title, body in zip(parts[::2], parts[1::2], strict=True)}


def test_panels_fit_the_screen() -> None:
    board = json.loads(OURS.read_text("ascii"))
    ids = Counter(panel["id"] for panel in board["panels"])
    assert max(ids.values()) == 1
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        columns = range(place["x"], place["x"] + place["w"])
        cells = {(x, y) for x in columns for y in range(place["y"], place["y"] + place["h"])}
        assert columns.stop <= 24, panel["title"]
        assert not cells & taken, panel["title"]
        taken |= cells


def test_panels_have_a_datasource_and_different_letters() -> None:
    board = json.loads(OURS.read_text("ascii"))
    for panel in board["panels"]:
        targets = panel.get("targets", [])
        letters = [target["refId"] for target in targets]
        assert len(set(letters)) == len(letters), panel["title"]
        used = [target["datasource"]["uid"] for target in targets]
        assert set(used) <= {"${datasource}"}, panel["title"]
    variables = {each["name"] for each in board["templating"]["list"]}
    assert set(re.findall(r"\$\{?([a-z]+)\}?", OURS.read_text("ascii"))) == variables


def test_every_row_of_the_page_has_a_state() -> None:
    rows = listed_queries()
    assert len(rows) > 90
    assert {row.state for row in rows} == STATES
    assert [row.panel for row in rows if row.state not in PLAIN and not row.note] == []


def test_what_to_ask_instead_is_there() -> None:
    for row in listed_queries():
        for name in re.findall(r"ask `(\w+)`", row.note):
            assert name in EXPORTED, row.panel


def test_what_works_is_in_the_table_of_metrics() -> None:
    for row in listed_queries():
        names = metric_names(row.query)
        is_there = bool(names) and names <= EXPORTED
        assert is_there == (row.state in (*HERE, "quiet")), row.panel


def test_alerts_and_panels_ask_for_metrics_of_the_table() -> None:
    queries = [rule["expr"] for rule in alert_rules()]
    queries += [panel.query for panel in panel_queries(OURS.name)]
    asked = {name for query in queries for name in metric_names(query)}
    assert asked - EXPORTED == set()


def test_names_are_those_of_genuine_mirrormaker_2() -> None:
    """Rows that work ask for names that genuine MirrorMaker 2 exports."""
    text = GENUINE.read_text("ascii")
    for row in listed_queries():
        if row.state in WITH_GENUINE:
            missing = [name for name in metric_names(row.query) if f"\n{name}" not in text]
            assert missing == [], row.panel


def test_our_dashboard_shows_what_alerts_ask_for() -> None:
    """Who is woken by an alert finds its figure on the dashboard."""
    shown = {name for each in panel_queries(OURS.name) for name in metric_names(each.query)}
    asked = {name for rule in alert_rules() for name in metric_names(rule["expr"])}
    per_worker = {
        "sparkmirror_worker_healthy",
        "sparkmirror_connector_state",
        "sparkmirror_flow_skipped_records_total",
    }
    assert asked - shown <= per_worker
