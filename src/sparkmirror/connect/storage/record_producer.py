"""Writes small records to the internal topics of one cluster, from a thread of its own.

Runs on: worker. For heartbeats, checkpoints and statuses; the copy tasks have their own producers.

    send() -> inbox -> (wake) -> Producer -> on_done(None), or on_done(why it was rejected)

Invariant A: every batch that `send` took is reported exactly once, whatever happens to the thread.
Invariant B: a batch waits for its cluster without a limit, until `close` or the end of the lease.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sparkmirror.batches.records import Record, RecordHeaders, encode
from sparkmirror.config.clients import ProducerConfig
from sparkmirror.errors import (
    BrokerError,
    DeniedError,
    KafkaError,
    LeaseError,
    MirrorError,
    TransportError,
    describe_error,
)
from sparkmirror.logs.places import carried
from sparkmirror.spark.link.lease import Lender, for_ever, is_over
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.net.event_loop import READ, EventLoop
from sparkmirror.wire.produce.producer import KafkaProducer
from sparkmirror.wire.produce.record_accumulator import ProducerBatch, Replacement
from sparkmirror.wire.protocol.error_codes import error_code

log = logging.getLogger(__name__)

# Shorter waits are normal: a new topic has no leader for a moment, a broker restarts in seconds.
BLOCKED_SECONDS = 5.0
# How often to retry if the whole producer is rejected (no permission to write idempotently).
RESTART_SECONDS = 5.0
NO_LEASE = "the worker does not know that it is in its group: nothing is written"
# How soon the lease's end or renewal is noticed; `before_write` checks it before every write.
LEASE_SECONDS = 0.2
CLOSE_SECONDS = 5.0
MISSING = ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID")

OnDone = Callable[[KafkaError | None], None]
KeyValueTime = tuple[bytes | None, bytes | None, int]


@dataclass(slots=True, eq=False)
class _Batch:
    """The records of one `send`."""

    tp: TopicPartition
    data: bytearray
    count: int
    on_done: OnDone | None

    def report(self, error: KafkaError | None) -> None:
        if self.on_done is not None:
            self.on_done(error)


class RecordProducer:
    """One producer for several threads; every partition's records keep the order of the calls.

    `last_error`: why records cannot be stored; empty while they can.
    `missing`: topics that records wait for because the cluster does not know them.
    """

    def __init__(
        self,
        config: ProducerConfig,
        name: str,
        without: Mapping[str, str] | None = None,
        lease: Lender = for_ever,
    ) -> None:
        """`without`: by topic, the consequence of a missing permission to write.

        When `lease` is over, waiting records fail: another worker may have written newer ones.
        """
        self.last_error = ""
        self._without = without or {}
        self.missing: frozenset[str] = frozenset()
        self._config = config
        self._lease = lease
        self._name = name
        self._changed = threading.Condition()
        self._inbox: list[_Batch] = []
        # In the order of the calls.
        self._waiting: dict[_Batch, None] = {}
        self._ended: KafkaError | None = None
        self._closing = threading.Event()
        self._waker: socket.socket | None = None
        self._thread = threading.Thread(
            target=carried(self._run), name=f"writer {name}", daemon=True
        )

    def start(self) -> None:
        """Start the thread, which connects when there are records to write."""
        self._waker, woken = socket.socketpair()
        self._waker.setblocking(False)
        woken.setblocking(False)
        self._woken = woken
        self._thread.start()

    def send(
        self,
        topic: str,
        partition: int,
        records: Sequence[KeyValueTime],
        on_done: OnDone | None = None,
        headers: RecordHeaders = (),
    ) -> None:
        """Write records (key, value, timestamp in ms), each with these headers, as one batch.

        Returns at once. `on_done` is called on the writer's thread, with None when the records are
        stored, else with the reason why they never will be. It must neither block nor raise.

        Raises:
            KafkaError: the writer is closed, or died; `on_done` is not called.
            BatchError: there are no records.
        """
        rows = [
            Record(at, time_ms, key, value, headers)
            for at, (key, value, time_ms) in enumerate(records)
        ]
        batch = _Batch(TopicPartition(topic, partition), encode(rows), len(rows), on_done)
        with self._changed:
            if self._ended is not None:
                raise KafkaError(f"write to {batch.tp}: {self._ended}") from self._ended
            self._waiting[batch] = None
            self._inbox.append(batch)
            self._wake()

    @property
    def waiting(self) -> int:
        """The number of batches that are neither stored nor rejected."""
        return len(self._waiting)

    def flush(self, seconds: float) -> bool:
        """Wait until all batches sent before are stored or rejected; return whether they are.

        Must not be called on the writer's thread.
        """
        with self._changed:
            sent = list(self._waiting)
            settled = self._changed.wait_for(lambda: self._waiting.keys().isdisjoint(sent), seconds)
            return settled and self._ended is None

    def close(self) -> None:
        """End the thread; batches that still wait are reported as not written."""
        self._closing.set()
        with self._changed:
            self._wake()
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS)
        elif self._ended is None:
            self._end(self._closed())

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        why = self._closed()
        try:
            while not self._closing.is_set():
                if is_over(self._lease):
                    self._fail_all(LeaseError(NO_LEASE))
                    self._closing.wait(LEASE_SECONDS)
                    continue
                self._write()
                self._closing.wait(RESTART_SECONDS if self.last_error else 0.0)
        except Exception as error:  # every batch must be reported (invariant A)
            log.exception("[%s] the writer of internal topics died", self._name)
            why = KafkaError(f"the writer of {self._name} died: {type(error).__name__}: {error}")
        self._end(why)

    def _write(self) -> None:
        """Write until closed, or until the producer as a whole is rejected."""
        session = _Session(self, self._config, self._woken)
        session.loop.before_write = self._check_lease
        try:
            while not self._closing.is_set() and not is_over(self._lease):
                session.loop.run_once(1.0 if self._lease is for_ever else LEASE_SECONDS)
        except MirrorError as error:
            self.log_error(str(error))
            self._fail_all(error if isinstance(error, KafkaError) else KafkaError(str(error)))
        finally:
            session.close()

    # -- from the session --------------------------------------------------------------------------

    def take(self) -> list[_Batch]:
        """The batches added since the last call."""
        with self._changed:
            taken, self._inbox = self._inbox, []
        return taken

    def settle(self, batch: _Batch, error: KafkaError | None) -> None:
        """Report one batch; `flush` returns only after `on_done` has run."""
        try:
            batch.report(error)
        finally:
            with self._changed:
                del self._waiting[batch]
                self._changed.notify_all()

    def log_rejection(self, topic: str, error: KafkaError) -> None:
        """Log the cluster's error for a topic; after a denial, with its consequence."""
        without = self._without.get(topic, "trying again")
        self.log_error(describe_error(error, if_denied=without))

    def log_error(self, error: str) -> None:
        """Log why records are not stored, once until the error changes or records are stored."""
        if error != self.last_error and not self._closing.is_set():
            self.last_error = error
            log.warning("[%s] %s", self._name, error)

    def note_missing(self, topic: str, error: KafkaError | None) -> None:
        """Note whether records of `topic` wait because it is missing; None: they do not wait."""
        code = error.code if isinstance(error, BrokerError) else 0
        if error_code(code).name in MISSING:
            self.missing |= {topic}
        elif topic in self.missing:
            self.missing -= {topic}

    def _check_lease(self) -> None:
        if is_over(self._lease):
            raise LeaseError(NO_LEASE)

    # -- inside ------------------------------------------------------------------------------------

    def _fail_all(self, error: KafkaError) -> None:
        self.missing = frozenset()
        with self._changed:
            left = list(self._waiting)
            self._inbox.clear()
        for batch in left:
            self.settle(batch, error)

    def _end(self, error: KafkaError) -> None:
        with self._changed:
            self._ended = error
            if self._waker is not None:
                self._waker.close()
                self._woken.close()
                self._waker = None
        self._fail_all(error)

    def _wake(self) -> None:
        if self._waker is not None:
            with suppress(BlockingIOError):  # full: the thread is about to wake up anyway
                self._waker.send(b"\0")

    def _closed(self) -> KafkaError:
        return TransportError(f"the writer of {self._name} is closed")


class _Session:
    """The connections of a writer and their producer, on its thread."""

    def __init__(
        self, writer: RecordProducer, config: ProducerConfig, woken: socket.socket
    ) -> None:
        self._writer = writer
        self._woken = woken
        self._blocked_since: dict[TopicPartition, float] = {}
        self.loop = EventLoop()
        self._cluster = NetworkClient(self.loop, config.client, BufferPool(keep_bytes=0))
        self._producer = KafkaProducer(
            self._cluster,
            self,
            acks=config.acks,
            request_timeout_ms=config.request_timeout_ms,
            max_in_flight=config.max_in_flight,
        )
        self.loop.watch(self, READ)
        self._append()

    def close(self) -> None:
        """Close all connections."""
        self._cluster.close()
        self.loop.close()

    # -- from the loop -----------------------------------------------------------------------------

    def fileno(self) -> int:
        """The socket through which other threads wake this one."""
        return self._woken.fileno()

    def on_ready(self, events: int) -> None:
        """Another thread has called `send` or `close`."""
        self._woken.recv(4096)
        self._append()

    def _append(self) -> None:
        for batch in self._writer.take():
            made = ProducerBatch(batch.data, batch.count, None, batch, self)
            self._producer.append(batch.tp, [made])
        self._producer.send_ready()

    # -- from the producer -------------------------------------------------------------------------

    def on_stored(self, tp: TopicPartition, batch: ProducerBatch[_Batch]) -> None:
        """Report success to the sender."""
        self._writer.last_error = ""
        self._writer.settle(batch.payload, None)

    def on_rejected(
        self, tp: TopicPartition, batch: ProducerBatch[_Batch], error: BrokerError
    ) -> Replacement:
        """Report the error to the sender, and continue with the other batches."""
        self._writer.log_rejection(tp.topic, error)
        self._writer.settle(batch.payload, error)
        return []

    def on_blocked(self, tp: TopicPartition, error: KafkaError | None) -> None:
        """Log a denial at once, other errors only if the wait is long."""
        if error is None:
            self._blocked_since.pop(tp, None)
            self._writer.note_missing(tp.topic, None)
            return
        if isinstance(error, DeniedError):
            self._writer.log_rejection(tp.topic, error)
            return
        now = self.loop.clock()
        if now - self._blocked_since.setdefault(tp, now) >= BLOCKED_SECONDS:
            self._writer.note_missing(tp.topic, error)
            self._writer.log_error(f"{error}; trying again")
