"""What the worker knows of a task's partitions: the newest rows, and totals over its attempts.

Runs on: worker; the link's thread writes, any thread reads.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sparkmirror.spark.figures import (
    LATENCY_BOUNDS_MS,
    NOTHING,
    PartitionFigures,
    TaskFigures,
    Window,
    decode_row,
)
from sparkmirror.spark.link.frames import LinkMessage
from sparkmirror.types import TopicPartition

# As Kafka's metrics: what is shown is of the last one to two of these.
SAMPLE_SECONDS = 30.0


class SampledWindow:
    """The last 30 to 60 seconds; the last value stays longer, as in Kafka's metrics."""

    __slots__ = ("_before", "_begun", "_last", "_now")

    def __init__(self) -> None:
        self._before = self._now = self._last = NOTHING
        self._begun = 0.0

    def add(self, window: Window, now: float) -> None:
        """Take in what was measured until now."""
        if not window.count:
            return
        self._turn(now)
        self._now = self._now.with_later(window)
        self._last = Window(window.last)

    def read(self, now: float) -> Window:
        """What was measured in that time."""
        self._turn(now)
        found = self._before.with_later(self._now)
        return found if found.count else self._last

    def _turn(self, now: float) -> None:
        passed = now - self._begun
        if passed < SAMPLE_SECONDS:
            return
        self._before = self._now if passed < 2 * SAMPLE_SECONDS else NOTHING
        self._now, self._begun = NOTHING, now


class _Row:
    __slots__ = ("age", "before", "figures", "latency")

    def __init__(self, before: PartitionFigures | None) -> None:
        # The totals of earlier attempts, and of earlier times when the task had the partition.
        self.before = before
        self.figures: PartitionFigures | None = None
        self.age = SampledWindow()
        self.latency = SampledWindow()

    def read(self, now: float) -> PartitionFigures | None:
        figures, before = self.figures, self.before
        if figures is None:
            return None
        if before is not None:
            figures = _added(figures, before)
        age, latency = self.age.read(now), self.latency.read(now)
        if age is not NOTHING or latency is not NOTHING:
            figures = replace(figures, age=age, latency=latency)
        return figures


class ReportedFigures:
    """Of one task, as long as its runner lives."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._rows: dict[TopicPartition, _Row] = {}
        # Of partitions that it no longer has.
        self._left: dict[TopicPartition, PartitionFigures] = {}
        self._at = 0.0
        self._is_complete = False
        self._latency = self._latency_before = [0] * (len(LATENCY_BOUNDS_MS) + 1)
        self._latency_ms = self._latency_ms_before = 0.0
        self._slow: Counter[str] = Counter()
        self._slow_before: Counter[str] = Counter()

    def heard(self) -> None:
        """The task has reported: what it says nothing of is as it was."""
        self._at = self._wall_clock()

    def begin(self) -> None:
        """Another attempt begins: its counts start at 0."""
        with self._lock:
            for tp, row in self._rows.items():
                self._leave(tp, row)
                row.before, row.figures = self._left.pop(tp), _standing(row.figures)
            self._is_complete = False
            self._latency_before = self._latency
            self._latency_ms_before = self._latency_ms
            self._slow_before = self._slow

    def take(self, message: LinkMessage) -> None:
        """What the task has sent."""
        now = self._clock()
        with self._lock:
            for row in message.get("gone", ()):
                self._end(decode_row(row))
            rows = [decode_row(row) for row in message.get("rows", ())]
            if message.get("is_first"):
                for tp in self._rows.keys() - {row.source for row in rows}:
                    self._leave(tp, self._rows.pop(tp))
                self._is_complete = True
            for figures in rows:
                self._note(figures, now)
            if "latency" in message:
                self._add_up(message)
        self.heard()

    def read(self, task: str) -> TaskFigures:
        """All of it."""
        now = self._clock()
        with self._lock:
            found = [row.read(now) for _, row in sorted(self._rows.items())]
            return TaskFigures(
                task,
                tuple(row for row in found if row is not None),
                tuple(self._latency),
                self._latency_ms,
                dict(self._slow),
                self._at,
                self._is_complete,
            )

    # -- inside, with the lock ---------------------------------------------------------------------

    def _note(self, figures: PartitionFigures, now: float) -> None:
        row = self._rows.get(figures.source)
        if row is None:
            row = self._rows[figures.source] = _Row(self._left.pop(figures.source, None))
        row.age.add(figures.age, now)
        row.latency.add(figures.latency, now)
        if figures.age.count or figures.latency.count:
            figures = replace(figures, age=NOTHING, latency=NOTHING)
        row.figures = figures

    def _end(self, last: PartitionFigures) -> None:
        row = self._rows.pop(last.source, None) or _Row(self._left.pop(last.source, None))
        row.figures = last
        self._leave(last.source, row)

    def _leave(self, tp: TopicPartition, row: _Row) -> None:
        """Keep the totals: the task may get the partition back."""
        if row.figures is not None:
            total = row.figures if row.before is None else _added(row.figures, row.before)
            self._left[tp] = total
        elif row.before is not None:
            self._left[tp] = row.before

    def _add_up(self, message: LinkMessage) -> None:
        pairs = zip(self._latency_before, message["latency"], strict=True)
        self._latency = [before + int(count) for before, count in pairs]
        self._latency_ms = self._latency_ms_before + float(message["latency_sum_ms"])
        slow: dict[str, Any] = message["slow"]
        self._slow = self._slow_before + Counter({each: int(slow[each]) for each in slow})


def _added(figures: PartitionFigures, before: PartitionFigures) -> PartitionFigures:
    return replace(
        figures,
        records=figures.records + before.records,
        bytes=figures.bytes + before.bytes,
        lost_records=figures.lost_records + before.lost_records,
        skipped_records=figures.skipped_records + before.skipped_records,
    )


def _standing(figures: PartitionFigures | None) -> PartitionFigures | None:
    """Until the new attempt reports: where the copy stands, without counts."""
    if figures is None:
        return None
    return replace(figures, records=0, bytes=0, lost_records=0, skipped_records=0)
