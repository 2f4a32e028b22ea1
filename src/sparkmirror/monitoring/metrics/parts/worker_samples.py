"""Samples of Connect's side of a worker: connectors, tasks, starts, the group.

Runs on: worker, during a scrape. Reads what the worker has read of its topics.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator

from sparkmirror import __version__
from sparkmirror.config.keys.plugins import CONNECT_VERSION, CONNECTOR_CLASS, connector_class
from sparkmirror.connect.entities import COMMIT
from sparkmirror.connect.group.member_figures import MemberFigures
from sparkmirror.connect.runtime.connector_tasks import task_units
from sparkmirror.connect.start_counts import StartCounts
from sparkmirror.connect.storage.backing_stores import StoredStatus
from sparkmirror.monitoring.metrics.jmx_names import jmx_name
from sparkmirror.monitoring.metrics.sample_sheet import SampleSheet
from sparkmirror.monitoring.metrics.table.kafka_rows import COORDINATOR, REBALANCE, STATES, WORKER
from sparkmirror.monitoring.monitored import Monitored, MonitoredGroup
from sparkmirror.types import ConnectorTaskId


class WorkerSamples:
    """Fills in the families of Connect's worker, connectors and rebalances, and ours."""

    def __init__(self, monitored: Monitored) -> None:
        self._monitored = monitored
        self._started = time.time()

    def __call__(self, sheet: SampleSheet) -> None:
        sheet.add("sparkmirror_build_info", 1.0, __version__)
        groups = self._monitored()
        for group in groups:
            _add_statuses(sheet, group)
            _add_group(sheet, group)
            self._add_info(sheet, group)
        starts = (
            ("connector", [group.cluster.loop.connector_starts for group in groups]),
            ("task", [group.cluster.task_starts for group in groups]),
        )
        for kind, counts in starts:
            _add_starts(sheet, kind, counts)

    def _add_info(self, sheet: SampleSheet, group: MonitoredGroup) -> None:
        client = jmx_name(group.cluster.worker_id)
        sheet.add("kafka_connect_version", 1.0, client, CONNECT_VERSION)
        sheet.add("kafka_connect_commit_id", 1.0, client, COMMIT)
        sheet.add("kafka_connect_start_time_seconds", self._started, client)


def own_tasks(group: MonitoredGroup) -> Iterator[tuple[str, int, StoredStatus]]:
    """(connector, task, status) of the tasks of this worker, as the status topic has them."""
    statuses, own = group.cluster.statuses, group.cluster.worker_id
    for name, tasks in group.cluster.configs.snapshot().tasks.items():
        for task, status in statuses.tasks(name).items():
            if status.worker_id == own and task < len(tasks):
                yield name, task, status


def _add_statuses(sheet: SampleSheet, group: MonitoredGroup) -> None:
    cluster, name_of = group.cluster, group.cluster.file.worker.group_id
    names = list(cluster.configs.snapshot().connectors)
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    for name, task, status in own_tasks(group):
        state = status.state.lower()
        counts.setdefault(name, Counter())[state] += 1
        for family in ("kafka_connect_connector_status", "kafka_connect_connector_task_status"):
            sheet.add(family, 1.0, jmx_name(name), state, str(task))
        sheet.add("sparkmirror_task_state", 1.0, name_of, name, str(task), state)
    for name, states in counts.items():
        prefix, label = f"{WORKER}connector_", jmx_name(name)
        sheet.add(f"{prefix}total_task_count", states.total(), label)
        for state in STATES:
            sheet.add(f"{prefix}{state}_task_count", states[state], label)
    sheet.add(f"{WORKER}task_count", sum(states.total() for states in counts.values()))
    stored = {name: cluster.statuses.connector(name) for name in names}
    for name, connector in stored.items():
        if connector is not None:
            state = connector.state.lower()
            sheet.add("sparkmirror_connector_state", 1.0, name_of, name, state)
    own = [name for name, each in stored.items() if each and each.worker_id == cluster.worker_id]
    sheet.add(f"{WORKER}connector_count", len(own))
    for name in own:
        _add_plugin(sheet, name, group)


def _add_plugin(sheet: SampleSheet, name: str, group: MonitoredGroup) -> None:
    props = group.cluster.configs.snapshot().connectors.get(name, {})
    full_name = connector_class(props.get(CONNECTOR_CLASS) or "") or ""
    facts = (("class", full_name), ("type", "source"), ("version", CONNECT_VERSION))
    for what, value in facts:
        sheet.add(f"kafka_connect_connector_connector_{what}", 1.0, jmx_name(name), value)


def _add_group(sheet: SampleSheet, group: MonitoredGroup) -> None:
    member, name = group.cluster.member, group.cluster.file.worker.group_id
    figures, view = member.figures, member.view
    leads = member.is_leader
    sheet.add("sparkmirror_worker_leader", leads, name)
    sheet.add("sparkmirror_worker_healthy", group.herder.health()[0] == "healthy", name)
    sheet.add("sparkmirror_worker_members", len(view.members), name)
    client = jmx_name(f"connect-{group.cluster.worker_id}")
    snapshot = group.cluster.configs.snapshot()
    sheet.add(f"{COORDINATOR}assigned_connectors", len(snapshot.connectors) if leads else 0, client)
    assigned = sum(
        len(unit)
        for connector, tasks in snapshot.tasks.items()
        for key, unit in task_units(dict(enumerate(tasks))).items()
        if ConnectorTaskId(connector, key) in view.tasks
    )
    sheet.add(f"{COORDINATOR}assigned_tasks", assigned, client)
    sheet.add(f"{REBALANCE}epoch", view.generation)
    _add_rebalances(sheet, figures, client)


def _add_rebalances(sheet: SampleSheet, figures: MemberFigures, client: str) -> None:
    recent = figures.recent.window()
    mean = recent.total / recent.count if recent.count else math.nan
    sheet.add(f"{REBALANCE}rebalancing", figures.is_rebalancing)
    sheet.add(f"{REBALANCE}completed_rebalances_total", figures.rebalances)
    sheet.add(f"{REBALANCE}rebalance_avg_time_ms", mean)
    most = recent.most if recent.count else math.nan
    sheet.add(f"{REBALANCE}rebalance_max_time_ms", most)
    sheet.add(f"{REBALANCE}time_since_last_rebalance_ms", figures.rebalance_age * 1000)
    sheet.add(f"{COORDINATOR}last_heartbeat_seconds_ago", figures.heartbeat_age, client)
    sheet.add(f"{COORDINATOR}last_rebalance_seconds_ago", figures.rebalance_age, client)
    sheet.add(f"{COORDINATOR}heartbeat_total", figures.heartbeats, client)
    sheet.add(f"{COORDINATOR}join_total", figures.joins, client)
    sheet.add(f"{COORDINATOR}sync_total", figures.syncs, client)
    sheet.add(f"{COORDINATOR}rebalance_total", figures.rebalances, client)
    sheet.add(f"{COORDINATOR}failed_rebalance_total", figures.failed_rebalances, client)
    sheet.add(f"{COORDINATOR}rebalance_latency_total", figures.rebalance_ms, client)


def _add_starts(sheet: SampleSheet, kind: str, counts: list[StartCounts]) -> None:
    prefix = f"{WORKER}{kind}_startup_"
    successes, failures = (
        sum(each.successes for each in counts),
        sum(each.failures for each in counts),
    )
    sheet.add(f"{prefix}attempts_total", sum(each.attempts for each in counts))
    sheet.add(f"{prefix}success_total", successes)
    sheet.add(f"{prefix}failure_total", failures)
    ended = successes + failures
    if ended:
        sheet.add(f"{prefix}success_percentage", successes / ended)
        sheet.add(f"{prefix}failure_percentage", failures / ended)
