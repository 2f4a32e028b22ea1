"""Produces whole batches to many partitions: in order, idempotently, several requests on their way.

Runs on: executor, on the event loop's thread.

    offer() -> queue -> [sent, in flight, at most five per partition] -> on_acked()

Invariant A: the batches of a partition are acknowledged in the order in which they were offered.
Invariant B: a batch keeps its sequence number when it is sent again, so brokers drop duplicates.
Invariant C: while a partition recovers from an error nothing new of it is sent until every request
that carries its batches was answered; then the unanswered and refused ones go again, oldest first.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from sparkmirror.errors import BrokerError, KafkaError, RefusedError
from sparkmirror.types import TopicPartition
from sparkmirror.wire import messages, produce_messages
from sparkmirror.wire.buffers import Lease
from sparkmirror.wire.cluster import Cluster
from sparkmirror.wire.connection import Connection
from sparkmirror.wire.error_codes import (
    DUPLICATE_SEQUENCE_NUMBER,
    INVALID_PRODUCER_EPOCH,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_PRODUCER_ID,
    broker_error,
    error_code,
)

log = logging.getLogger(__name__)

# A broker remembers the last five batches of a producer: more in flight could not be told apart.
MOST_IN_FLIGHT = 5
# Enough to keep a broker busy; a batch larger than this goes alone.
REQUEST_BYTES = 1 << 20
# Sequence numbers wrap around to 0 after this one.
LAST_SEQUENCE = (1 << 31) - 1
LOST_STATE = (OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID, INVALID_PRODUCER_EPOCH)

Batch = memoryview | bytearray
Stamp = Callable[[Batch, int, int, int], None]


class Parcel:
    """One batch on its way: its bytes, the buffer they lie in, what the owner needs at the ack."""

    __slots__ = ("attempts", "count", "done", "lease", "offset", "owner", "sequence", "view")

    def __init__(self, view: Batch, count: int, lease: Lease | None, owner: object) -> None:
        self.view = view
        self.count = count
        self.lease = lease
        self.owner = owner
        self.sequence = -1
        self.attempts = 0
        self.done = False
        self.offset = -1

    def detach(self) -> None:
        """Copy the bytes out of the receive buffer, so that waiting does not keep all of it."""
        if self.lease is not None:
            self.view = bytearray(self.view)
            self.lease.release()
            self.lease = None


class Owner(Protocol):
    """What the producer tells; every method runs on the loop's thread."""

    def on_acked(self, tp: TopicPartition, parcel: Parcel) -> None:
        """The batch is stored at `parcel.offset` (-1 when the broker no longer knows). In order."""

    def on_refused(self, tp: TopicPartition, parcel: Parcel, error: BrokerError) -> list[Parcel]:
        """The target will never take this batch: give others in its place or raise RefusedError."""

    def on_stuck(self, tp: TopicPartition, error: KafkaError | None) -> None:
        """The partition waits for its target (error), or goes on again (None)."""


@dataclass(slots=True)
class Partition:
    """One target partition."""

    tp: TopicPartition
    name_size: int
    node: int = -1
    queue: deque[Parcel] = field(default_factory=deque)
    sent: deque[Parcel] = field(default_factory=deque)
    producer_id: int = -1
    epoch: int = -1
    next_sequence: int = 0
    in_flight: int = 0
    failed: KafkaError | None = None
    renew: bool = False
    renumber_from: int | None = None
    failures: int = 0
    not_before: float = 0.0
    bytes: int = 0
    stuck: bool = False


@dataclass(slots=True)
class Lane:
    """The requests under way to one broker."""

    node: int
    ready: dict[TopicPartition, Partition] = field(default_factory=dict)
    in_flight: int = 0


class Producer:
    """Sends parcels to their partitions' leaders and reports each one's fate exactly once."""

    def __init__(
        self,
        cluster: Cluster,
        owner: Owner,
        stamp: Stamp,
        *,
        acks: int,
        request_timeout_ms: int,
        max_in_flight: int = MOST_IN_FLIGHT,
        request_bytes: int = REQUEST_BYTES,
    ) -> None:
        self._cluster = cluster
        self._owner = owner
        self._stamp = stamp
        self._acks = acks
        self._timeout_ms = request_timeout_ms
        self._request_bytes = request_bytes
        self._max_in_flight = max_in_flight
        # Without idempotence a refused batch could be overtaken by the next: one at a time then.
        self._idempotent = acks == -1
        self._most_sent = max_in_flight if self._idempotent else 1
        self._partitions: dict[TopicPartition, Partition] = {}
        self._lanes: dict[int, Lane] = {}
        self._identity: tuple[int, int] | None = None
        self._asking_identity = False
        self.waiting_bytes = 0
        self.stuck_bytes = 0
        self.retries = 0
        cluster.listeners.append(self)

    # -- what the owner asks ---------------------------------------------------------------------

    def offer(self, tp: TopicPartition, parcels: Iterable[Parcel]) -> None:
        """Queue batches; they leave with the next `pump`."""
        partition = self._partitions.get(tp)
        if partition is None:
            partition = self._partitions[tp] = Partition(tp, len(tp.topic.encode()))
            self._cluster.track([tp.topic])
        for parcel in parcels:
            partition.queue.append(parcel)
            self._count(partition, len(parcel.view))
        self._schedule(partition)

    def remove(self, tp: TopicPartition) -> None:
        """Forget a partition that has nothing under way."""
        partition = self._partitions.pop(tp, None)
        assert partition is None or not (partition.queue or partition.sent)

    def pending(self, tp: TopicPartition) -> int:
        """Batches of `tp` that were offered and not yet acknowledged."""
        partition = self._partitions.get(tp)
        return len(partition.queue) + len(partition.sent) if partition else 0

    @property
    def idle(self) -> bool:
        """True when everything offered was acknowledged."""
        return self.waiting_bytes == 0

    def pump(self) -> None:
        """Send every request that may leave."""
        for lane in list(self._lanes.values()):
            if lane.ready:
                self._pump(lane)

    # -- what the cluster tells ------------------------------------------------------------------

    def on_connected(self, node: int) -> None:
        """A connection is ready."""
        lane = self._lanes.get(node)
        if lane is not None:
            self._pump(lane)
        if self._asking_identity is False and self._identity is None and self._partitions:
            self._ask_identity()

    def on_metadata(self) -> None:
        """Leaders may have moved."""
        for partition in list(self._partitions.values()):
            self._schedule(partition)
        self.pump()

    # -- which broker ----------------------------------------------------------------------------

    def _schedule(self, partition: Partition) -> None:
        """Put a partition with work into the lane of its leader."""
        if not partition.queue or partition.failed is not None:
            return
        if self._cluster.loop.clock() < partition.not_before:
            return
        leader = self._cluster.leaders.get(partition.tp)
        if leader is None:
            self._wait_for_leader(partition)
            return
        if partition.node != leader.node:
            if partition.node in self._lanes:
                self._lanes[partition.node].ready.pop(partition.tp, None)
            partition.node = leader.node
            self._lanes.setdefault(leader.node, Lane(leader.node))
        self._lanes[leader.node].ready[partition.tp] = partition

    def _wait_for_leader(self, partition: Partition) -> None:
        """Metadata tells sooner or later; when the cluster said why there is none, so do we."""
        what = f"produce to {partition.tp} on '{self._cluster.config.alias}'"
        code = self._cluster.topic_errors.get(partition.tp.topic)
        if code is not None:
            self._mark_stuck(partition, broker_error(what, code))
        elif self._cluster.last_error is not None:
            self._mark_stuck(partition, self._cluster.last_error)
        self._cluster.refresh()

    # -- requests --------------------------------------------------------------------------------

    def _pump(self, lane: Lane) -> None:
        if not lane.ready:
            return
        if self._idempotent and self._identity is None:
            self._ask_identity()
            return
        connection = self._cluster.connection(lane.node)
        if connection is None:
            return
        while lane.ready and lane.in_flight < self._max_in_flight:
            batches = self._collect(lane)
            if not batches:
                return
            self._send(lane, connection, batches)
            if connection.closed:
                return

    def _collect(self, lane: Lane) -> list[tuple[Partition, Parcel]]:
        """One batch of each ready partition, until the request is large enough."""
        batches: list[tuple[Partition, Parcel]] = []
        size = 0
        for tp, partition in list(lane.ready.items()):
            if partition.in_flight >= self._most_sent:
                continue
            parcel = partition.queue[0]
            if batches and size + len(parcel.view) > self._request_bytes:
                break
            size += len(parcel.view)
            partition.queue.popleft()
            self._prepare(partition, parcel)
            partition.sent.append(parcel)
            partition.in_flight += 1
            batches.append((partition, parcel))
            # To the end of the line, or out of it: every partition gets its turn.
            del lane.ready[tp]
            if partition.queue:
                lane.ready[tp] = partition
        return batches

    def _prepare(self, partition: Partition, parcel: Parcel) -> None:
        parcel.attempts += 1
        if parcel.sequence >= 0:
            return  # sent before: same bytes again
        if not self._idempotent:
            self._stamp(parcel.view, -1, -1, -1)
            return
        if partition.producer_id < 0:
            assert self._identity is not None
            partition.producer_id, partition.epoch = self._identity
        parcel.sequence = partition.next_sequence
        self._stamp(parcel.view, partition.producer_id, partition.epoch, parcel.sequence)
        after = partition.next_sequence + parcel.count
        partition.next_sequence = after if after <= LAST_SEQUENCE else after - LAST_SEQUENCE - 1

    def _send(
        self, lane: Lane, connection: Connection, batches: list[tuple[Partition, Parcel]]
    ) -> None:
        lane.in_flight += 1
        rows = [(partition.tp, parcel.view) for partition, parcel in batches]
        connection.send(
            produce_messages.PRODUCE,
            produce_messages.encode_produce(rows, self._acks, self._timeout_ms),
            lambda answer, _: self._on_answer(lane, batches, answer),
            lambda error: self._on_failure(lane, batches, error),
            # The broker answers REQUEST_TIMED_OUT after its own wait; we hang up a little later.
            self._timeout_ms / 1000 + 2.0,
        )

    # -- answers ---------------------------------------------------------------------------------

    def _on_answer(
        self, lane: Lane, batches: list[tuple[Partition, Parcel]], answer: memoryview
    ) -> None:
        lane.in_flight -= 1
        if len(batches) == 1 and self._is_stored(*batches[0], answer):
            self._pump(lane)
            return
        rows = produce_messages.decode_produce(answer)
        for partition, parcel in batches:
            row = rows[partition.tp]
            partition.in_flight -= 1
            if row.code in (0, DUPLICATE_SEQUENCE_NUMBER):
                parcel.done = True
                parcel.offset = row.base_offset
                self._settle(partition)
            else:
                what = f"produce to {partition.tp} on '{self._cluster.config.alias}'"
                self._on_error(partition, parcel, broker_error(what, row.code, row.detail))
        self._pump(lane)

    def _is_stored(self, partition: Partition, parcel: Parcel, answer: memoryview) -> bool:
        """Take the usual answer to a request with one batch; False: look closer."""
        offset = produce_messages.decode_single(answer, partition.tp, partition.name_size)
        if offset is None:
            return False
        partition.in_flight -= 1
        parcel.done = True
        parcel.offset = offset
        self._settle(partition)
        return True

    def _on_failure(
        self, lane: Lane, batches: list[tuple[Partition, Parcel]], error: KafkaError
    ) -> None:
        """The connection died: nobody knows whether these were stored. Same sequence again."""
        lane.in_flight -= 1
        for partition, _ in batches:
            partition.in_flight -= 1
            partition.failed = partition.failed or error
            self._settle(partition)

    def _settle(self, partition: Partition) -> None:
        """Report what is acknowledged, in order; recover once nothing is under way."""
        sent = partition.sent
        while sent and sent[0].done:
            parcel = sent.popleft()
            self._count(partition, -len(parcel.view))
            if partition.failures or partition.stuck:
                partition.failures = 0
                self._mark_stuck(partition, None)
            self._owner.on_acked(partition.tp, parcel)
            if parcel.lease is not None:
                parcel.lease.release()
        if partition.failed is not None and partition.in_flight == 0:
            self._recover(partition)
        elif partition.queue and partition.failed is None:
            self._schedule(partition)

    def _on_error(self, partition: Partition, parcel: Parcel, error: BrokerError) -> None:
        row = error_code(error.code)
        is_oldest = bool(partition.sent) and partition.sent[0] is parcel
        if row.refresh:
            self._cluster.refresh()
        if error.code in LOST_STATE:
            # After an older batch failed this is its echo; alone it means the broker forgot us.
            partition.renew = partition.renew or (is_oldest and partition.failed is None)
        elif not row.retriable and is_oldest and partition.failed is None:
            self._replace(partition, parcel, error)
            return
        partition.failed = partition.failed or error
        self._settle(partition)

    def _replace(self, partition: Partition, parcel: Parcel, error: BrokerError) -> None:
        """The owner splits or skips a refused batch.

        Its sequence number is free again: the broker cannot have taken any later one, because that
        would have left a gap. So those after it are numbered anew from there.
        """
        replacements = self._owner.on_refused(partition.tp, parcel, error)
        partition.sent.popleft()
        self._count(partition, -len(parcel.view))
        if parcel.lease is not None:
            parcel.lease.release()
        for replacement in reversed(replacements):
            partition.sent.appendleft(replacement)
            self._count(partition, len(replacement.view))
        partition.failed = partition.failed or error
        partition.renumber_from = max(parcel.sequence, 0)
        partition.failures -= 1  # this is progress, not a reason to wait
        self._settle(partition)

    # -- recovery --------------------------------------------------------------------------------

    def _recover(self, partition: Partition) -> None:
        """Everything unacknowledged goes back to the front of the queue, oldest first.

        A younger batch that was stored while an older one failed is sent again too: the broker
        answers with the place it already has (B), which keeps the acknowledgements in order (A).
        """
        error, partition.failed = partition.failed, None
        self.retries += 1
        for parcel in reversed(partition.sent):
            parcel.done = False
            partition.queue.appendleft(parcel)
        partition.sent.clear()
        for parcel in partition.queue:
            parcel.detach()
        self._renumber(partition)
        partition.failures += 1
        wait = self._backoff(partition.failures)
        partition.not_before = self._cluster.loop.clock() + wait
        if partition.failures > 1:
            self._mark_stuck(partition, error)
        self._cluster.loop.call_later(wait, lambda: self._resume(partition))

    def _renumber(self, partition: Partition) -> None:
        """Give new sequence numbers: after a refusal, or with a producer id never seen before."""
        if partition.renew:
            partition.renew = False
            partition.producer_id = -1
            partition.renumber_from = 0
            log.warning(
                "%s on '%s': the broker lost track of our sequence numbers; going on with a new "
                "producer id (batches without an answer may be there twice)",
                partition.tp,
                self._cluster.config.alias,
            )
            self._identity = None
            self._ask_identity()
        if partition.renumber_from is not None:
            partition.next_sequence = partition.renumber_from
            partition.renumber_from = None
            for parcel in partition.queue:
                parcel.sequence = -1

    def _resume(self, partition: Partition) -> None:
        if self._partitions.get(partition.tp) is partition:
            partition.not_before = 0.0
            self._schedule(partition)
            self.pump()

    def _backoff(self, failures: int) -> float:
        base = self._cluster.config.retry_backoff_ms / 1000
        return float(min(base * 2 ** min(max(failures - 1, 0), 10), 1.0)) if failures > 0 else 0.0

    def _mark_stuck(self, partition: Partition, error: KafkaError | None) -> None:
        stuck = error is not None
        if stuck != partition.stuck:
            partition.stuck = stuck
            self.stuck_bytes += partition.bytes if stuck else -partition.bytes
        if stuck:
            for parcel in partition.queue:
                parcel.detach()
        self._owner.on_stuck(partition.tp, error)

    def _count(self, partition: Partition, size: int) -> None:
        partition.bytes += size
        self.waiting_bytes += size
        if partition.stuck:
            self.stuck_bytes += size

    # -- producer id -----------------------------------------------------------------------------

    def _ask_identity(self) -> None:
        if self._asking_identity or self._identity is not None or not self._idempotent:
            return
        connection = self._cluster.any_connection()
        if connection is None:
            return
        self._asking_identity = True
        connection.send(
            messages.INIT_PRODUCER_ID,
            [messages.encode_init_producer_id()],
            lambda answer, _: self._on_identity(answer),
            lambda _: self._identity_failed(),
            self._timeout_ms / 1000,
        )

    def _on_identity(self, answer: memoryview) -> None:
        code, producer_id, epoch = messages.decode_init_producer_id(answer)
        if code and not error_code(code).retriable:
            what = f"ask '{self._cluster.config.alias}' for a producer id"
            raise RefusedError(str(broker_error(what, code)))
        if code:
            self._identity_failed()
            return
        self._asking_identity = False
        self._identity = (producer_id, epoch)
        self.pump()

    def _identity_failed(self) -> None:
        self._asking_identity = False
        wait = self._cluster.config.retry_backoff_ms / 1000
        self._cluster.loop.call_later(wait, self._ask_identity)
