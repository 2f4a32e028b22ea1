"""What each alert fires on, as series of metrics; written as a file for `promtool test rules`.

Every scenario begins with ten minutes in which all is well. Then some series change for an hour,
and then they are well again. `fires` is the alert that must fire so many minutes after the change,
and not earlier; no other alert may fire at any of the times that are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.files import DEPLOY

RULES = DEPLOY / "monitoring" / "alerts.yml"

WELL_MINUTES = 10
WRONG_MINUTES = 60
AFTER_MINUTES = 120

DAY = 86400.0
FLOW = 'source="a",target="b",connector="a-source"'
TOPIC = f'{FLOW},topic="orders",partition="0",job="sparkmirror",instance="w:9404"'
WORKER = 'job="sparkmirror",instance="w:9404"'
SOURCE_TASK = f'group="g",connector="a-source",task="0",{WORKER}'

Value = float | None

LAG = f"sparkmirror_flow_lag_seconds{{{FLOW},{WORKER}}}"
UNTIL_LOSS = f"sparkmirror_flow_seconds_until_loss{{{FLOW},{WORKER}}}"
TOPIC_LAG = f"sparkmirror_lag_seconds{{{TOPIC}}}"
TOPIC_UNTIL_LOSS = f"sparkmirror_seconds_until_loss{{{TOPIC}}}"
LOST = f"sparkmirror_flow_lost_records_total{{{FLOW},{WORKER}}}"
SKIPPED = f"sparkmirror_flow_skipped_records_total{{{FLOW},{WORKER}}}"
HEARTBEAT = f"sparkmirror_heartbeat_age_seconds{{{FLOW},{WORKER}}}"
RUNNING = f'sparkmirror_task_state{{{SOURCE_TASK},state="running"}}'
FAILED = f'sparkmirror_task_state{{{SOURCE_TASK},state="failed"}}'
RESTARTS = f"sparkmirror_task_restarts_total{{{SOURCE_TASK}}}"
UP = f"up{{{WORKER}}}"
HEALTHY = f'sparkmirror_worker_healthy{{group="g",{WORKER}}}'
LEADER = f'sparkmirror_worker_leader{{group="g",{WORKER}}}'
PART = f'sparkmirror_metrics_part_up{{part="lag",{WORKER}}}'
UNKNOWN = f"sparkmirror_flow_unknown_partitions{{{FLOW},{WORKER}}}"
KEY_STORE = f'sparkmirror_certificate_expiry_timestamp_seconds{{use="keystore",name="a",{WORKER}}}'
TRUST_STORE = (
    f'sparkmirror_certificate_expiry_timestamp_seconds{{use="truststore",name="a",{WORKER}}}'
)


def partitions(state: str) -> str:
    """How many of the flow's are in this state."""
    return f'sparkmirror_flow_partitions{{{FLOW},state="{state}",{WORKER}}}'


def group(state: str) -> str:
    """A group with this result of its last sync."""
    return f'sparkmirror_group_sync{{{FLOW},group="shop",state="{state}",{WORKER}}}'


def connector(state: str) -> str:
    """The connector in this state."""
    return f'sparkmirror_connector_state{{group="g",connector="a-source",state="{state}",{WORKER}}}'


# A worker that copies one topic: a second behind, its topic kept for a week.
WELL: dict[str, Value] = {
    LAG: 1,
    UNTIL_LOSS: 7 * DAY,
    TOPIC_LAG: 1,
    TOPIC_UNTIL_LOSS: 7 * DAY,
    LOST: 0,
    SKIPPED: 0,
    HEARTBEAT: 1,
    RUNNING: 1,
    FAILED: None,
    RESTARTS: 0,
    UP: 1,
    HEALTHY: 1,
    LEADER: 1,
    PART: 1,
    UNKNOWN: 0,
    KEY_STORE: 365 * DAY,
    TRUST_STORE: 365 * DAY,
    partitions("live"): 1,
    partitions("stuck"): 0,
    partitions("failed"): 0,
    group("written"): 1,
    group("unchanged"): None,
    group("active"): None,
    group("error"): None,
    group("no_checkpoint"): None,
    connector("running"): 1,
    connector("failed"): None,
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """`changes` last for `minutes`, except those of counters, which stay.

    `fires` is an alert's name, or "" where none may fire; `after` and not sooner, in minutes.
    `starts` replaces what is well before.
    """

    name: str
    changes: dict[str, Value]
    fires: str = ""
    after: int = 0
    minutes: int = WRONG_MINUTES
    starts: dict[str, Value] = field(default_factory=dict)


CAUSES = (
    Scenario(
        "a topic is hours behind, and its retention ends within a day",
        {TOPIC_LAG: 301, LAG: 299, TOPIC_UNTIL_LOSS: 5 * 3600, UNTIL_LOSS: 5 * 3600},
        "SparkmirrorLossBegins",
        1,
    ),
    Scenario(
        "the same where /metrics has no topics",
        {UNTIL_LOSS: 5 * 3600, LAG: 301},
        "SparkmirrorLossBegins",
        1,
        minutes=9,  # after ten, the lag is reported too
        starts={TOPIC_LAG: None, TOPIC_UNTIL_LOSS: None},
    ),
    Scenario("records were deleted", {LOST: 7}, "SparkmirrorRecordsLost"),
    Scenario("records were rejected", {SKIPPED: 1}, "SparkmirrorRecordsSkipped"),
    Scenario("a backlog grows", {LAG: 301, TOPIC_LAG: 301}, "SparkmirrorLag", 10),
    Scenario(
        "a partition waits", {partitions("stuck"): 1, partitions("live"): 0},
        "SparkmirrorPartitionStuck", 5,
    ),
    Scenario(
        "a partition is damaged", {partitions("failed"): 1, partitions("live"): 0},
        "SparkmirrorPartitionStuck", 5,
    ),
    Scenario("heartbeats are rejected", {HEARTBEAT: 61}, "SparkmirrorNoHeartbeat", 1),
    Scenario("the heartbeat task is gone", {HEARTBEAT: None}, "SparkmirrorNoHeartbeat", 1),
    Scenario("no worker leads", {LEADER: 0}, "SparkmirrorNoLeader", 2),
    Scenario(
        "a group's sync fails", {group("error"): 1, group("written"): None},
        "SparkmirrorGroupNotSynced", 15,
    ),
    Scenario(
        "a group gets no checkpoint", {group("no_checkpoint"): 1, group("written"): None},
        "SparkmirrorGroupNotSynced", 15,
    ),
    Scenario("a task fails", {FAILED: 1, RUNNING: None}, "SparkmirrorTaskFailed", 5),
    Scenario(
        "a connector fails", {connector("failed"): 1, connector("running"): None},
        "SparkmirrorConnectorFailed", 2,
    ),
    Scenario("a task restarts five times", {RESTARTS: 6}, "SparkmirrorTaskRestarts"),
    Scenario("a worker is gone", {UP: 0}, "SparkmirrorWorkerDown", 2),
    Scenario("a worker is not healthy", {HEALTHY: 0}, "SparkmirrorWorkerDown", 2),
    Scenario("the lag cannot be read", {PART: 0}, "SparkmirrorMetricsIncomplete", 10),
    Scenario("the lag of a partition is not known", {UNKNOWN: 1}, "SparkmirrorLagUnknown", 10),
    Scenario(
        "a certificate expires in two weeks", {KEY_STORE: 14 * DAY}, "SparkmirrorCertificateExpires"
    ),
    Scenario(
        "a CA expires in two weeks", {TRUST_STORE: 14 * DAY}, "SparkmirrorCertificateExpires"
    ),
)  # fmt: skip

# Everyday events that must wake no operator.
HARMLESS = (
    Scenario("nothing happens", {}),
    Scenario(
        "a live topic that is kept for an hour",
        {TOPIC_UNTIL_LOSS: 3599, UNTIL_LOSS: 3599, TOPIC_LAG: 1, LAG: 1},
    ),
    Scenario(
        "one topic is far behind, another one is kept for an hour",
        {TOPIC_UNTIL_LOSS: 7 * DAY, UNTIL_LOSS: 3599, TOPIC_LAG: 400, LAG: 400},
        minutes=9,
    ),
    Scenario("a backlog is copied within nine minutes", {LAG: 4000, TOPIC_LAG: 4000}, minutes=9),
    Scenario("nothing can be lost", {UNTIL_LOSS: None, TOPIC_UNTIL_LOSS: None}),
    Scenario("a leader moves", {partitions("stuck"): 1, partitions("live"): 0}, minutes=3),
    Scenario("a broker is slow", {HEARTBEAT: 45}),
    Scenario("another worker leads after a minute", {LEADER: 0}, minutes=1),
    Scenario("a task fails once", {FAILED: 1, RUNNING: None, RESTARTS: 1}, minutes=2),
    Scenario("a worker restarts", {UP: 0, RUNNING: None, HEALTHY: None}, minutes=1),
    Scenario("a worker restarts, with counters from 0", {LOST: 0}, starts={LOST: 12}),
    Scenario("consumers moved to the target", {group("active"): 1, group("written"): None}),
    Scenario("groups do nothing", {group("unchanged"): 1, group("written"): None}),
    Scenario("a certificate expires in weeks", {TRUST_STORE: 20 * DAY}),
)


def write_tests(path: Path, rules: Path = RULES) -> None:
    """The scenarios in promtool's format."""
    tests = [_test(scenario) for scenario in (*CAUSES, *HARMLESS)]
    document = {"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": tests}
    path.write_text(yaml.safe_dump(document, sort_keys=False, width=120), "ascii")


def _test(scenario: Scenario) -> dict[str, Any]:
    well = WELL | scenario.starts
    series = [
        {"series": name, "values": _values(name, value, scenario)} for name, value in well.items()
    ]
    begin, end = WELL_MINUTES, WELL_MINUTES + scenario.minutes
    silent = {begin - 1, end + AFTER_MINUTES - 1}
    loud: set[int] = set()
    if scenario.fires:
        # An alert with `for` fires at the first evaluation so long after the one that sees it.
        silent.add(begin + scenario.after - 1)
        loud = {begin + scenario.after, begin + min(scenario.after + 5, scenario.minutes - 1)}
    else:
        silent |= set(range(begin, end))
    checks = [_check(at, "") for at in sorted(silent)]
    checks += [_check(at, scenario.fires) for at in sorted(loud)]
    return {
        "name": scenario.name,
        "interval": "1m",
        "input_series": series,
        "promql_expr_test": checks,
    }


def _values(name: str, well: Value, scenario: Scenario) -> str:
    if name not in scenario.changes:
        return _repeated(well, WELL_MINUTES + scenario.minutes + AFTER_MINUTES)
    wrong = scenario.changes[name]
    stays = "_total{" in name
    parts = (
        _repeated(well, WELL_MINUTES),
        _repeated(wrong, scenario.minutes),
        _repeated(wrong if stays else well, AFTER_MINUTES),
    )
    return " ".join(parts)


def _repeated(value: Value, times: int) -> str:
    """`promtool` writes n + 1 samples for xn."""
    return f"_x{times}" if value is None else f"{value:.0f}x{times - 1}"


def _check(minute: int, alert: str) -> dict[str, Any]:
    """Exactly this alert fires; with "" none."""
    fires = [{"labels": f'{{alertname="{alert}"}}', "value": 1}] if alert else []
    return {
        "expr": 'group by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": f"{minute}m",
        "exp_samples": fires,
    }
