"""deploy/monitoring through promtool: files, alerts on their causes, and what operators read."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.deploy.files import DEPLOY
from tests.monitoring_files.alert_scenarios import CAUSES, HARMLESS, RULES, write_tests
from tests.monitoring_files.dashboard_queries import GRAFANA, listed_queries, panel_queries
from tests.monitoring_files.prometheus_server import promtool

TEXTS = Path(__file__).with_name("alert_texts.yml")


def test_prometheus_accepts_its_settings_and_the_rules() -> None:
    checked = promtool("check", "config", DEPLOY / "monitoring" / "prometheus.yml")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    # A duplicate would be reported, and accepted.
    assert promtool("check", "rules", "--lint-fatal", RULES).returncode == 0


def test_each_alert_fires_on_its_cause_and_no_other_does(tmp_path: Path) -> None:
    path = tmp_path / "scenarios.yml"
    write_tests(path)
    tested = promtool("test", "rules", path)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_an_alert_that_never_fires_fails_the_test(tmp_path: Path) -> None:
    words = "(sparkmirror_flow_lag_seconds) > 300"
    rules = RULES.read_text("ascii")
    assert words in rules
    (tmp_path / "alerts.yml").write_text(rules.replace(words, "(no_such_metric) > 300"), "ascii")
    path = tmp_path / "scenarios.yml"
    write_tests(path, rules=tmp_path / "alerts.yml")
    assert 'exp: {alertname="SparkmirrorLag"}' in promtool("test", "rules", path).stderr


def test_texts_are_as_written() -> None:
    tested = promtool("test", "rules", TEXTS)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_every_query_is_well_formed(tmp_path: Path) -> None:
    """promtool 2.42 parses queries only as rules."""
    dashboards = [path.name for path in GRAFANA.glob("*.json")]
    queries = [*listed_queries(), *(each for name in dashboards for each in panel_queries(name))]
    rules = [{"record": f"query:{at}", "expr": each.query} for at, each in enumerate(queries)]
    path = tmp_path / "queries.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}), "ascii")
    checked = promtool("check", "rules", path)
    assert checked.returncode == 0, checked.stderr
    assert f"SUCCESS: {len(queries)} rules found" in checked.stdout


def test_every_alert_has_a_cause() -> None:
    groups = yaml.safe_load(RULES.read_text("ascii"))["groups"]
    alerts = {rule["alert"] for group in groups for rule in group["rules"]}
    assert {scenario.fires for scenario in CAUSES} == alerts
    assert {scenario.fires for scenario in HARMLESS} == {""}
