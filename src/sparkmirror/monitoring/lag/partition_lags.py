"""Makes the lag of single partitions from what tasks report and what was found on the source.

Runs on: worker; for any thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from sparkmirror.monitoring.lag.lag_rules import (
    Standing,
    judge,
    seconds_behind,
    time_until_loss,
)
from sparkmirror.monitoring.lag.partition_lag import PartitionLag, Retention
from sparkmirror.monitoring.lag.source_flows import NO_TASK, FlowTask, SourceFlow
from sparkmirror.monitoring.lag.source_probe import Probe, SourceProbe
from sparkmirror.monitoring.lag.write_rates import WriteRates
from sparkmirror.spark.figures import PartitionFigures, TaskFigures
from sparkmirror.spark.task_runner import TaskState
from sparkmirror.types import TopicPartition

# A task reports every second: what it says is of then, unless it has been silent for longer.
REPORT_SECONDS = 3.0
NO_RETENTION = Retention()


class PartitionLags:
    """`of` one flow at a time."""

    def __init__(
        self, probe: SourceProbe, writes: WriteRates, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self._probe = probe
        self._writes = writes
        self._wall_clock = wall_clock

    def of(self, flow: SourceFlow) -> Iterator[PartitionLag]:
        """All partitions of the tasks that this process has to report about."""
        seen: set[TopicPartition] = set()
        for task in flow.tasks:
            figures = None if task.runner is None else task.runner.figures()
            rows = {row.source: row for row in figures.partitions} if figures else {}
            is_running = task.runner is not None and task.runner.state is TaskState.RUNNING
            own = rows if is_running and figures and figures.is_complete else task.partitions
            for tp in own:
                if tp not in seen:
                    seen.add(tp)
                    row = rows.get(tp)
                    is_live = is_running and row is not None
                    yield self._one(flow, task, tp, row, figures if is_live else None)
        if flow.is_stopped:
            none = FlowTask(NO_TASK, ())
            for tp in self._probe.partitions(flow.key):
                if tp not in seen:
                    yield self._one(flow, none, tp, None, None)

    def _one(
        self,
        flow: SourceFlow,
        task: FlowTask,
        tp: TopicPartition,
        row: PartitionFigures | None,
        live: TaskFigures | None,
    ) -> PartitionLag:
        """`live`: the report that the row is of, if its task runs."""
        row = row or PartitionFigures(tp, flow.target_of(tp))
        now = self._wall_clock()
        probe = self._probe.seen(flow.key, tp)
        position, end, oldest = row.position, row.end_offset, row.oldest_ms
        at = now
        if live is not None and now - live.at <= REPORT_SECONDS:
            at = live.at
        if live is None or (end is None and row.problem):
            position, end, oldest = _completed(row, probe, is_live=live is not None)
            at = now if probe is None or oldest is not None else probe.at_ms / 1000
        behind = None if position is None or end is None else max(0, end - position)
        size = _bytes_of(row, behind)
        seconds = seconds_behind(oldest, behind, int(at * 1000))
        retention = self._probe.retention(flow.key, tp.topic)
        speed = self._bytes_per_second(flow, retention, row, end)
        loss = time_until_loss(retention, seconds, size, speed)
        problem = row.problem if live is not None else task.problem
        if not problem and live is None and probe is not None:
            problem = probe.problem
        state = judge(
            Standing(
                task.is_failed,
                flow.is_paused,
                live is not None or not task.problem,
                problem,
                behind,
                seconds,
                row.latency.count,
            )
        )
        limits = retention or NO_RETENTION
        return PartitionLag(
            flow=flow.flow,
            connector=flow.name,
            task=task.number,
            source=tp,
            target=row.target,
            state=state,
            at_ms=int(at * 1000),
            is_running=live is not None,
            position=position,
            end_offset=end,
            records_behind=behind,
            bytes_behind=size,
            seconds_behind=seconds,
            oldest_ms=oldest if behind != 0 else None,
            problem=problem,
            records=row.records,
            bytes=row.bytes,
            lost_records=row.lost_records,
            skipped_records=row.skipped_records,
            age=row.age,
            latency=row.latency,
            retention_ms=limits.ms,
            retention_bytes=limits.bytes,
            cleanup_policy=limits.cleanup_policy,
            seconds_until_loss=loss.seconds,
            no_loss=loss.why_not,
        )

    def _bytes_per_second(
        self, flow: SourceFlow, retention: Retention | None, row: PartitionFigures, end: int | None
    ) -> float | None:
        """How fast the source partition grows, where that limits anything."""
        if retention is None or retention.bytes is None or not row.records:
            return None
        written = self._writes.per_second((flow.key, row.source), end)
        return None if written is None else written * row.bytes / row.records


def _completed(
    row: PartitionFigures, probe: Probe | None, *, is_live: bool
) -> tuple[int | None, int | None, int | None]:
    """Position, end, and the oldest timestamp, with what was found on the source.

    A task that runs knows best where it stands and what it holds; one that has ended may have
    stored its position since its last report.
    """
    if probe is None:
        return row.position, row.end_offset if is_live else None, row.oldest_ms
    if is_live:
        oldest = probe.oldest_ms if row.oldest_ms is None else row.oldest_ms
        return row.position, probe.end, oldest
    return probe.first_missing, probe.end, probe.oldest_ms


def _bytes_of(row: PartitionFigures, behind: int | None) -> int | None:
    """An estimate, from the mean size of the records that were copied."""
    if behind is None or not row.records:
        return 0 if behind == 0 else None
    return behind * row.bytes // row.records
