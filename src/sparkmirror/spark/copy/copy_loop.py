"""The copy itself: fetched batches are rewritten in place and produced, in one thread.

Runs on: executor, inside a Spark task; knows nothing of Spark.

    source brokers -> Fetcher -> on_records: plan() -> Producer -> target brokers
                         ^                                 | on_stored: position, numbers
                         +---- may_fetch: bytes bounded <--+

Everything that can stop a partition without stopping the others is in `problems`; what ends the
task is raised out of `run`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from time import sleep

from sparkmirror.batches.forward import OutgoingBatch, Reason, plan
from sparkmirror.errors import BatchError, BrokerError, KafkaError, LeaseError, MirrorError
from sparkmirror.mirror.positions.provenance import Provenance
from sparkmirror.spark.copy.copy_partition import (
    CopyPartition,
    fetch_limits,
    forward_rules,
    records_behind,
    take_active_topics,
)
from sparkmirror.spark.copy.damage import Damages, check_progress
from sparkmirror.spark.copy.delivery import DeliveryTimeout
from sparkmirror.spark.copy.joiner import Joiner
from sparkmirror.spark.copy.log_changes import LogChanges
from sparkmirror.spark.copy.partition_problems import Missing, PartitionProblems
from sparkmirror.spark.copy.positions_writer import PositionsWriter
from sparkmirror.spark.copy.refusals import TOO_LARGE, Refusals
from sparkmirror.spark.copy.session_marks import SessionMarks
from sparkmirror.spark.offsets.offset_committer import OffsetCommitter
from sparkmirror.spark.offsets.offset_sync_emitter import OffsetSyncEmitter
from sparkmirror.spark.offsets.positions import Positions
from sparkmirror.spark.task_config import AssignedPartition, CopyTaskConfig
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.fetch.ahead_reader import MOST_BYTES
from sparkmirror.wire.fetch.fetcher import Fetcher, Records, Taken
from sparkmirror.wire.fetch.offset_fetcher import Range
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.net.event_loop import EventLoop
from sparkmirror.wire.produce.producer import KafkaProducer
from sparkmirror.wire.produce.record_accumulator import ProducerBatch, Replacement

log = logging.getLogger(__name__)

# Bytes that may wait for a near target before fetching pauses. Small enough to stay in the
# processor's cache, large enough to keep five requests under way.
WAITING_BYTES = 8 << 20
# While the target has so much to do, answers are let to gather for so long: a turn of the loop for
# each costs more, because what the kernel copies in between drives our own data out of the cache.
BUSY_BYTES = 3 << 20
REST_SECONDS = 0.002
TARGET_CONNECTIONS = 2  # to every target broker: see wire/produce/broker_queues
BUFFER_BYTES = 96 << 20  # receive buffers in use: beyond this no session fetches
BLOCKED_BYTES = 32 << 20  # of partitions that are blocked: so many do not count
NEW_SECONDS = 3.0  # a partition just created is not known at once; then it is missing


class CopyLoop:
    """Copies its partitions until it is told to stop."""

    def __init__(self, settings: CopyTaskConfig, loop: EventLoop) -> None:
        connector, worker = settings.connector, settings.worker
        self._settings = settings
        self._config = connector
        self._loop = loop
        pool = BufferPool(MOST_BYTES)
        self._pool = pool
        self._source = NetworkClient(loop, connector.consumer.client, pool)
        self._target = NetworkClient(loop, connector.producer.client, pool)
        timeout = connector.consumer.request_timeout_ms / 1000
        self._fetcher = Fetcher(self._source, fetch_limits(connector.consumer), self, timeout)
        self.slow: Counter[Reason] = Counter()
        self._by_source: dict[TopicPartition, CopyPartition] = {}
        self._by_target: dict[TopicPartition, CopyPartition] = {}
        self._producer = KafkaProducer(
            self._target,
            self,
            acks=connector.producer.acks,
            request_timeout_ms=connector.producer.request_timeout_ms,
            max_in_flight=connector.producer.max_in_flight,
            connections=TARGET_CONNECTIONS,
            join=Joiner(self._by_target, loop.clock, self.slow),
        )
        self._positions = Positions(
            connector.name,
            connector.source_alias,
            worker.offset_storage_topic,
            settings.offsets_partitions,
            self._provenance,
        )
        self.problems = PartitionProblems(loop.clock)
        writer = None
        if not connector.producer.client.is_same_cluster(worker.producer.client):
            writer = PositionsWriter(loop, pool, worker.producer, self.problems)
        self._positions_writer = writer
        self._translations = OffsetSyncEmitter(settings, loop, pool, self._target)
        self._committer = OffsetCommitter(
            loop,
            self._producer,
            writer.producer if writer else self._producer,
            self._positions,
            self._translations,
            interval_ms=worker.offset_flush_interval_ms,
            timeout_ms=worker.offset_flush_timeout_ms,
        )
        self._log_changes = LogChanges(
            connector, self._positions, self._translations, self._committer.commit
        )
        self._marks = SessionMarks(self._target, self._fetcher, self._translations)
        self._leaving: set[TopicPartition] = set()
        # Those that are to come back once they have left, and all that ever left.
        self._returning: dict[TopicPartition, AssignedPartition] = {}
        self._left: set[TopicPartition] = set()
        self._stopping = False
        self._fetch_held = False
        self._holding = False
        self.records = 0
        self.bytes = 0
        self._delivery = DeliveryTimeout(loop, connector.producer.delivery_timeout_ms)
        self._refusals = Refusals(connector.errors_tolerance)
        self._damages = Damages(loop, connector, self._fetcher, self.problems)
        self.missing = Missing(loop.clock)
        self.assign(settings.assigned)

    # -- orders ------------------------------------------------------------------------------------

    def assign(self, assigned: Iterable[AssignedPartition]) -> None:
        """Copy these too; the others do not notice."""
        for row in assigned:
            if row.source in self._leaving:
                self._returning[row.source] = row
            if row.source in self._by_source:
                continue
            if row.source in self._left and row.next_offset is None:
                self._log_changes.begin_anew(row.source)
            rules = forward_rules(self._config)
            partition = CopyPartition(row.source, row.target, rules)
            self._by_source[row.source] = self._by_target[row.target] = partition
            if row.next_offset:
                partition.copied_to = partition.told_to = row.next_offset
            self._target.metadata.track([row.target.topic])
            topic_id, epochs, partition.target_offset = row.provenance
            partition.fetched = self._fetcher.add(row.source, row.next_offset, epochs, topic_id)
            if row.next_offset is not None:
                self._marks.begin(partition, row.next_offset)

    def revoke(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop copying these; what is under way is finished and committed first."""
        going = set(partitions)
        for tp in going:
            self._returning.pop(tp, None)
        going &= self._by_source.keys()
        self._fetcher.remove(*going)
        self._leaving |= going

    def stop(self) -> None:
        """Fetch nothing more; `run` ends when everything is stored and committed."""
        self._stopping = True
        self._fetcher.stopped = True

    def hold(self, *, may_store: bool) -> None:
        """Fetch nothing more until `go_on`; store what was copied, as long as that is allowed."""
        self._holding = True
        if may_store:
            self._committer.commit()

    def go_on(self) -> None:
        """Undo `hold`: the next turn fetches."""
        self._holding = False

    def run(self) -> None:
        """Copy until stopped; raises what ends the task."""
        try:
            while not self._stopping:
                self.turn()
            seconds = self._settings.worker.task_shutdown_graceful_timeout_ms / 1000
            self._committer.drain(seconds)
        except LeaseError:
            raise
        except MirrorError:
            self._fetcher.stopped = True
            self._committer.commit_failing()
            raise

    def turn(self) -> None:
        """One turn of the loop."""
        if self._producer.accumulator.sent_bytes >= BUSY_BYTES:
            sleep(REST_SECONDS)
        self._loop.run_once(1.0)
        if self._fetch_held and self.may_take():  # what was read ahead may hold all buffers
            self._fetch_held = False
            self._fetcher.send_ready()
        if self._leaving:
            self._drop_left()

    def close(self) -> None:
        """Close all connections."""
        self._translations.close()
        self._source.close()
        self._target.close()
        if self._positions_writer is not None:
            self._positions_writer.close()

    @property
    def is_clean(self) -> bool:
        """True when everything fetched is stored and committed."""
        return self._producer.idle and self._positions.is_committed

    @property
    def lost_records(self) -> int:
        """Offsets that retention deleted before they were copied."""
        return self._log_changes.lost_records

    @property
    def skipped_records(self) -> int:
        """Records that were left out, because errors.tolerance=all."""
        return self._refusals.skipped_records + self._damages.skipped_records

    @property
    def partitions(self) -> int:
        """How many are being copied."""
        return len(self._by_source)

    def behind(self) -> int | None:
        """Records still to copy; None while the end of a partition's log is not known.

        It was known once, but grows unseen while nothing of the partition is fetched: a partition
        that waits must not look as if it had caught up.
        """
        waiting = self.problems.keys() | self._fetcher.troubled
        if not waiting.isdisjoint(self._by_source):
            return None
        return records_behind(self._by_source.values(), self._leaving)

    def take_active_topics(self) -> list[str]:
        """Target topics that got records since the last call."""
        return take_active_topics(self._by_target.values())

    # -- from the fetcher --------------------------------------------------------------------------

    def may_fetch(self) -> bool:
        """False while enough bytes wait for the target, or all receive buffers are in use."""
        return self.may_take() and self._may(self._pool.used_bytes < BUFFER_BYTES)

    def may_take(self) -> bool:
        """False while enough bytes wait for the target."""
        excused = min(self._producer.accumulator.blocked_bytes, BLOCKED_BYTES)
        waiting = self._producer.accumulator.waiting_bytes - excused
        most = max(WAITING_BYTES, self._producer.wanted_bytes)
        return self._may(waiting < most and not self._holding)

    def _may(self, allowed: bool) -> bool:
        self._fetch_held = self._fetch_held or not allowed
        return allowed

    def on_records(self, records: Records) -> Taken:
        """Prepare the batches of one partition and queue them."""
        partition = self._by_source[records.tp]
        try:
            if partition.damaged:
                planned = self._damages.plan(partition, records, self.slow)
            else:
                planned = plan(
                    records.view, records.next_offset, records.aborted, partition.rules, self.slow
                )
                check_progress(planned, records)
        except BatchError as error:
            return Taken(self._damages.stand(partition, records.next_offset, error))
        if planned.batches:
            batches = partition.to_send(planned.batches, records.buffer, self)
            self._producer.append(partition.target, batches)
        return Taken(planned.next_offset, planned.leader_epoch)

    def on_round(self) -> None:
        """An answer was taken in: let the batches go."""
        self._producer.send_ready()

    def on_out_of_range(self, tp: TopicPartition, position: int | None, found: Range) -> int:
        """Decide where to go on."""
        partition = self._by_source[tp]
        chosen = self._log_changes.choose(partition, position, found)
        self._marks.begin(partition, chosen)
        return chosen

    def on_truncated(self, tp: TopicPartition, position: int, next_offset: int) -> None:
        """The source lost records that were read."""
        self._log_changes.truncate(self._by_source[tp], position, next_offset)

    def on_recreated(self, tp: TopicPartition, position: int) -> None:
        """The source topic is another one under the same name."""
        self._log_changes.recreate(self._by_source[tp])

    def on_partition_error(self, tp: TopicPartition, error: KafkaError) -> None:
        """A partition that cannot be fetched now."""
        self.problems.note(tp, error, is_of_source=True)

    # -- from the producer -------------------------------------------------------------------------

    def on_stored(self, tp: TopicPartition, batch: ProducerBatch[OutgoingBatch]) -> None:
        """The target has it."""
        stored, partition = batch.payload, self._by_target[tp]
        self.records += stored.count
        self.bytes += stored.size
        if partition.settle(stored):
            partition.copied_to = stored.last_offset + 1
            if batch.offset >= 0:
                partition.target_offset = batch.offset + stored.count - 1
            self._positions.acked(partition.source, stored.last_offset)
            self._translations.acked(partition.source, stored, batch.offset)
        if self.problems and not partition.damaged:
            self.problems.pop(partition.source, None)

    def on_rejected(
        self, tp: TopicPartition, batch: ProducerBatch[OutgoingBatch], error: BrokerError
    ) -> Replacement:
        """Too large: split, and remember. Bad records: skip or fail, as errors.tolerance says."""
        if error.code in TOO_LARGE and batch.payload.count > 1:
            self.slow[Reason.TOO_LARGE] += 1
        return self._refusals.replace(self._by_target[tp], batch, error)

    def on_blocked(self, tp: TopicPartition, error: KafkaError | None) -> None:
        """A target partition waits, or goes on."""
        partition = self._by_target.get(tp)  # none: positions are stored there
        if partition is not None:
            self._delivery.note(tp, error)
        source = tp if partition is None else partition.source
        if error is None:
            self.problems.pop(source, None)
            self._fetcher.resume(source)
            return
        self._fetcher.pause(source)
        self.problems.note(source, error, is_of_positions=partition is None)
        is_missing = (
            type(error) is BrokerError and tp not in self._target.metadata.leaders
        )  # nor hidden
        if is_missing and self.problems.seconds(source) > NEW_SECONDS:
            self.missing.note(tp.topic)

    # -- inside ------------------------------------------------------------------------------------

    def say_problems(self) -> None:
        """Log what does not pass by itself; called about once a second."""
        self._fetcher.note_silence()
        self._producer.note_silence()
        self.problems.note_source(self._fetcher.troubled, self._source.last_error)
        self.problems.say()

    def _provenance(self, tp: TopicPartition, last_offset: int) -> Provenance:
        return self._by_source[tp].provenance(last_offset)

    def _drop_left(self) -> None:
        arrived = {
            tp: partition
            for tp in self._leaving
            if not self._producer.accumulator.pending((partition := self._by_source[tp]).target)
        }
        gone = {tp for tp in arrived if self._positions.is_committed_of(tp)}
        if len(gone) < len(arrived):
            self._committer.commit()
        self._leaving -= gone
        self._left |= gone
        for tp in gone:
            del self._by_source[tp], self._by_target[arrived[tp].target]
            self.problems.pop(tp, None)
            self._positions.forget(tp)
            self._translations.forget(tp)
        self._producer.remove(*(arrived[tp].target for tp in gone))
        for tp in gone:
            self._return(tp, arrived[tp])

    def _return(self, tp: TopicPartition, partition: CopyPartition) -> None:
        """Assigned again before it had left: go on behind what was finished in between.

        The worker may have found no position, because none was stored before. If it found none
        because the topic is another one, the fetcher sees that by the topic's id.
        """
        row, copied_to = self._returning.pop(tp, None), partition.copied_to
        if row is None:
            return
        if copied_to is not None and copied_to >= (row.next_offset or 0):
            row = row._replace(
                next_offset=copied_to, provenance=partition.provenance(copied_to - 1)
            )
        self.assign([row])
