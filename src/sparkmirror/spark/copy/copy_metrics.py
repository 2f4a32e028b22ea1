"""What one copy task has done so far, and what is left to do: the figures of its status.

Runs on: executor, on the copy loop's thread.
"""

from __future__ import annotations

from collections import Counter

from sparkmirror.batches.forward import OutgoingBatch, Reason
from sparkmirror.spark.copy.assigned_partitions import AssignedPartitions
from sparkmirror.spark.copy.copy_counts import LatencyHistogram
from sparkmirror.spark.copy.copy_partition import CopyPartition
from sparkmirror.spark.copy.partition_problems import PartitionProblems
from sparkmirror.wire.fetch.fetcher import Fetcher


class CopyMetrics:
    """Counts what was stored; looks at the partitions for what is left."""

    def __init__(
        self, partitions: AssignedPartitions, problems: PartitionProblems, fetcher: Fetcher
    ) -> None:
        self._partitions = partitions
        self._problems = problems
        self._fetcher = fetcher
        # Batches that were not just passed through.
        self.slow: Counter[Reason] = Counter()
        self.histogram = LatencyHistogram()
        self.records = 0
        self.bytes = 0
        # Fetched and handed to the producer.
        self.polled = 0

    def count(self, partition: CopyPartition, batch: OutgoingBatch) -> None:
        """The target has it."""
        self.records += batch.count
        self.bytes += batch.size
        self.histogram.count_stored(partition.counts, batch)

    @property
    def partitions(self) -> int:
        """How many are being copied."""
        return len(self._partitions.by_source)

    @property
    def pending(self) -> int:
        """Records fetched that the target has not acknowledged."""
        return sum(each.pending_records for each in self._partitions.by_source.values())

    def behind(self) -> int | None:
        """Records still to copy; None while the end of a partition's log is not known.

        It was known once, but grows unseen while nothing of the partition is fetched: a partition
        that waits must not look as if it had caught up. Of those that are leaving nothing more is
        fetched.
        """
        waiting = self._problems.keys() | self._fetcher.troubled
        if not waiting.isdisjoint(self._partitions.by_source):
            return None
        total = 0
        for tp, partition in self._partitions.by_source.items():
            total += partition.pending_records
            if tp not in self._partitions.leaving and partition.fetched is not None:
                if (unread := partition.fetched.unread_records) is None:
                    return None
                total += unread
        return total

    def take_active_topics(self) -> list[str]:
        """Target topics that got records since the last call."""
        active = set()
        for partition in self._partitions.by_source.values():
            if partition.copied_to not in (None, partition.reported_to):
                partition.reported_to = partition.copied_to
                active.add(partition.target.topic)
        return sorted(active)
