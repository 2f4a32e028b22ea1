"""Which partitions a task copies: assigned, revoked, and assigned again while still finishing.

Runs on: executor, on the copy loop's thread.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.spark.copy.copy_partition import CopyPartition, forward_rules
from sparkmirror.spark.copy.log_changes import LogChanges
from sparkmirror.spark.copy.partition_problems import PartitionProblems
from sparkmirror.spark.copy.session_marks import SessionMarks
from sparkmirror.spark.offsets.offset_committer import OffsetCommitter
from sparkmirror.spark.offsets.offset_sync_emitter import OffsetSyncEmitter
from sparkmirror.spark.offsets.positions import Positions
from sparkmirror.spark.task_config import AssignedPartition
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.metadata import Metadata
from sparkmirror.wire.fetch.fetcher import Fetcher
from sparkmirror.wire.produce.producer import KafkaProducer


class AssignedPartitions:
    """The partitions of one task, by their names on both sides."""

    def __init__(self) -> None:
        self.by_source: dict[TopicPartition, CopyPartition] = {}
        self.by_target: dict[TopicPartition, CopyPartition] = {}
        # Revoked, and not yet finished.
        self.leaving: set[TopicPartition] = set()
        # Finished since the last report to the worker.
        self.left: list[CopyPartition] = []

    def add(self, partition: CopyPartition) -> None:
        """Add one."""
        self.by_source[partition.source] = self.by_target[partition.target] = partition

    def remove(self, partition: CopyPartition) -> None:
        """Remove one."""
        del self.by_source[partition.source], self.by_target[partition.target]
        self.left.append(partition)


class PartitionAssigner:
    """Adds and removes partitions on request of the worker, without disturbing the others."""

    def __init__(
        self,
        config: SourceConfig,
        partitions: AssignedPartitions,
        fetcher: Fetcher,
        producer: KafkaProducer,
        target: Metadata,
        *,
        positions: Positions,
        committer: OffsetCommitter,
        emitter: OffsetSyncEmitter,
        log_changes: LogChanges,
        marks: SessionMarks,
        problems: PartitionProblems,
    ) -> None:
        self._config = config
        self._partitions = partitions
        self._fetcher = fetcher
        self._producer = producer
        self._target = target
        self._positions = positions
        self._committer = committer
        self._emitter = emitter
        self._log_changes = log_changes
        self._marks = marks
        self._problems = problems
        # Those to assign again once they have finished, and all that ever finished.
        self._reassigned: dict[TopicPartition, AssignedPartition] = {}
        self._left: set[TopicPartition] = set()

    def assign(self, assigned: Iterable[AssignedPartition]) -> None:
        """Copy these too."""
        for row in assigned:
            if row.source in self._partitions.leaving:
                self._reassigned[row.source] = row
            if row.source not in self._partitions.by_source:
                self._begin(row)

    def revoke(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop copying these; what is in flight is finished and committed first."""
        going = set(partitions)
        for tp in going:
            self._reassigned.pop(tp, None)
        going &= self._partitions.by_source.keys()
        self._fetcher.remove(*going)
        self._partitions.leaving |= going

    def finish_revoked(self) -> None:
        """Release those of which everything is stored and committed."""
        by_source, pending = self._partitions.by_source, self._producer.accumulator.pending
        leaving = [by_source[tp] for tp in self._partitions.leaving]
        arrived = [partition for partition in leaving if not pending(partition.target)]
        gone = [each for each in arrived if self._positions.is_committed_of(each.source)]
        if len(gone) < len(arrived):
            self._committer.commit()
        for partition in gone:
            tp = partition.source
            self._partitions.leaving.discard(tp)
            self._left.add(tp)
            self._partitions.remove(partition)
            self._problems.pop(tp, None)
            self._positions.forget(tp)
            self._emitter.forget(tp)
        self._producer.remove(*(partition.target for partition in gone))
        for partition in gone:
            self._begin_again(partition)

    def _begin(self, row: AssignedPartition) -> None:
        if row.source in self._left and row.next_offset is None:
            self._log_changes.start_over(row.source)
        partition = CopyPartition(row.source, row.target, forward_rules(self._config))
        self._partitions.add(partition)
        if row.next_offset:
            partition.copied_to = partition.reported_to = row.next_offset
        self._target.track([row.target.topic])
        topic_id, epochs, partition.target_offset = row.provenance
        partition.fetched = self._fetcher.add(row.source, row.next_offset, epochs, topic_id)
        if row.next_offset is not None:
            self._marks.begin(partition, row.next_offset)

    def _begin_again(self, partition: CopyPartition) -> None:
        """Assigned again while still finishing: continue after what was copied in between.

        The worker may have found no position, because none was stored before. If it found none
        because the topic is another one, the fetcher sees that by the topic's id (KIP-516).
        """
        row = self._reassigned.pop(partition.source, None)
        copied_to = partition.copied_to
        if row is None:
            return
        if copied_to is not None and copied_to >= (row.next_offset or 0):
            provenance = partition.provenance(copied_to - 1)
            row = row._replace(next_offset=copied_to, provenance=provenance)
        self.assign([row])
