"""When positions are stored, and what is stored with them.

Runs on: executor, on the copy loop's thread.
"""

from __future__ import annotations

import logging
import time

from sparkmirror.errors import BrokerError, DeniedError, MirrorError, RefusedError
from sparkmirror.spark.offsets.offset_sync_emitter import OffsetSyncEmitter
from sparkmirror.spark.offsets.positions import Commit, Positions
from sparkmirror.spark.recent_times import RecentTimes
from sparkmirror.types import TopicPartition
from sparkmirror.wire.net.event_loop import EventLoop
from sparkmirror.wire.produce.producer import KafkaProducer
from sparkmirror.wire.produce.record_accumulator import ProducerBatch, Replacement

log = logging.getLogger(__name__)

# A task that fails may take this long to store what it has copied, so that it is not copied twice.
FAILING_SECONDS = 2.0
# A clean stop waits so long for offset syncs: without the last ones groups re-read some records.
SYNCS_SECONDS = 1.0
# How soon a position that was decided is sent once more, while an earlier one is under way.
DECIDED_SECONDS = 0.1


class OffsetCommitter:
    """Stores positions every `offset.flush.interval.ms`, and at the end.

    `records` and `producer`, which writes positions, are the same if their cluster is.
    """

    def __init__(
        self,
        loop: EventLoop,
        records: KafkaProducer,
        producer: KafkaProducer,
        positions: Positions,
        emitter: OffsetSyncEmitter,
        *,
        interval_ms: int,
        timeout_ms: int,
    ) -> None:
        self._loop = loop
        self._records = records
        self._producer = producer
        self._positions = positions
        self._emitter = emitter
        self._interval = interval_ms / 1000
        self._timeout = timeout_ms / 1000
        self._stopped = False
        # From sending positions to their acknowledgement.
        self.times = RecentTimes(loop.clock)
        self._sent_at: dict[int, float] = {}
        self._loop.call_later(self._interval, self._again)

    def commit(self) -> None:
        """Send the positions that have changed, and where their records went."""
        self._emitter.commit()
        self._send()
        if self._positions.has_decided:
            self._loop.call_later(DECIDED_SECONDS, self._send_decided)

    def drain(self, seconds: float) -> None:
        """Wait for what is in flight, then commit; no longer than `seconds` in all."""
        self._stopped = True
        deadline = self._loop.clock() + seconds
        if not self._loop.run_until(lambda: self._records.idle, seconds * 0.7):
            log.warning(
                "stopping with %d bytes not acknowledged", self._records.accumulator.waiting_bytes
            )
        self.commit()
        left = min(self._timeout, max(1.0, deadline - self._loop.clock()))
        if not self._loop.run_until(self._store_rest, left):
            log.warning(
                "stopping before all positions were stored: the next start copies those records "
                "again"
            )
        # Where positions were waited for to the end, syncs were under way as long.
        left = min(SYNCS_SECONDS, max(0.1, deadline - self._loop.clock()))
        if not self._loop.run_until(lambda: self._emitter.idle, left):
            log.warning("stopping before all offset syncs were stored")

    def commit_failing(self) -> None:
        """Store what was copied, so that each attempt does not copy it once more."""
        self._stopped = True
        for _ in range(2):  # a commit may be under way, with older positions
            self.commit()
            deadline = self._loop.clock() + FAILING_SECONDS
            while self._positions.is_sending and self._loop.clock() < deadline:
                try:
                    self._loop.run_once(0.1)
                except MirrorError as error:
                    log.debug("while failing: %s", error)  # the first one is what ends the task

    # -- from the producer -------------------------------------------------------------------------

    def on_stored(self, tp: TopicPartition, batch: ProducerBatch[Commit]) -> None:
        """The offsets topic has these positions."""
        self._positions.stored(batch.payload)
        sent_at = self._sent_at.pop(tp.partition, None)
        if sent_at is not None:
            self.times.add((self._loop.clock() - sent_at) * 1000)

    def on_rejected(
        self, tp: TopicPartition, batch: ProducerBatch[Commit], error: BrokerError
    ) -> Replacement:
        """End the task: positions that are not stored would be lost.

        Where only a permission is missing they wait for it: a task that ended would copy the same
        records once more.

        Raises:
            RefusedError: the offsets topic will never accept them.
        """
        if isinstance(error, DeniedError):
            return None
        raise RefusedError(f"store positions: {error}") from error

    # -- inside ------------------------------------------------------------------------------------

    def _send(self) -> None:
        for tp, batch, commit in self._positions.take_commit(int(time.time() * 1000)):
            count = len(commit.last_offsets)
            self._sent_at[tp.partition] = self._loop.clock()
            self._producer.append(tp, [ProducerBatch(batch, count, None, commit, self)])
        self._producer.send_ready()

    def _send_decided(self) -> None:
        """What was decided behind a commit that was under way does not wait for the next flush."""
        if self._positions.has_decided:
            self._send()
            self._loop.call_later(DECIDED_SECONDS, self._send_decided)

    def _store_rest(self) -> bool:
        """Also behind a commit that was under way, which had older positions."""
        if not self._positions.is_committed:
            self._send()
        return self._positions.is_committed

    def _again(self) -> None:
        if not self._stopped:
            self.commit()
            self._loop.call_later(self._interval, self._again)
