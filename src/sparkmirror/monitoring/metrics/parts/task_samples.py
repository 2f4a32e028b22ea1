"""Samples of the tasks that run here: records, clients, checkpoints, groups, heartbeats.

Runs on: worker, during a scrape.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from sparkmirror.config.worker.metrics_keys import PerPartition
from sparkmirror.connect.checkpoint.group_offset_sync import SyncReport
from sparkmirror.connect.checkpoint.mirror_checkpoint_task import MirrorCheckpointTask
from sparkmirror.connect.connector import Task
from sparkmirror.connect.heartbeat.mirror_heartbeat_task import MirrorHeartbeatTask
from sparkmirror.mirror.group_offsets import NotWritten
from sparkmirror.monitoring.metrics.detail import MOST_SERIES, merged
from sparkmirror.monitoring.metrics.jmx_names import (
    consumer_id,
    jmx_name,
    object_name,
    producer_id,
)
from sparkmirror.monitoring.metrics.parts.flow_samples import add_window
from sparkmirror.monitoring.metrics.sample_sheet import SampleSheet
from sparkmirror.monitoring.metrics.table.kafka_rows import CHECKPOINT
from sparkmirror.monitoring.monitored import Monitored
from sparkmirror.spark.figures import Window
from sparkmirror.spark.task_runner import TaskRunner, TaskState

SOURCE_TASK = "kafka_connect_source_task_source_record_"
COMMIT = "kafka_connect_connector_task_offset_commit_"
WRITTEN, ERROR = "written", "error"
# Nothing is wrong with these groups: of too many they are left out first.
CALM = (WRITTEN, NotWritten.UNCHANGED.name.lower(), NotWritten.NO_CHECKPOINT.name.lower())


class TaskSamples:
    """Fills in the families of tasks, checkpoints, groups and heartbeats."""

    def __init__(self, monitored: Monitored, per_partition: PerPartition) -> None:
        self._monitored = monitored
        self._per_partition = per_partition

    def __call__(self, sheet: SampleSheet) -> None:
        connected = 0
        for group in self._monitored():
            name = group.cluster.file.worker.group_id
            for connector, tasks in group.cluster.loop.tasks().items():
                for task in tasks:
                    if task.runner is not None:
                        _add_copy(sheet, name, connector, min(task.ids), task.runner)
                        connected += task.runner.state is TaskState.RUNNING
                    self._add_work(sheet, connector, task)
        sheet.add("sparkmirror_spark_tasks", connected)

    def _add_work(self, sheet: SampleSheet, connector: str, task: Task) -> None:
        work = task.work
        labels = jmx_name(connector), str(min(task.ids))
        if isinstance(work, MirrorHeartbeatTask):
            ends = work.flow.source, work.flow.target
            if work.is_enabled:
                sheet.add("sparkmirror_heartbeat_age_seconds", work.age_seconds, *ends, connector)
        elif isinstance(work, MirrorCheckpointTask):
            ends = work.flow.source, work.flow.target
            for row, window in _checkpoint_rows(work, self._per_partition):
                group, partition, topic = row
                at = group, partition, *ends, topic
                add_window(sheet, f"{CHECKPOINT}checkpoint_latency_ms", window, *at)
            if work.last_sync is not None:
                _add_groups(sheet, work.last_sync, (*ends, connector))
        else:
            return
        sheet.add(f"{SOURCE_TASK}poll_total", work.made, *labels)
        sheet.add(f"{SOURCE_TASK}write_total", work.records, *labels)


def _add_copy(
    sheet: SampleSheet, group: str, connector: str, task: int, runner: TaskRunner
) -> None:
    numbers = runner.numbers
    clients: Mapping[str, Any] = numbers.get("clients") or {}
    labels = jmx_name(connector), str(task)
    sheet.add("sparkmirror_task_restarts_total", runner.restarts, group, connector, str(task))
    sheet.add(f"{SOURCE_TASK}write_total", runner.records, *labels)
    sheet.add(f"{SOURCE_TASK}poll_total", numbers.get("polled_records"), *labels)
    skipped = numbers.get("skipped_records")
    for what in ("records_skipped", "record_failures"):
        sheet.add(f"kafka_connect_task_error_total_{what}", skipped, *labels)
    keys = f"connector={labels[0]}, task={task}"
    name = object_name("kafka.connect", "source-task-metrics", keys, "source-record-active-count")
    sheet.add(f"{SOURCE_TASK}active_count", clients.get("pending"), name, *labels)
    if "room" in clients:
        room = max(0, clients["room"])
        sheet.add("kafka_producer_buffer_available_bytes", room, producer_id(connector, task))
    if "commit_ms" in clients:
        last, least, most, total, count = clients["commit_ms"]
        window = Window(last, least, most, total, count)
        sheet.add(f"{COMMIT}avg_time_ms", _mean(window), *labels)
        sheet.add(f"{COMMIT}max_time_ms", window.most if window.count else float("nan"), *labels)
    flow = runner.task.partition("|")[0]
    sides = (
        ("consumer", "source", consumer_id(flow, connector, task)),
        ("producer", "target", producer_id(connector, task)),
    )
    for role, side, client in sides:
        if side in clients:
            received, sent, connections = clients[side]
            sheet.add(f"kafka_{role}_incoming_byte_total", received, client)
            sheet.add(f"kafka_{role}_outgoing_byte_total", sent, client)
            sheet.add(f"kafka_{role}_connection_count", connections, client)


def _mean(window: Window) -> float:
    return window.total / window.count if window.count else float("nan")


CheckpointPlace = tuple[str | None, str | None, str | None]


def _checkpoint_rows(
    work: MirrorCheckpointTask, wanted: PerPartition
) -> Iterator[tuple[CheckpointPlace, Window]]:
    """(group, partition, topic), of too many without partition and topic, then without group."""
    windows = work.latencies.windows()
    if wanted is PerPartition.ALWAYS or (
        wanted is PerPartition.AUTO and len(windows) <= MOST_SERIES
    ):
        for (group, tp), window in windows.items():
            yield (group, str(tp.partition), tp.topic), window
        return
    by_group: dict[str | None, Window] = {}
    has_many = len({group for group, _ in windows}) > MOST_SERIES
    for (group, _), window in windows.items():
        key = None if has_many else group
        by_group[key] = merged(by_group.get(key, Window()), window)
    for key, window in by_group.items():
        yield (key, None, None), window


def sync_states(report: SyncReport) -> dict[str, str]:
    """By group, what became of its offsets."""
    states = dict.fromkeys(report.written, WRITTEN)
    states |= {group: why.name.lower() for group, why in report.reasons.items()}
    return states | {
        group: ERROR for group in report.errors if states.get(group, WRITTEN) == WRITTEN
    }


def _add_groups(sheet: SampleSheet, report: SyncReport, labels: tuple[str, ...]) -> None:
    states = sync_states(report)
    counts = Counter(states.values())
    for state in (WRITTEN, *(why.name.lower() for why in NotWritten), ERROR):
        sheet.add("sparkmirror_groups", counts[state], *labels, state)
    shown = sorted(states, key=lambda group: (states[group] in CALM, group))[:MOST_SERIES]
    for group in shown:
        sheet.add("sparkmirror_group_sync", 1.0, *labels, group, states[group])
