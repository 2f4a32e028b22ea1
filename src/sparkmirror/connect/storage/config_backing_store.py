"""Connect's config topic: connectors, their tasks and target states. Shared by all workers.

Runs on: worker. Every worker follows the topic; only the leader writes, in transactions under the
transactional id of a Connect leader, so that a new leader fences the one before (KIP-618).
Mirrors: org.apache.kafka.connect.storage.KafkaConfigBackingStore.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from sparkmirror.batches.header import ATTRIBUTES, ATTRIBUTES_AT, CRC, CRC_AT, TRANSACTIONAL
from sparkmirror.batches.records import Record, encode
from sparkmirror.config.clients import ClientConfig
from sparkmirror.connect.entities import OnRestart
from sparkmirror.connect.group.session_keys import SessionKey
from sparkmirror.connect.storage.config_records import (
    ConfigSnapshot,
    ConfigState,
    KeyValue,
    RestartRequest,
    session_key_record,
)
from sparkmirror.connect.storage.config_writer import ConfigWriter
from sparkmirror.connect.storage.kafka_based_log import KafkaBasedLog, now_ms
from sparkmirror.connect.storage.storage_topics import StorageTopic, prepare_storage_topic
from sparkmirror.errors import DeniedError, LocalProtocolError
from sparkmirror.mirror.permissions import (
    READ,
    WRITE,
    Feature,
    Operation,
    ResourceKind,
    consequence_without,
)
from sparkmirror.types import TopicPartition
from sparkmirror.wire.produce.transactional_writer import TransactionalWriter

WRITE_SECONDS = 30.0
# For a check between two generations of the group: within a session, with time to spare.
CHECK_SECONDS = 2.0


class KafkaConfigBackingStore(ConfigWriter):
    """The config topic of one group of workers. For any thread.

    `term` returns the number of this worker's leadership, None when it does not lead:
    `GroupPlace.term`. The first write of a term claims the topic; `claim` does so at once.
    Callbacks run on the thread that follows the topic: they must neither block nor write.

    All writes raise FencedError (we do not lead, or another worker has claimed the topic: nothing
    was written), BrokerError (rejected) or TransportError (timed out: it may have been written).
    """

    def __init__(
        self,
        client: ClientConfig,
        topic: StorageTopic,
        *,
        group_id: str,
        term: Callable[[], int | None] = lambda: 0,
        feature: Feature = Feature.WORKER,
    ) -> None:
        """`feature`: what the topic is needed for; used in errors."""
        self.topic = topic.name
        self._wanted = topic
        self._tp = TopicPartition(topic.name, 0)
        self._client = client
        self._term = term
        self._feature = feature
        # The last term in which we claimed the topic. After being fenced in it, a worker must check
        # that it still leads, and call `claim`, before it writes again.
        self._claimed: int | None = None
        self._claiming = threading.RLock()
        self._state = ConfigState()
        self._snapshot = self._state.snapshot()
        self._announced: tuple[SessionKey, ...] = ()
        self._callbacks: list[Callable[[], None]] = []
        self._restart_callbacks: list[OnRestart] = []
        self._started = False
        self._followed: KafkaBasedLog | None = None
        self._writer = TransactionalWriter(
            client, f"connect-cluster-{group_id}", lambda: term() is not None
        )

    def start(self) -> None:
        """Create or check the topic, read it to its end, and follow it.

        Raises:
            ConfigError: the topic cannot be used.
            KafkaError: it can neither be created nor read.
        """
        prepare_storage_topic(self._client, self._wanted)
        self._followed = KafkaBasedLog(
            self._client, self.topic, 1, self, self._without(ResourceKind.CONFIG, READ)
        )
        self._followed.start()
        self._started = True

    def stop(self) -> None:
        """Stop following the topic; a write in progress fails."""
        self._writer.close()
        if self._followed is not None:
            self._followed.stop()

    @property
    def last_error(self) -> str:
        """Why the topic cannot be read; empty while it can."""
        return "" if self._followed is None else self._followed.last_error

    def snapshot(self) -> ConfigSnapshot:
        """The topic as far as it has been read."""
        return self._snapshot

    def session_keys(self) -> Sequence[SessionKey]:
        """The newest session key, and older ones that may still be in use (KIP-507).

        Includes one that this worker is writing: others may read it before we do.
        """
        read = self._snapshot.session_keys
        return (*read, *(key for key in self._announced if key not in read))

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call `callback` after every change of the snapshot."""
        self._callbacks.append(callback)

    def on_restart(self, callback: OnRestart) -> None:
        """Call with (connector, include_tasks, only_failed) at each restart request (KIP-745)."""
        self._restart_callbacks.append(callback)

    def refresh(self, seconds: float = WRITE_SECONDS) -> None:
        """Return when everything now in the topic has been read; TransportError on timeout."""
        self._running().refresh(seconds)

    # -- the leader's part -------------------------------------------------------------------------

    def claim(self) -> None:
        """Fence the previous writer, and read what it has written."""
        with self._claiming:
            term = self._term()
            self._claimed = None
            try:
                self._writer.claim(WRITE_SECONDS)
            except DeniedError as error:
                without = self._without(ResourceKind.TRANSACTIONAL_ID, WRITE)
                raise error.with_consequence(without) from error
            self._claimed = term
        self.refresh()

    def put_session_key(self, key: SessionKey) -> None:
        """Distribute a new session key to all workers (KIP-507)."""
        self._announced = (key,)
        self._write([session_key_record(key)])

    def is_still_claimed(self) -> bool:
        """Whether no other worker has claimed the topic since we did, as far as can be found out.

        Asked while it is uncertain whether we still lead, so this does not depend on `term`.
        """
        if not self._claiming.acquire(timeout=CHECK_SECONDS):
            return False
        try:
            is_ours = self._claimed is not None
            return is_ours and self._writer.is_unfenced(self._tp, CHECK_SECONDS)
        finally:
            self._claiming.release()

    def _write(self, rows: Sequence[KeyValue]) -> None:
        """Write, and return when the records have been read back."""
        with self._claiming:
            term = self._term()
            if term is not None and (term != self._claimed or self._writer.must_claim):
                self.claim()
            try:
                offset = self._writer.write(self._tp, _batch(rows), len(rows), WRITE_SECONDS)
            except DeniedError as error:
                without = self._without(ResourceKind.CONFIG, WRITE)
                raise error.with_consequence(without) from error
        end = offset + len(rows)
        self._running().wait_for(lambda: self._snapshot.end_offset >= end, WRITE_SECONDS)

    def _without(self, kind: ResourceKind, operation: Operation) -> str:
        return consequence_without(self._feature, kind, operation)

    def _running(self) -> KafkaBasedLog:
        if self._followed is None:
            raise LocalProtocolError(f"use '{self.topic}': the store was not started")
        return self._followed

    # -- on the thread that follows the topic ------------------------------------------------------

    def on_records(self, records: Sequence[Record], *, restarted: bool) -> None:
        """Apply new records."""
        if restarted:
            self._state = ConfigState()
        restarts = [self._state.apply(record.key, record.value) for record in records]
        if records:
            self._state.end_offset = records[-1].offset + 1
        if not self._started or restarted:
            self._state.forget_loggers()
        self._snapshot = self._state.snapshot()
        if self._started:
            self._notify([restart for restart in restarts if restart is not None and not restarted])

    def _notify(self, restarts: Sequence[RestartRequest]) -> None:
        for changed in self._callbacks:
            changed()
        for restart in restarts:
            for restarted in self._restart_callbacks:
                restarted(restart.connector, restart.include_tasks, restart.only_failed)


def _batch(rows: Sequence[KeyValue]) -> bytearray:
    """The records as one batch of a transaction; stamping it sets the CRC."""
    time_ms = now_ms()
    batch = encode([Record(at, time_ms, key, value) for at, (key, value) in enumerate(rows)])
    ATTRIBUTES.pack_into(batch, ATTRIBUTES_AT, TRANSACTIONAL)
    CRC.pack_into(batch, CRC_AT, 0)
    return batch
