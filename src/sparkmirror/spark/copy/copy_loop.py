"""The copy itself: fetched batches are rewritten in place and produced, in one thread.

Runs on: executor, inside a Spark task; knows nothing of Spark.

    source brokers -> Fetcher -> on_records: plan() -> Producer -> target brokers
                         ^                                 | on_stored: position, numbers
                         +-- request_fetch: bounded bytes <-+

Everything that can stop a partition without stopping the others is in `problems`; what ends the
task is raised out of `run`.
"""

from __future__ import annotations

import logging
from dataclasses import astuple
from time import sleep

from sparkmirror.batches.forward import OutgoingBatch, Reason, plan
from sparkmirror.errors import BatchError, BrokerError, KafkaError, LeaseError, MirrorError
from sparkmirror.mirror.positions.provenance import Provenance
from sparkmirror.spark.copy.assigned_partitions import AssignedPartitions, PartitionAssigner
from sparkmirror.spark.copy.copy_metrics import CopyMetrics
from sparkmirror.spark.copy.copy_partition import (
    fetch_limits,
)
from sparkmirror.spark.copy.damage import Damages, check_progress
from sparkmirror.spark.copy.delivery import DeliveryTimeout
from sparkmirror.spark.copy.figures_report import FiguresReport
from sparkmirror.spark.copy.joiner import Joiner
from sparkmirror.spark.copy.log_changes import LogChanges
from sparkmirror.spark.copy.partition_problems import MissingTargets, PartitionProblems
from sparkmirror.spark.copy.positions_writer import PositionsWriter
from sparkmirror.spark.copy.rejections import TOO_LARGE, Rejections
from sparkmirror.spark.copy.session_marks import SessionMarks
from sparkmirror.spark.link.frames import LinkMessage
from sparkmirror.spark.offsets.offset_committer import OffsetCommitter
from sparkmirror.spark.offsets.offset_sync_emitter import OffsetSyncEmitter
from sparkmirror.spark.offsets.positions import Positions
from sparkmirror.spark.task_config import CopyTaskConfig
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
# processor's cache, large enough to keep five requests in flight.
WAITING_BYTES = 8 << 20
# While the target has so much to do, responses may gather for this long: a turn of the loop for
# each costs more, because what the kernel copies in between drives our own data out of the cache.
BUSY_BYTES = 3 << 20
REST_SECONDS = 0.002
TARGET_CONNECTIONS = 2  # to every target broker: see wire/produce/broker_queues
BUFFER_BYTES = 96 << 20  # receive buffers in use: beyond this no session fetches
BLOCKED_BYTES = 32 << 20  # of partitions that are blocked: so many do not count
NEW_SECONDS = 3.0  # a partition just created is not known at once; then it is missing


class CopyLoop:
    """Copies its partitions until `stop`."""

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
        self._partitions = partitions = AssignedPartitions()
        self.problems = PartitionProblems(loop.clock)
        self.metrics = CopyMetrics(partitions, self.problems, self._fetcher)
        self._producer = KafkaProducer(
            self._target,
            self,
            acks=connector.producer.acks,
            request_timeout_ms=connector.producer.request_timeout_ms,
            max_in_flight=connector.producer.max_in_flight,
            connections=TARGET_CONNECTIONS,
            join=Joiner(partitions.by_target, loop.clock, self.metrics.slow),
        )
        self.figures = FiguresReport(
            partitions,
            self.problems,
            self._producer.accumulator,
            self.metrics.histogram,
            self.metrics.slow,
        )
        self._positions = Positions(
            connector.name,
            connector.source_alias,
            worker.offset_storage_topic,
            settings.offsets_partitions,
            self._provenance,
        )
        writer = None
        if not connector.producer.client.is_same_cluster(worker.producer.client):
            writer = PositionsWriter(loop, pool, worker.producer, self.problems)
        self._positions_writer = writer
        self._emitter = OffsetSyncEmitter(settings, loop, pool, self._target)
        self._committer = OffsetCommitter(
            loop,
            self._producer,
            writer.producer if writer else self._producer,
            self._positions,
            self._emitter,
            interval_ms=worker.offset_flush_interval_ms,
            timeout_ms=worker.offset_flush_timeout_ms,
        )
        self._log_changes = LogChanges(
            connector, self._positions, self._emitter, self._committer.commit
        )
        self._marks = SessionMarks(self._target, self._fetcher, self._emitter)
        self._assigner = PartitionAssigner(
            connector,
            partitions,
            self._fetcher,
            self._producer,
            self._target.metadata,
            positions=self._positions,
            committer=self._committer,
            emitter=self._emitter,
            log_changes=self._log_changes,
            marks=self._marks,
            problems=self.problems,
        )
        self.assign, self.revoke = self._assigner.assign, self._assigner.revoke
        self._stopping = False
        self._fetch_held = False
        self._holding = False
        self._delivery = DeliveryTimeout(loop, connector.producer.delivery_timeout_ms)
        self._rejections = Rejections(connector.errors_tolerance)
        self._damages = Damages(loop, connector, self._fetcher, self.problems)
        self.missing = MissingTargets(loop.clock)
        self.assign(settings.assigned)

    # -- from the worker ---------------------------------------------------------------------------

    def stop(self) -> None:
        """Fetch nothing more; `run` ends when everything is stored and committed."""
        self._stopping = True
        self._fetcher.stopped = True

    def hold(self, *, may_store: bool) -> None:
        """Fetch nothing more until `resume`; store what was copied, as long as that is allowed."""
        self._holding = True
        if may_store:
            self._committer.commit()

    def resume(self) -> None:
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
        if self._fetch_held and self.request_take():  # what was read ahead may hold all buffers
            self._fetch_held = False
            self._fetcher.send_ready()
        if self._partitions.leaving:
            self._assigner.finish_revoked()

    def close(self) -> None:
        """Close all connections."""
        self._emitter.close()
        self._source.close()
        self._target.close()
        if self._positions_writer is not None:
            self._positions_writer.close()

    def client_figures(self) -> LinkMessage:
        """Of the clients, for metrics: traffic, records on their way, times to store positions."""
        return {
            "source": list(self._source.traffic),
            "target": list(self._target.traffic),
            "pending": self.metrics.pending,
            "room": self._room(),
            "commit_ms": astuple(self._committer.times.window()),
        }

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
        return self._rejections.skipped_records + self._damages.skipped_records

    # -- from the fetcher --------------------------------------------------------------------------

    def request_fetch(self) -> bool:
        """False while enough bytes wait for the target, or all receive buffers are in use."""
        return self.request_take() and self._grant(self._pool.used_bytes < BUFFER_BYTES)

    def request_take(self) -> bool:
        """False while enough bytes wait for the target."""
        return self._grant(self._room() > 0 and not self._holding)

    def _room(self) -> int:
        """Bytes that may still wait for the target; negative when there are more already."""
        excused = min(self._producer.accumulator.blocked_bytes, BLOCKED_BYTES)
        waiting = self._producer.accumulator.waiting_bytes - excused
        return max(WAITING_BYTES, self._producer.wanted_bytes) - waiting

    def _grant(self, allowed: bool) -> bool:
        """Remember what was not granted; `turn` grants it as soon as possible."""
        self._fetch_held = self._fetch_held or not allowed
        return allowed

    def on_records(self, records: Records) -> Taken:
        """Prepare the batches of one partition and queue them."""
        partition = self._partitions.by_source[records.tp]
        try:
            if partition.damaged:
                planned = self._damages.plan(partition, records, self.metrics.slow)
            else:
                planned = plan(
                    records.view,
                    records.next_offset,
                    records.aborted,
                    partition.rules,
                    self.metrics.slow,
                )
                check_progress(planned, records)
        except BatchError as error:
            return Taken(self._damages.stand(partition, records.next_offset, error))
        if planned.batches:
            found, before = planned.batches, partition.pending_records
            self.metrics.histogram.count_fetched(partition.counts, found[0], found[-1])
            batches = partition.to_send(found, records.buffer, self)
            self.metrics.polled += partition.pending_records - before
            self._producer.append(partition.target, batches)
        return Taken(planned.next_offset, planned.leader_epoch)

    def on_round(self) -> None:
        """A response was processed: send its batches."""
        self._producer.send_ready()

    def on_out_of_range(self, tp: TopicPartition, position: int | None, found: Range) -> int:
        """Decide where to continue."""
        partition = self._partitions.by_source[tp]
        chosen = self._log_changes.choose(partition, position, found)
        self._marks.begin(partition, chosen)
        return chosen

    def on_truncated(self, tp: TopicPartition, position: int, next_offset: int) -> None:
        """The source lost records that were read."""
        self._log_changes.truncate(self._partitions.by_source[tp], position, next_offset)

    def on_recreated(self, tp: TopicPartition, position: int) -> None:
        """The source topic is another one under the same name."""
        self._log_changes.recreate(self._partitions.by_source[tp])

    def on_partition_error(self, tp: TopicPartition, error: KafkaError) -> None:
        """A partition that cannot be fetched now."""
        self.problems.note(tp, error, is_of_source=True)

    # -- from the producer -------------------------------------------------------------------------

    def on_stored(self, tp: TopicPartition, batch: ProducerBatch[OutgoingBatch]) -> None:
        """The target has it."""
        stored, partition = batch.payload, self._partitions.by_target[tp]
        self.metrics.count(partition, stored)
        if partition.settle(stored):
            partition.copied_to = stored.last_offset + 1
            if batch.offset >= 0:
                partition.target_offset = batch.offset + stored.count - 1
            self._positions.acked(partition.source, stored.last_offset)
            self._emitter.acked(partition.source, stored, batch.offset)
        if self.problems and not partition.damaged:
            self.problems.pop(partition.source, None)

    def on_rejected(
        self, tp: TopicPartition, batch: ProducerBatch[OutgoingBatch], error: BrokerError
    ) -> Replacement:
        """Too large: split, and remember. Bad records: skip or fail, by errors.tolerance."""
        if error.code in TOO_LARGE and batch.payload.count > 1:
            self.metrics.slow[Reason.TOO_LARGE] += 1
        return self._rejections.replace(self._partitions.by_target[tp], batch, error)

    def on_blocked(self, tp: TopicPartition, error: KafkaError | None) -> None:
        """A target partition waits, or continues."""
        partition = self._partitions.by_target.get(tp)  # None: of the offsets topic
        if partition is not None:
            self._delivery.note(tp, error)
        source = tp if partition is None else partition.source
        if error is None:
            self.problems.pop(source, None)
            self._fetcher.resume(source)
            return
        self._fetcher.pause(source)
        self.problems.note(source, error, is_of_positions=partition is None)
        # A denied topic may exist, so a DeniedError does not count.
        is_missing = type(error) is BrokerError and tp not in self._target.metadata.leaders
        if is_missing and self.problems.seconds(source) > NEW_SECONDS:
            self.missing.note(tp.topic)

    # -- inside ------------------------------------------------------------------------------------

    def log_problems(self) -> None:
        """Log what does not pass by itself; called about once a second."""
        self._fetcher.note_silence()
        self._producer.note_silence()
        self.problems.note_source(self._fetcher.troubled, self._source.last_error)
        self.problems.log_lasting()

    def _provenance(self, tp: TopicPartition, last_offset: int) -> Provenance:
        return self._partitions.by_source[tp].provenance(last_offset)
