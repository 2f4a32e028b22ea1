"""Produces whole batches to many partitions: in order, idempotently, several requests on their way.

Runs on: executor, on the event loop's thread.

    offer() -> queue -> [sent, in flight, at most five per partition] -> on_acked()

Invariant A: the batches of a partition are acknowledged in the order in which they were offered.
Invariant B: a batch keeps its sequence number when it is sent again, so the broker drops
duplicates.
Invariant C: while a partition recovers from an error nothing new of it is sent until every request
that carries its batches was answered; then the unanswered and refused ones go again, oldest first.
Invariant D: a broker that knows nothing of a producer takes any number as its first. So a batch
goes alone to a leader until that leader has acknowledged one: with more under way, the second
would overtake a first one that was refused. And nothing goes to a new leader before all answers
of the old one have come. A broker forgets producers (see sequences): a partition that has been
quiet starts with one batch, too.
Invariant E: all batches that one response fails are marked before the owner hears of any: it may
end the task there, and what is sent after that must not overtake them.
"""

from __future__ import annotations

from collections.abc import Iterable

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
    keep_apart,
)
from sparkmirror.wire.produce.sequences import FORGOTTEN, LOST, QUIET_SECONDS, Sequences, Stamp
from sparkmirror.wire.protocol import error_codes as codes
from sparkmirror.wire.protocol import produce_messages
from sparkmirror.wire.protocol.api_versions import PRODUCE

# KAFKA-5494: brokers keep the last five batches per producer and partition to detect duplicates.
MOST_IN_FLIGHT = 5
# Enough to keep a broker busy; a batch larger than this goes alone.
REQUEST_BYTES = 1 << 20
STORED = (0, codes.DUPLICATE_SEQUENCE_NUMBER)


class KafkaProducer:
    """Sends parcels to their partitions' leaders and reports each one's fate exactly once."""

    def __init__(
        self,
        cluster: NetworkClient,
        owner: ProducerListener,
        stamp: Stamp,
        *,
        acks: int,
        request_timeout_ms: int,
        max_in_flight: int = MOST_IN_FLIGHT,
        request_bytes: int = REQUEST_BYTES,
        lines: int = 1,
        join: Join = keep_apart,
    ) -> None:
        self._cluster = cluster
        self._owner = owner
        self._join = join
        self._acks = acks
        self._timeout_ms = request_timeout_ms
        self._request_bytes = request_bytes
        self._max_in_flight = max_in_flight
        # Without idempotence a refused batch could be overtaken by the next: one at a time then.
        idempotent = acks == -1
        self._most_sent = min(max_in_flight, MOST_IN_FLIGHT) if idempotent else 1
        self._partitions: dict[TopicPartition, ProducePartition] = {}
        self._lanes = BrokerQueues(cluster, lines, self._mark_stuck, self._pump_soon)
        timeout = request_timeout_ms / 1000
        self._sequences = Sequences(
            cluster, stamp, timeout, self.pump, self._on_denied, idempotent=idempotent
        )
        self._is_pump_due = False
        self.waiting_bytes = 0
        self.sent_bytes = 0  # of these, in requests without an answer
        self.stuck_bytes = 0
        self.retries = 0
        cluster.listeners.append(self)

    # -- what the owner asks ---------------------------------------------------------------------

    def offer(self, tp: TopicPartition, parcels: Iterable[ProducerBatch]) -> None:
        """Queue batches; they leave with the next `pump`."""
        partition = self._partitions.get(tp)
        if partition is None:
            partition = self._partitions[tp] = self._new_partition(tp)
        new = list(parcels)
        partition.queue += new
        self._count(partition, sum(len(parcel.view) for parcel in new))
        self._lanes.schedule(partition, self.waiting_bytes)

    def remove(self, *partitions: TopicPartition) -> None:
        """Forget partitions that have nothing under way, except their numbers."""
        known = [tp for tp in partitions if tp in self._partitions]
        for tp in known:
            pending, partition = self.pending(tp), self._partitions.pop(tp)
            assert pending == 0, f"{tp} is removed with {pending} batches under way"
            self._sequences.retire(partition)
        left = {tp.topic for tp in self._partitions}
        self._cluster.untrack({tp.topic for tp in known} - left)

    def pending(self, tp: TopicPartition) -> int:
        """Batches of `tp` that were offered and not yet acknowledged."""
        partition = self._partitions.get(tp)
        return len(partition.queue) + len(partition.sent) if partition else 0

    @property
    def wanted_bytes(self) -> int:
        """How many bytes should wait, so that a far target is busy; 0: it is not far."""
        return self._lanes.wanted_bytes

    @property
    def idle(self) -> bool:
        """True when everything offered was acknowledged."""
        return self.waiting_bytes == 0

    def pump(self) -> None:
        """Send every request that may leave."""
        self._is_pump_due = False
        for lane in self._lanes.with_work():
            self._pump(lane)

    def _pump_soon(self) -> None:
        """Once, after all that this turn of the loop brings: in a backlog several answers."""
        if not self._is_pump_due:
            self._is_pump_due = True
            self._cluster.loop.call_later(0.0, self.pump)

    # -- what the cluster tells ------------------------------------------------------------------

    def on_connected(self, node: int) -> None:
        """A connection is ready."""
        for lane in self._lanes.of_node(node):
            self._pump(lane)
        if self._partitions:
            self._sequences.ask()

    def on_metadata(self) -> None:
        """Leaders may have moved."""
        for partition in list(self._partitions.values()):
            self._lanes.schedule(partition, self.waiting_bytes)
        self.pump()

    def _new_partition(self, tp: TopicPartition) -> ProducePartition:
        self._cluster.track([tp.topic])
        return ProducePartition(tp, self._lanes.choose_line(), *self._sequences.take_retired(tp))

    # -- requests --------------------------------------------------------------------------------

    def _pump(self, lane: BrokerQueue) -> None:
        if not lane.ready:
            return
        if not self._sequences.is_ready:
            self._sequences.ask()
            return
        connection = self._cluster.connection(lane.node, lane.line)
        if connection is None:
            return
        self._lanes.note_pace(lane, connection)
        quiet_since = self._cluster.loop.clock() - QUIET_SECONDS
        # Made, and then written: what the kernel copies takes our data's place in the cache.
        while lane.ready and lane.in_flight < self._max_in_flight and not connection.closed:
            batches = self._collect(lane, quiet_since)
            if not batches:
                break
            self._send(lane, connection, batches)
        connection.flush()
        lane.hold_ready()

    def _collect(self, lane: BrokerQueue, quiet_since: float) -> InFlightBatches:
        """One batch of each ready partition, until the request is large enough."""
        batches: InFlightBatches = []
        size = 0
        for tp, partition in list(lane.ready.items()):
            if partition.in_flight:
                if partition.in_flight >= self._most_sent or not partition.known:
                    continue
            elif partition.acked_at < quiet_since:
                partition.known = False
            if lane.is_far and partition.held:
                self._count(partition, partition.join_first(self._join))
            parcel = partition.queue[0]
            if batches and size + len(parcel.view) > self._request_bytes:
                break
            size += len(parcel.view)
            partition.queue.popleft()
            self._sequences.number(partition, parcel)
            partition.sent.append(parcel)
            partition.in_flight += 1
            batches.append((partition, parcel))
            # To the end of the line, or out of it: every partition gets its turn.
            del lane.ready[tp]
            if partition.queue:
                lane.ready[tp] = partition
            else:
                partition.scheduled = partition.held = False
        return batches

    def _send(self, lane: BrokerQueue, connection: Connection, batches: InFlightBatches) -> None:
        rows = [(partition.tp, parcel.view) for partition, parcel in batches]
        self._count_request(lane, batches, 1)
        api = connection.choose(PRODUCE)
        connection.send(
            api,
            produce_messages.encode_produce(rows, self._acks, self._timeout_ms),
            lambda answer, _: self._on_answer(lane, batches, answer, api[1]),
            lambda error: self._on_failure(lane, batches, error),
            # The broker answers REQUEST_TIMED_OUT after its own wait; we hang up a little later.
            self._timeout_ms / 1000 + 2.0,
            more=True,
        )

    # -- answers ---------------------------------------------------------------------------------

    def _on_answer(
        self, lane: BrokerQueue, batches: InFlightBatches, answer: memoryview, version: int
    ) -> None:
        rows = produce_messages.decode_produce(answer, version)
        try:
            fates = [rows[partition.tp] for partition, _ in batches]
        except KeyError as error:
            raise RemoteProtocolError(f"a produce answer without {error.args[0]}") from error
        self._count_request(lane, batches, -1)
        failed: list[tuple[ProducePartition, ProducerBatch, BrokerError]] = []
        now = self._cluster.loop.clock()
        for (partition, parcel), (code, offset, detail) in zip(batches, fates, strict=True):
            partition.in_flight -= 1
            if code in STORED:
                parcel.done, parcel.offset = True, offset
                partition.acked_at = now
                self._settle(partition)
            else:
                failed.append((partition, parcel, self._lanes.error(partition, code, detail)))
        if failed:
            self._on_errors(failed)
        if lane.ready:
            self._pump_soon()

    def _on_failure(self, lane: BrokerQueue, batches: InFlightBatches, error: KafkaError) -> None:
        """The connection died: nobody knows whether these were stored. Same sequence again."""
        self._count_request(lane, batches, -1)
        for partition, _ in batches:
            partition.in_flight -= 1
            partition.failed = partition.failed or error
            self._settle(partition)

    def _settle(self, partition: ProducePartition) -> None:
        """Report what is acknowledged, in order; recover once nothing is under way."""
        sent = partition.sent
        while sent and sent[0].done:
            parcel = sent.popleft()
            self._count(partition, -len(parcel.view))
            partition.known = True
            if partition.failures or partition.stuck:
                partition.failures = 0
                self._mark_stuck(partition, None)
            self._owner.on_acked(partition.tp, parcel)
            parcel.release()
        if partition.failed is not None:
            self._lanes.withdraw(partition)
            if partition.in_flight == 0:
                self._recover(partition)
        elif partition.queue and not partition.scheduled:
            self._lanes.schedule(partition, self.waiting_bytes)

    def _on_errors(self, failed: list[tuple[ProducePartition, ProducerBatch, BrokerError]]) -> None:
        """First those that can be sent again, then those that the owner decides about (E)."""
        again: list[ProducePartition] = []
        refused: list[tuple[ProducePartition, ProducerBatch, BrokerError]] = []
        for row in failed:
            if self._mark_failed(*row):
                refused.append(row)
            else:
                again.append(row[0])
        for partition in again:
            self._settle(partition)
        for partition, parcel, error in refused:
            self._replace(partition, parcel, error)
            self._settle(partition)

    def _mark_failed(
        self, partition: ProducePartition, parcel: ProducerBatch, error: BrokerError
    ) -> bool:
        """Send nothing more of it; tells whether the owner has to decide about the batch."""
        row = codes.error_code(error.code)
        is_first = partition.failed is None and bool(partition.sent)
        is_oldest = is_first and partition.sent[0] is parcel
        if row.refresh:
            self._cluster.refresh(partition.tp.topic)
        partition.failed = partition.failed or error
        self._lanes.withdraw(partition)
        if error.code in LOST:
            # After an older batch failed this is its echo; alone it means the broker forgot us.
            if is_oldest:
                partition.renew = partition.renew or FORGOTTEN
            return False
        return is_oldest and not row.retriable

    def _replace(
        self, partition: ProducePartition, parcel: ProducerBatch, error: BrokerError
    ) -> None:
        """The owner splits or skips a refused batch, or keeps it as it is."""
        replacements = self._owner.on_refused(partition.tp, parcel, error)
        if replacements is None:
            return
        partition.sent.popleft()
        self._count(partition, -len(parcel.view))
        parcel.release()
        for replacement in reversed(replacements):
            partition.sent.appendleft(replacement)
            self._count(partition, len(replacement.view))
        self._sequences.free(partition, parcel, replacements)
        # This is progress: no reason to wait. And of a batch that is skipped no acknowledgement
        # comes that would say so.
        partition.failures = -1
        if partition.stuck:
            self._mark_stuck(partition, None)

    # -- recovery --------------------------------------------------------------------------------

    def _recover(self, partition: ProducePartition) -> None:
        """Everything unacknowledged goes back to the front of the queue, oldest first.

        A younger batch that was stored while an older one failed is sent again too: the broker
        answers with the place it already has (B), which keeps the acknowledgements in order (A).
        """
        error, partition.failed = partition.failed, None
        self.retries += 1
        for parcel in reversed(partition.sent):
            parcel.done, parcel.is_alone = False, True
            partition.queue.appendleft(parcel)
        partition.sent.clear()
        for parcel in partition.queue:
            parcel.detach()
        self._sequences.renumber(partition, self._lanes.what(partition))
        partition.known = False
        partition.failures += 1
        partition.resting = True
        if partition.failures > 1 or isinstance(error, TransportError):
            self._mark_stuck(partition, error)
        loop = self._cluster.loop
        wait = self._cluster.retries.requests.shared_wait(partition.failures, loop.clock())
        loop.call_later(wait, lambda: self._resume(partition))

    def _resume(self, partition: ProducePartition) -> None:
        partition.resting = False
        if self._partitions.get(partition.tp) is partition:
            self._lanes.schedule(partition, self.waiting_bytes)
            self._pump_soon()  # thousands may come back in the same moment

    def _on_denied(self, error: DeniedError) -> None:
        """No producer id for us: everything waits until somebody grants the right."""
        for partition in list(self._partitions.values()):
            if partition.queue:
                self._mark_stuck(partition, self._lanes.denial(partition, error))

    def note_silence(self) -> None:
        """Tell which partitions wait for a broker that sends nothing; called once a second.

        So they do not take the room of the others. And see how far the brokers are.
        """
        self._lanes.measure()
        for row in list(self._lanes.silent(self._partitions.values())):
            self._mark_stuck(*row)

    def _mark_stuck(self, partition: ProducePartition, error: KafkaError | None) -> None:
        stuck = error is not None
        if stuck != partition.stuck:
            partition.stuck = stuck
            self.stuck_bytes += partition.bytes if stuck else -partition.bytes
        if stuck:
            for parcel in partition.queue:
                parcel.detach()
        self._owner.on_stuck(partition.tp, error)

    def _count(self, partition: ProducePartition, size: int) -> None:
        partition.bytes += size
        self.waiting_bytes += size
        if partition.stuck:
            self.stuck_bytes += size

    def _count_request(self, lane: BrokerQueue, batches: InFlightBatches, requests: int) -> None:
        lane.in_flight += requests
        self.sent_bytes += requests * sum(len(parcel.view) for _, parcel in batches)
