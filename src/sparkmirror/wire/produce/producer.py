"""Produces whole batches to many partitions: in order, idempotently, several requests in flight.

Runs on: executor, on the event loop's thread.

    append() -> queue -> [sent, in flight, at most five per partition] -> on_stored()

Invariant A: the batches of a partition are acknowledged in the order in which they were appended.
Invariant B: a batch keeps its sequence number when it is sent again, so the broker drops
duplicates (KIP-98).
Invariant C: while a partition recovers from an error nothing new of it is sent until every request
that carries its batches has ended; then the failed and unacknowledged ones go again, oldest first.
Invariant D: a broker that knows nothing of a producer accepts any number as its first. So a batch
goes alone to a leader until that leader has acknowledged one: with more in flight, the second
would overtake a first one that was rejected. And nothing goes to a new leader before all responses
of the old one have come. A broker forgets producers (see sequences): a partition that has been
quiet starts with one batch, too.
Invariant E: all batches that one response fails are marked before any completion is called: it may
end the task there, and what is sent after that must not overtake them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sparkmirror.errors import (
    BrokerError,
    DeniedError,
    KafkaError,
    RemoteProtocolError,
    TransportError,
)
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.produce.broker_queues import BrokerQueue, BrokerQueues
from sparkmirror.wire.produce.record_accumulator import (
    InFlightBatches,
    Join,
    ProducePartition,
    ProducerBatch,
    ProducerListener,
    RecordAccumulator,
    keep_apart,
)
from sparkmirror.wire.produce.sequences import FORGOTTEN, LOST, QUIET_SECONDS, Sequences
from sparkmirror.wire.protocol import error_codes as codes
from sparkmirror.wire.protocol import produce_messages
from sparkmirror.wire.protocol.api_versions import PRODUCE

# KAFKA-5494: brokers keep the last five batches per producer and partition to detect duplicates.
MOST_IN_FLIGHT = 5
# Enough to keep a broker busy; a batch larger than this goes alone.
REQUEST_BYTES = 1 << 20
STORED = (0, codes.DUPLICATE_SEQUENCE_NUMBER)


class KafkaProducer:
    """Sends batches to their partitions' leaders and reports each one's fate exactly once."""

    def __init__(
        self,
        cluster: NetworkClient,
        listener: ProducerListener,
        *,
        acks: int,
        request_timeout_ms: int,
        max_in_flight: int = MOST_IN_FLIGHT,
        request_bytes: int = REQUEST_BYTES,
        connections: int = 1,
        join: Join = keep_apart,
    ) -> None:
        self._cluster = cluster
        self._join = join
        self._acks = acks
        self._timeout_ms = request_timeout_ms
        self._request_bytes = request_bytes
        self._max_in_flight = max_in_flight
        # Without idempotence a rejected batch could be overtaken by the next: one at a time then.
        idempotent = acks == -1
        self._most_sent = min(max_in_flight, MOST_IN_FLIGHT) if idempotent else 1
        self.accumulator = RecordAccumulator(listener)
        self._queues = BrokerQueues(
            cluster, connections, self.accumulator.mark_blocked, self._send_soon
        )
        timeout = request_timeout_ms / 1000
        self._sequences = Sequences(
            cluster, timeout, self.send_ready, self._on_denied, idempotent=idempotent
        )
        self._is_send_due = False
        self.retries = 0
        cluster.listeners.append(self)

    # -- from owners -----------------------------------------------------------------------------

    def append(self, tp: TopicPartition, batches: Iterable[ProducerBatch[Any]]) -> None:
        """Queue batches; they leave with the next `send_ready`."""
        partition = self.accumulator.partitions.get(tp)
        if partition is None:
            partition = self.accumulator.partitions[tp] = self._new_partition(tp)
        new = list(batches)
        partition.queue += new
        self.accumulator.count(partition, sum(len(batch.view) for batch in new))
        self._queues.schedule(partition, self.accumulator.waiting_bytes)

    def remove(self, *partitions: TopicPartition) -> None:
        """Forget partitions that have nothing in flight, except their numbers."""
        known = [tp for tp in partitions if tp in self.accumulator.partitions]
        for tp in known:
            pending, partition = self.accumulator.pending(tp), self.accumulator.partitions.pop(tp)
            assert pending == 0, f"{tp} is removed with {pending} batches in flight"
            self._sequences.retire(partition)
        left = {tp.topic for tp in self.accumulator.partitions}
        self._cluster.metadata.untrack({tp.topic for tp in known} - left)

    @property
    def wanted_bytes(self) -> int:
        """How many bytes should wait, so that a far target is busy; 0: it is not far."""
        return self._queues.wanted_bytes

    @property
    def idle(self) -> bool:
        """True when everything appended was acknowledged."""
        return self.accumulator.waiting_bytes == 0

    def send_ready(self) -> None:
        """Send every request that may leave."""
        self._is_send_due = False
        for queue in self._queues.with_work():
            self._send_to(queue)

    def _send_soon(self) -> None:
        """Once, after all that this turn of the loop brings: in a backlog several responses."""
        if not self._is_send_due:
            self._is_send_due = True
            self._cluster.loop.call_later(0.0, self.send_ready)

    # -- from the cluster ------------------------------------------------------------------------

    def on_connected(self, node: int) -> None:
        """A connection is ready."""
        for queue in self._queues.of_node(node):
            self._send_to(queue)
        if self.accumulator.partitions:
            self._sequences.ask()

    def on_metadata(self) -> None:
        """Leaders may have moved."""
        for partition in list(self.accumulator.partitions.values()):
            self._queues.schedule(partition, self.accumulator.waiting_bytes)
        self.send_ready()

    def _new_partition(self, tp: TopicPartition) -> ProducePartition:
        self._cluster.metadata.track([tp.topic])
        return ProducePartition(tp, self._queues.next_home(), *self._sequences.take_retired(tp))

    # -- requests --------------------------------------------------------------------------------

    def _send_to(self, queue: BrokerQueue) -> None:
        if not queue.ready:
            return
        if not self._sequences.is_ready:
            self._sequences.ask()
            return
        connection = self._cluster.connection(queue.node, queue.connection_index)
        if connection is None:
            return
        self._queues.note_pace(queue, connection)
        quiet_since = self._cluster.loop.clock() - QUIET_SECONDS
        # Made, and then written: what the kernel copies takes our data's place in the cache.
        while queue.ready and queue.in_flight < self._max_in_flight and not connection.closed:
            batches = self._collect(queue, quiet_since)
            if not batches:
                break
            self._send(queue, connection, batches)
        connection.flush()
        queue.hold_ready()

    def _collect(self, queue: BrokerQueue, quiet_since: float) -> InFlightBatches:
        """One batch of each ready partition, until the request is large enough."""
        batches: InFlightBatches = []
        size = 0
        for tp, partition in list(queue.ready.items()):
            if partition.in_flight:
                if partition.in_flight >= self._most_sent or not partition.known:
                    continue
            elif partition.acked_at < quiet_since:
                partition.known = False
            if queue.is_far and partition.held:
                self.accumulator.count(partition, partition.join_first(self._join))
            batch = partition.queue[0]
            if batches and size + len(batch.view) > self._request_bytes:
                break
            size += len(batch.view)
            partition.queue.popleft()
            self._sequences.number(partition, batch)
            partition.sent.append(batch)
            partition.in_flight += 1
            batches.append((partition, batch))
            # To the end of the queue, or out of it: every partition gets its turn.
            del queue.ready[tp]
            if partition.queue:
                queue.ready[tp] = partition
            else:
                partition.scheduled = partition.held = False
        return batches

    def _send(self, queue: BrokerQueue, connection: Connection, batches: InFlightBatches) -> None:
        rows = [(partition.tp, batch.view) for partition, batch in batches]
        self._count_request(queue, batches, 1)
        api = connection.choose(PRODUCE)
        connection.send(
            api,
            produce_messages.encode_produce(rows, self._acks, self._timeout_ms),
            lambda response, _: self._on_response(queue, batches, response, api[1]),
            lambda error: self._on_failure(queue, batches, error),
            # The broker returns REQUEST_TIMED_OUT after its own wait; we hang up a little later.
            self._timeout_ms / 1000 + 2.0,
            more=True,
        )

    # -- responses -------------------------------------------------------------------------------

    def _on_response(
        self, queue: BrokerQueue, batches: InFlightBatches, response: memoryview, version: int
    ) -> None:
        rows = produce_messages.decode_produce(response, version)
        try:
            fates = [rows[partition.tp] for partition, _ in batches]
        except KeyError as error:
            raise RemoteProtocolError(f"a produce response without {error.args[0]}") from error
        self._count_request(queue, batches, -1)
        failed: list[tuple[ProducePartition, ProducerBatch[Any], BrokerError]] = []
        now = self._cluster.loop.clock()
        for (partition, batch), (code, offset, detail) in zip(batches, fates, strict=True):
            partition.in_flight -= 1
            if code in STORED:
                batch.done, batch.offset = True, offset
                partition.acked_at = now
                self._settle(partition)
            else:
                failed.append((partition, batch, self._queues.error(partition, code, detail)))
        if failed:
            self._on_errors(failed)
        if queue.ready:
            self._send_soon()

    def _on_failure(self, queue: BrokerQueue, batches: InFlightBatches, error: KafkaError) -> None:
        """The connection died: these may have been stored. Send the same sequences again."""
        self._count_request(queue, batches, -1)
        for partition, _ in batches:
            partition.in_flight -= 1
            partition.failed = partition.failed or error
            self._settle(partition)

    def _settle(self, partition: ProducePartition) -> None:
        """Report what is acknowledged, in order; recover once nothing is in flight."""
        sent = partition.sent
        while sent and sent[0].done:
            batch = sent.popleft()
            self.accumulator.count(partition, -len(batch.view))
            partition.known = True
            if partition.failures or partition.blocked:
                partition.failures = 0
                self.accumulator.mark_blocked(partition, None)
            batch.completion.on_stored(partition.tp, batch)
            batch.release()
        if partition.failed is not None:
            self._queues.withdraw(partition)
            if partition.in_flight == 0:
                self._recover(partition)
        elif partition.queue and not partition.scheduled:
            self._queues.schedule(partition, self.accumulator.waiting_bytes)

    def _on_errors(
        self, failed: list[tuple[ProducePartition, ProducerBatch[Any], BrokerError]]
    ) -> None:
        """First those that can be sent again, then those whose completion decides (E)."""
        again: list[ProducePartition] = []
        rejected: list[tuple[ProducePartition, ProducerBatch[Any], BrokerError]] = []
        for row in failed:
            if self._mark_failed(*row):
                rejected.append(row)
            else:
                again.append(row[0])
        for partition in again:
            self._settle(partition)
        for partition, batch, error in rejected:
            self._replace(partition, batch, error)
            self._settle(partition)

    def _mark_failed(
        self, partition: ProducePartition, batch: ProducerBatch[Any], error: BrokerError
    ) -> bool:
        """Send nothing more of it; return whether its completion has to decide."""
        row = codes.error_code(error.code)
        is_first = partition.failed is None and bool(partition.sent)
        is_oldest = is_first and partition.sent[0] is batch
        if row.refresh:
            self._cluster.metadata.refresh(partition.tp.topic)
        partition.failed = partition.failed or error
        self._queues.withdraw(partition)
        if error.code in LOST:
            # After an older batch failed this is its echo; alone it means the broker forgot us.
            if is_oldest:
                partition.renew = partition.renew or FORGOTTEN
            return False
        return is_oldest and not row.retriable

    def _replace(
        self, partition: ProducePartition, batch: ProducerBatch[Any], error: BrokerError
    ) -> None:
        """The completion splits or skips a rejected batch, or keeps it as it is."""
        replacements = batch.completion.on_rejected(partition.tp, batch, error)
        if replacements is None:
            return
        partition.sent.popleft()
        self.accumulator.count(partition, -len(batch.view))
        batch.release()
        for replacement in reversed(replacements):
            partition.sent.appendleft(replacement)
            self.accumulator.count(partition, len(replacement.view))
        self._sequences.free(partition, batch, replacements)
        # This is progress: no reason to wait. And a skipped batch gets no acknowledgement that
        # would show it.
        partition.failures = -1
        if partition.blocked:
            self.accumulator.mark_blocked(partition, None)

    # -- recovery --------------------------------------------------------------------------------

    def _recover(self, partition: ProducePartition) -> None:
        """Everything unacknowledged goes back to the front of the queue, oldest first.

        A younger batch that was stored while an older one failed is sent again too: the broker
        returns the offset it already has (B), which keeps the acknowledgements in order (A).
        """
        error, partition.failed = partition.failed, None
        self.retries += 1
        for batch in reversed(partition.sent):
            batch.done, batch.is_alone = False, True
            partition.queue.appendleft(batch)
        partition.sent.clear()
        for batch in partition.queue:
            batch.detach()
        self._sequences.renumber(partition, self._queues.what(partition))
        partition.known = False
        partition.failures += 1
        partition.resting = True
        if partition.failures > 1 or isinstance(error, TransportError):
            self.accumulator.mark_blocked(partition, error)
        loop = self._cluster.loop
        wait = self._cluster.retries.requests.shared_wait(partition.failures, loop.clock())
        loop.call_later(wait, lambda: self._resume(partition))

    def _resume(self, partition: ProducePartition) -> None:
        partition.resting = False
        if self.accumulator.partitions.get(partition.tp) is partition:
            self._queues.schedule(partition, self.accumulator.waiting_bytes)
            self._send_soon()  # thousands may be due at the same moment

    def _on_denied(self, error: DeniedError) -> None:
        """No producer id for us: everything waits until the permission is granted."""
        for partition in list(self.accumulator.partitions.values()):
            if partition.queue:
                self.accumulator.mark_blocked(partition, self._queues.denial(partition, error))

    def note_silence(self) -> None:
        """Report partitions that wait for a silent broker; called once a second.

        So they do not take the room of the others. Also measure how far the brokers are.
        """
        self._queues.measure()
        for row in list(self._queues.silent(self.accumulator.partitions.values())):
            self.accumulator.mark_blocked(*row)

    def _count_request(self, queue: BrokerQueue, batches: InFlightBatches, requests: int) -> None:
        queue.in_flight += requests
        self.accumulator.sent_bytes += requests * sum(len(batch.view) for _, batch in batches)
