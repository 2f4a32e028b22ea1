"""What a task tells the worker about each of its partitions, once a second: what has changed.

Runs on: executor, on the copy loop's thread. A partition of which nothing was fetched or stored
since its last row costs a glance at three numbers, and nothing is sent of it. So many rows go into
one report: where more have changed, the others come with the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import time
from typing import Any

from sparkmirror.batches.outgoing import OutgoingBatch, Reason
from sparkmirror.spark.copy.assigned_partitions import AssignedPartitions
from sparkmirror.spark.copy.copy_counts import FUTURE_MS, LatencyHistogram
from sparkmirror.spark.copy.copy_partition import CopyPartition
from sparkmirror.spark.copy.partition_problems import PartitionProblems
from sparkmirror.spark.figures import FIGURES, PartitionFigures, encode_row
from sparkmirror.spark.link.frames import LinkMessage
from sparkmirror.types import TopicPartition
from sparkmirror.wire.produce.record_accumulator import RecordAccumulator

# A row takes 5 to 6 us to make and to encode: so many are about 1 % of a second.
MOST_ROWS = 2000


class FiguresReport:
    """Of one task. `histogram` is that of its latencies, `slow` its counts by reason."""

    def __init__(
        self,
        partitions: AssignedPartitions,
        problems: PartitionProblems,
        accumulator: RecordAccumulator,
        histogram: LatencyHistogram,
        slow: Mapping[Reason, int],
        *,
        wall_clock: Callable[[], float] = time,
    ) -> None:
        self._partitions = partitions
        self._problems = problems
        self._accumulator = accumulator
        self._histogram = histogram
        self._slow = slow
        self._wall_clock = wall_clock
        # What the worker knows, without what is measured; and those that may change unseen.
        self._known: dict[TopicPartition, tuple[Any, ...]] = {}
        self._restless: set[TopicPartition] = set()
        # Which come first, because there was no room for them in the last report.
        self._next = 0
        self._is_first = True

    def take(self) -> LinkMessage:
        """The message. The first of a task is about all of its partitions."""
        gone = [self._last_row(each) for each in self._partitions.left]
        self._partitions.left.clear()
        most = len(self._partitions.by_source) if self._is_first else MOST_ROWS
        rows = self._rows(most)
        message: LinkMessage = {"type": FIGURES}
        if self._is_first:
            message["is_first"] = True
        if gone:
            message["gone"] = gone
        if rows:
            message["rows"] = rows
        if rows or gone:
            message["latency"] = list(self._histogram.buckets)
            message["latency_sum_ms"] = round(self._histogram.sum_ms)
            message["slow"] = {reason.value: count for reason, count in self._slow.items()}
        self._is_first = False
        return message

    def _rows(self, most: int) -> list[Any]:
        rows: list[Any] = []
        looks = 0
        known, restless, problems = self._known, self._restless, self._problems
        everyone = list(self._partitions.by_source.values())
        first = self._next if self._next < len(everyone) else 0
        for at in range(first, first + len(everyone)):
            partition = everyone[at % len(everyone)]
            tp, fetched = partition.source, partition.fetched
            seen = known.get(tp)
            if (
                seen is not None
                and fetched is not None
                and seen[0] == fetched.next_offset
                and seen[1] == fetched.end_offset
                and not partition.pending_records
                and tp not in restless
                and (not problems or tp not in problems)
            ):
                continue
            if len(rows) == most or looks == 2 * most:
                self._next = at % len(everyone)
                break
            looks += 1
            row = self._look(partition)
            if row is not None:
                rows.append(row)
        return rows

    def _look(self, partition: CopyPartition) -> list[Any] | None:
        """Its row; None if the worker knows all of it."""
        tp, counts = partition.source, partition.counts
        problem = self._problems.lasting(tp)
        if partition.pending_records or tp in self._problems:
            self._restless.add(tp)
        else:
            self._restless.discard(tp)
        fetched = partition.fetched
        # While nothing is fetched the log grows unseen.
        end_offset = fetched.end_offset if fetched is not None and not problem else None
        position, oldest_ms = self._oldest(partition)
        if oldest_ms is None and None not in (position, end_offset) and position != end_offset:
            # It was not fetched yet: no older than what was.
            oldest_ms = self._clear(counts.newest_ms)
        self._histogram.count_rest(counts)
        figures = PartitionFigures(
            tp,
            partition.target,
            position,
            end_offset,
            oldest_ms,
            counts.records,
            counts.bytes,
            counts.age.take(),
            counts.latency.take(),
            counts.lost_records,
            counts.skipped_records,
            problem,
        )
        known = position, end_offset, oldest_ms, counts.records, counts.skipped_records, problem
        if known == self._known.get(tp) and not (figures.age.count or figures.latency.count):
            return None
        self._known[tp] = known
        return encode_row(figures)

    def _oldest(self, partition: CopyPartition) -> tuple[int | None, int | None]:
        """The first offset that the target lacks, and the timestamp of its record.

        What is in flight of a log that is gone does not count.
        """
        waiting = self._accumulator.partitions.get(partition.target)
        if waiting is not None and partition.pending_records and not partition.outdated_records:
            first = waiting.sent or waiting.queue
            batch = first[0].payload if first else None
            if isinstance(batch, OutgoingBatch):
                return batch.first_offset, self._clear(batch.base_timestamp)
        fetched = partition.fetched
        return (None if fetched is None else fetched.next_offset), None

    def _clear(self, timestamp: int) -> int | None:
        """Without those that nobody can have meant."""
        is_clear = 0 <= timestamp <= self._wall_clock() * 1000 + FUTURE_MS
        return timestamp if is_clear else None

    def _last_row(self, partition: CopyPartition) -> list[Any]:
        tp, counts = partition.source, partition.counts
        self._known.pop(tp, None)
        self._restless.discard(tp)
        self._histogram.count_rest(counts)
        return encode_row(
            PartitionFigures(
                tp,
                partition.target,
                records=counts.records,
                bytes=counts.bytes,
                lost_records=counts.lost_records,
                skipped_records=counts.skipped_records,
            )
        )
