"""Reads backlogs over long lines: many requests in flight, over several connections to a broker.

Runs on: executor and worker, on the event loop's thread.

The fetcher's session asks for what comes next when it knows what has come: once per round trip. A
partition whose response does not reach the end of the log leaves the session and is read ahead
(`read_ahead`) until it has caught up. Responses come in any order and are handed on in the order of
their offsets. Whatever goes wrong (an error of the broker, a lost connection, a response that makes
no sense) takes the partition back into the session at the offset behind what was handed on: only
there is it decided what an error means. All requests name the leader epoch in which the position
was confirmed, so that all responses are of one log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sparkmirror.errors import KafkaError, TransportError
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.fetch.ahead_broker import AheadBroker
from sparkmirror.wire.fetch.fetch_session import Ahead, FetchListener, FetchPartition, Records
from sparkmirror.wire.fetch.read_ahead import (
    HEAD_BYTES,
    AheadRequest,
    ReadAhead,
    Response,
    ResponseContent,
    measure,
    new_part,
)
from sparkmirror.wire.fetch.silence import SILENT_SECONDS
from sparkmirror.wire.net.buffer_pool import PooledBuffer
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.net.line_estimate import LineEstimate
from sparkmirror.wire.protocol import fetch_messages as fetch
from sparkmirror.wire.protocol.api_versions import FETCH

# What may be in flight before the line is known, and the most that one request asks for. A buffer's
# size is a power of two: what a response has besides its records (HEAD_BYTES) must fit too.
LEAST_WINDOW_BYTES = 4 << 20
SMALLEST_ASK_BYTES, LARGEST_ASK_BYTES = 512 << 10, 2 << 20
ASKS_PER_WINDOW = 32
# All receive buffers in use, and what is asked for: with the interpreter this keeps a task below
# 300 MB. A line of 400 ms carries 360 MB/s with it.
MOST_BYTES = 144 << 20
# Less than this is left to the session.
LEAST_BACKLOG_BYTES = 128 << 10
# After a lost or silent connection only the session reads for a while: a slow disk looks the same.
ALONE_SECONDS = 5.0


class Flight(NamedTuple):
    """A request in flight."""

    broker: AheadBroker
    ahead: Ahead
    ask: AheadRequest
    connection_index: int
    connection: Connection
    version: int
    sent_at: float


class AheadReader:
    """Reads ahead for one fetcher."""

    def __init__(
        self,
        cluster: NetworkClient,
        limits: fetch.Limits,
        consumer: FetchListener,
        timeout: float,
        *,
        on_end: Callable[[FetchPartition], None],
        is_stopped: Callable[[], bool],
    ) -> None:
        """`on_end` gets each partition that has to return to the session."""
        self._cluster = cluster
        self._limits = limits._replace(max_wait_ms=0)
        self._poll_seconds = limits.max_wait_ms / 1000
        self._consumer = consumer
        self._timeout = timeout
        self._on_end = on_end
        self._brokers: dict[int, AheadBroker] = {}
        self._is_stopped = is_stopped
        self._asked_bytes = 0

    # -- what the fetcher asks -------------------------------------------------------------------

    def look(self, partition: FetchPartition, row: fetch.Fetched) -> ResponseContent | None:
        """Look at a response of the session, before its bytes change; None: read nothing ahead."""
        if partition.leader_epoch < 0 or len(row.records) < LEAST_BACKLOG_BYTES:
            return None
        return measure(row.records) if self._now() >= partition.alone_until else None

    def is_worth(self, partition: FetchPartition, seen: ResponseContent | None) -> bool:
        """Whether much of the log is left behind a response."""
        if seen is None or partition.next_offset is None or partition.end_offset is None:
            return False
        per_offset = seen.size / (seen.end_offset - seen.first_offset)
        return (partition.end_offset - partition.next_offset) * per_offset > LEAST_BACKLOG_BYTES

    def begin(self, partition: FetchPartition, node: int, seen: ResponseContent) -> None:
        """Read a partition ahead, which is in no session any more."""
        assert partition.next_offset is not None
        broker = self._brokers.get(node) or self._new_broker(node)
        reads = ReadAhead(partition.next_offset, seen)
        broker.is_short = False
        ahead = partition.ahead = Ahead(partition, node, partition.leader_epoch, reads)
        broker.turn.append(ahead)
        self._ask(broker)

    def _new_broker(self, node: int) -> AheadBroker:
        session = self._cluster.connection(node)
        round_trip = 0.0 if session is None else session.fastest_seconds
        broker = self._brokers[node] = AheadBroker(node, LineEstimate(round_trip))
        return broker

    def drop(self, partition: FetchPartition) -> None:
        """Stop reading it ahead, and discard what has come."""
        ahead, partition.ahead = partition.ahead, None
        assert ahead is not None
        ahead.is_over = True
        broker = self._brokers[ahead.node]
        broker.turn.remove(ahead)
        for response in ahead.reads.drop():
            response.buffer.release()
        if broker.turn:  # there may be room for others now
            self._cluster.loop.call_later(0.0, lambda: self._ask(broker))

    def send_ready(self) -> None:
        """Hand on what has come, and send what may leave."""
        for broker in self._brokers.values():
            for ahead in list(broker.turn):
                self._hand_on(ahead)
            self._ask(broker)
        if self._brokers:
            self._consumer.on_round()

    def on_connected(self, node: int) -> None:
        """Another connection is ready."""
        if (broker := self._brokers.get(node)) is not None:
            self._ask(broker)

    def end_silence(self) -> None:
        """Give up connections that owe a response and send nothing; called once a second."""
        now = self._now()
        for broker in self._brokers.values():
            for index, asked in enumerate(broker.asked):
                connection = self._cluster.connection(broker.node, index) if asked else None
                if connection is None:
                    continue
                seconds = connection.silent_seconds(now)
                # A poll of the session may wait for records, and what is behind it waits, too.
                allowed = self._round_trip(broker) + (0.0 if index else self._poll_seconds)
                if seconds > SILENT_SECONDS + allowed:
                    error = TransportError(f"no byte of a response for {seconds:.0f} s")
                    self._replace_session(broker, error)
                    connection.fail(error)

    def _replace_session(self, broker: AheadBroker, error: TransportError) -> None:
        """The session's connection has been idle: what silenced the others may have silenced it."""
        session = self._cluster.connection(broker.node)
        if session is not None and not session.in_flight:
            session.fail(error)

    # -- requests --------------------------------------------------------------------------------

    def _ask(self, broker: AheadBroker) -> None:
        """Send what is missing between responses, then what may leave, in turn."""
        if self._is_stopped() or not broker.turn:
            return
        for ahead in [each for each in broker.turn if each.reads.has_gap]:
            self._fill(broker, ahead)
        window = broker.line.window_bytes(LEAST_WINDOW_BYTES, MOST_BYTES)
        size = self._ask_bytes(window)
        share = max(size, window // max(1, len(broker.turn)))
        passed = 0
        while passed < len(broker.turn):
            ahead = broker.turn[0]
            next_ask = AheadRequest(0, size, ahead.reads.largest)
            has_enough = ahead.reads.bytes and ahead.reads.bytes + next_ask.expected_bytes > share
            if not has_enough and not self._has_room(broker, window, next_ask):
                return
            broker.turn.rotate(-1)
            is_done = not has_enough and self._ask_more(broker, ahead, size)
            passed = 0 if is_done else passed + 1

    def _ask_bytes(self, window: int) -> int:
        """What one request asks for; less only where the user wants less than Kafka's default."""
        size = min(max(window // ASKS_PER_WINDOW, SMALLEST_ASK_BYTES), LARGEST_ASK_BYTES)
        size = 1 << (size.bit_length() - 1)
        if self._limits.partition_max_bytes < LARGEST_ASK_BYTES // 2:
            size = min(size, self._limits.partition_max_bytes)
        return max(1, min(size, self._limits.max_bytes) - HEAD_BYTES)

    def _has_room(self, broker: AheadBroker, window: int, ask: AheadRequest) -> bool:
        held = broker.held_bytes
        in_use = self._cluster.pool.used_bytes + self._asked_bytes
        fits = in_use + ask.buffer_bytes <= MOST_BYTES
        if fits and held + ask.expected_bytes <= window:
            return True
        # Others fill the memory: one request at a time, so that the next one is considered.
        return not held and self._consumer.request_fetch()

    def _fill(self, broker: AheadBroker, ahead: Ahead) -> None:
        """What is missing is always asked for: it frees what is kept."""
        while not ahead.is_over and (place := self._choose_connection(broker)) is not None:
            gap = ahead.reads.next_gap()
            if gap is None:
                return
            self._send(broker, ahead, gap, *place)

    def _ask_more(self, broker: AheadBroker, ahead: Ahead, size: int) -> bool:
        """One more request for a partition, or its end; False: it has to wait."""
        reads, end_offset = ahead.reads, ahead.partition.end_offset
        place = self._choose_connection(broker)
        if place is None:
            return False
        ask = None if broker.is_short else reads.next_ask(end_offset or 0, size)
        if ask is not None:
            self._send(broker, ahead, ask, *place)
        elif reads.is_idle:
            self._end(ahead)
        return ask is not None or ahead.is_over

    def _choose_connection(self, broker: AheadBroker) -> tuple[int, Connection] | None:
        window = broker.line.window_bytes(LEAST_WINDOW_BYTES, MOST_BYTES)
        return broker.choose_connection(self._cluster, window)

    def _send(
        self,
        broker: AheadBroker,
        ahead: Ahead,
        ask: AheadRequest,
        connection_index: int,
        connection: Connection,
    ) -> None:
        now, partition = self._now(), ahead.partition
        if not any(broker.asked):
            broker.line.begin(now)
        broker.asked[connection_index] += ask.most_bytes
        self._asked_bytes += ask.buffer_bytes
        topic_id, version = partition.topic_id, connection.versions.choose(FETCH)
        version = min(version, fetch.BY_NAME if topic_id is None else fetch.BY_ID)
        flight = Flight(broker, ahead, ask, connection_index, connection, version, now)
        most = ask.most_bytes
        body = fetch.encode_fetch(
            version,
            fetch.NO_SESSION,
            [fetch.FetchRequestPartition(partition.tp, ask.offset, ahead.leader_epoch)],
            (),
            topic_ids={partition.tp.topic: topic_id or b""},
            limits=self._limits._replace(max_bytes=most, partition_max_bytes=most),
        )
        connection.send(
            (FETCH.key, version),
            [body],
            lambda fetched, buffer: self._on_response(flight, fetched, buffer),
            lambda _: self._on_failure(flight),
            self._timeout,
            flexible=version >= FETCH.first_flexible,
            keep=True,
        )

    # -- responses -------------------------------------------------------------------------------

    def _on_failure(self, flight: Flight) -> None:
        self._land(flight)
        if not flight.ahead.is_over:
            flight.ahead.partition.alone_until = self._now() + ALONE_SECONDS
            self._cluster.metadata.refresh()
            self._end(flight.ahead)

    def _land(self, flight: Flight) -> None:
        flight.broker.asked[flight.connection_index] -= flight.ask.most_bytes
        self._asked_bytes -= flight.ask.buffer_bytes

    def _on_response(self, flight: Flight, view: memoryview, buffer: PooledBuffer | None) -> None:
        assert buffer is not None
        ahead, now = flight.ahead, self._now()
        try:
            fetched = fetch.decode_fetch(view, flight.version)
        except KafkaError:
            buffer.release()
            raise
        self._land(flight)
        flight.broker.line.note(now - flight.sent_at, len(view), now)
        response = None
        if not ahead.is_over and not self._is_stopped():
            response = self._read(ahead, flight, fetched, buffer)
        if response is None:
            buffer.release()
            if not ahead.is_over and not self._is_stopped():
                self._end(ahead)
        else:
            ahead.reads.keep(flight.ask, response)
            self._hand_on(ahead)
        if flight.connection.is_short:
            self._ask_no_more(flight.broker, flight.connection)
        self._ask(flight.broker)
        self._consumer.on_round()

    def _ask_no_more(self, broker: AheadBroker, connection: Connection) -> None:
        """The line only looked long, because the broker or this task was busy."""
        broker.is_short = True
        session = self._cluster.connection(broker.node)
        if session is not None:
            session.fastest_seconds = min(session.fastest_seconds, connection.fastest_seconds)

    def _read(
        self, ahead: Ahead, flight: Flight, fetched: fetch.FetchResponse, buffer: PooledBuffer
    ) -> Response | None:
        """The content of the response; None: nothing that can be used."""
        partition = ahead.partition
        name = partition.tp.topic if flight.version < fetch.BY_ID else partition.topic_id
        if fetched.code or len(fetched.rows) != 1:
            return None
        row = fetched.rows[0]
        is_other = (row.topic, row.partition) != (name, partition.tp.partition)
        if is_other or row.code or row.diverging is not None:
            return None
        content = measure(row.records)
        if content is None:
            return None
        committed = self._limits.read_committed
        log_end = row.last_stable_offset if committed else row.high_watermark
        partition.end_offset = max(partition.end_offset or 0, log_end)
        return Response(row.records, buffer, row.aborted, log_end, content)

    def _hand_on(self, ahead: Ahead) -> None:
        """Hand on what is next, as long as it has come and the consumer wants it."""
        reads = ahead.reads
        while not ahead.is_over and reads.is_ready and not self._is_stopped():
            if not self._consumer.request_take():
                return
            response, first = reads.take(), reads.next_offset
            try:
                next_offset = self._take(ahead, response, first)
            finally:
                response.buffer.release()
            reads.move(next_offset)
            if next_offset == first and response.content.end_offset > first and not ahead.is_over:
                self._end(ahead)

    def _take(self, ahead: Ahead, response: Response, first: int) -> int:
        """Hand on one response, without the batches that came before; return the next offset."""
        partition, buffer, aborted = ahead.partition, response.buffer, response.aborted
        view = new_part(response.view, aborted, first)
        if view is None:
            return first
        records = Records(partition.tp, first, view, buffer, aborted, response.log_end)
        partition.next_offset, epoch = self._consumer.on_records(records)
        partition.failures = 0
        if epoch != partition.epochs.last and partition.next_offset != first:
            partition.epochs.note(epoch, first)
        return partition.next_offset

    def _end(self, ahead: Ahead) -> None:
        """Return it to the session, once: a send on the way may fail and end it, too."""
        if ahead.is_over:
            return
        self.drop(ahead.partition)
        self._on_end(ahead.partition)

    def _round_trip(self, broker: AheadBroker) -> float:
        trip = broker.line.round_trip
        return 0.0 if trip == float("inf") else trip

    def _now(self) -> float:
        return self._cluster.loop.clock()
