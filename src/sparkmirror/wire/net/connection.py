"""One pipelined connection to one broker: requests go out in order, responses come back in order.

Runs on: executor and worker, on the event loop's thread. It knows frames, not messages: callers
bring encoded bodies and get the bytes of the responses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from sparkmirror.batches.header import Buffer
from sparkmirror.errors import KafkaError, MirrorError, RemoteProtocolError, TransportError
from sparkmirror.wire.net.buffer_pool import BufferPool, PooledBuffer
from sparkmirror.wire.net.event_loop import READ, WRITE, EventLoop, Timer
from sparkmirror.wire.net.frames import (
    FRAME,
    LARGE_READ_BYTES,
    LARGEST_FRAME,
    LONG_LINE_READ_BYTES,
    REQUEST,
    SCRATCH_BYTES,
    drop_sent,
)
from sparkmirror.wire.net.line_estimate import LONG_SECONDS
from sparkmirror.wire.net.outages import SilentError
from sparkmirror.wire.net.pending_requests import Held, OnResponse, Waiting
from sparkmirror.wire.net.stream import Stream
from sparkmirror.wire.protocol.api_versions import Api, ApiVersions

# A broker that has just accepted us, or is busy, takes its time: only the fastest of some counts.
TRUSTED_RESPONSES = 3


class Connection:
    """Frames requests, matches responses. Dead after the first failure: the owner opens another."""

    def __init__(
        self,
        loop: EventLoop,
        stream: Stream,
        client_id: str,
        pool: BufferPool,
        *,
        on_open: Callable[[], None],
        on_closed: Callable[[KafkaError], None],
    ) -> None:
        self.loop = loop
        self._stream = stream
        self._client_id = client_id.encode()
        self._pool = pool
        self._on_open = on_open
        self._on_closed = on_closed
        self._open = self.closed = False
        # What the broker speaks, once that is known.
        self.versions = ApiVersions()
        # At its end: whether no response was awaited.
        self.was_idle = False
        self.responses = self.received_bytes = self.sent_bytes = 0
        # The shortest time until a response, or its start, came: about a round trip.
        self.fastest_seconds = float("inf")
        self._correlation = 0
        self._waiting: deque[Waiting] = deque()
        # Requests that wait for the end of a login; None while there is none.
        self._held: list[Held] | None = None
        self._outbox: list[Buffer] = []
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._scratch_size = 0
        self._buffer: PooledBuffer | None = None
        self._response = memoryview(b"")
        self._response_size, self._wake_size = 0, 1
        self._writing = False
        # When bytes last moved, and when those that wake no handler were last read.
        self._moved_at = float("-inf")
        self._looked_at = float("-inf")
        # One timer for all requests: each time it is set to the deadline of the oldest.
        self._deadline: Timer | None = None
        loop.watch(self, WRITE)

    def fileno(self) -> int:
        """The socket's descriptor, for the event loop."""
        return self._stream.fileno()

    @property
    def address(self) -> str:
        """Host and port of the broker."""
        return self._stream.address

    @property
    def is_open(self) -> bool:
        """True once the stream is usable, until the first failure."""
        return self._open and not self.closed

    @property
    def is_long(self) -> bool:
        """Whether the line is known to be long: one request at a time does not keep it busy."""
        return self.responses >= TRUSTED_RESPONSES and not self.is_short

    @property
    def is_short(self) -> bool:
        """Whether the line is known to be short."""
        return self.fastest_seconds < LONG_SECONDS

    @property
    def in_flight(self) -> int:
        """Requests without a response."""
        return len(self._waiting) + len(self._held or ())

    def choose(self, api: Api) -> tuple[int, int]:
        """The key of `api` and the version of it to send here; UnsupportedVersionError."""
        return api.key, self.versions.choose(api)

    def send(
        self,
        api: tuple[int, int],
        body: Sequence[Buffer],
        on_response: OnResponse,
        on_failure: Callable[[KafkaError], None],
        timeout: float,
        *,
        flexible: bool = False,
        keep: bool = False,
        ahead: bool = False,
        more: bool = False,
    ) -> None:
        """Send one request of (API key, version); one that goes `ahead` is never held back.

        With `more`, others follow at once: all of them leave with `flush`.

        `on_response` gets the bytes after the correlation id. They are valid during the call only,
        unless `keep`: then they lie in the buffer, which the callee must release. If it raises a
        KafkaError, before it has changed anything, the response makes no sense: the connection is
        closed. `on_failure` is called then, and when the connection dies before the response, which
        may be during this call.
        """
        if self.closed:
            on_failure(TransportError(f"the connection to {self._stream.address} is closed"))
            return
        if self._held is not None and not ahead:
            held = Held(api, body, on_response, on_failure, timeout, flexible, keep)
            self._held.append(held)
            return
        self._correlation = (self._correlation + 1) & 0x7FFFFFFF
        tags = b"\0" if flexible else b""
        size = REQUEST.size - 4 + len(self._client_id) + len(tags) + sum(map(len, body))
        head = REQUEST.pack(size, *api, self._correlation, len(self._client_id))
        now = self.loop.clock()
        request = Waiting(self._correlation, now, timeout, keep, on_response, on_failure)
        self._waiting.append(request)
        if self._deadline is None:
            self._deadline = self.loop.call_later(timeout, self._end_if_overdue)
        self._outbox += (head + self._client_id + tags, *body)
        if not more:
            self.flush()

    def flush(self) -> None:
        """Write what waits, unless it is being written already."""
        if self._outbox and self.is_open and not self._writing:
            self._guarded(self._flush)

    def hold_back(self) -> None:
        """Keep requests until `send_held`, except those that go ahead."""
        if self._held is None:
            self._held = []

    def send_held(self) -> None:
        """Send what was held back, in the order it came."""
        held, self._held = self._held or [], None
        for each in held:
            self.send(*each[:5], flexible=each.flexible, keep=each.keep)

    def on_ready(self, events: int) -> None:
        """Called by the loop."""
        if not self._open:
            self._guarded(self._finish_connect)
            return
        if events & WRITE:
            self._guarded(self._flush)
        if events & READ and not self.closed:
            self._guarded(self._read)

    def silent_seconds(self, now: float) -> float:
        """How long the oldest request has waited without a byte of progress; 0: none waits."""
        if not self._waiting:
            return 0.0
        return now - max(self._waiting[0].sent_at, self._moved_at)

    @property
    def has_begun_response(self) -> bool:
        """True while a part of a response is there."""
        return self._buffer is not None or self._scratch_size > 0

    def fail_if_overdue(self, now: float) -> None:
        """Close when no byte has moved for as long as the oldest request may wait.

        Only progress extends a deadline. A large response over a slow line takes its time: cut
        off, it would begin again, for ever. One that stops halfway is cut off.
        """
        if self._buffer is not None and self._moved_at <= self._looked_at:
            self._read_rest()
        self._looked_at = now
        if self._is_overdue(now):
            where = " in the middle of a response" if self.has_begun_response else ""
            seconds = self.silent_seconds(now)
            text = f"no response from {self.address} for {seconds:.0f} s{where}"
            self.fail(SilentError(text, seconds, self.address))

    def _read_rest(self) -> None:
        """Read what is less than the stream wakes us for.

        It came some time after the last look. The earliest moment counts: Java's clients count from
        the request, and copying must not resume later than theirs.
        """
        before, looked_at = self._moved_at, self._looked_at
        self._guarded(self._read)
        if self._moved_at > before:
            self._moved_at = max(before, looked_at)

    def _is_overdue(self, now: float) -> bool:
        return bool(self._waiting) and self.silent_seconds(now) >= self._waiting[0].timeout

    def _end_if_overdue(self) -> None:
        """The deadline of the oldest request has come, unless bytes have moved since it was set."""
        self._deadline = None
        now = self.loop.clock()
        self.fail_if_overdue(now)
        if not self.closed and self._waiting:
            left = self._waiting[0].timeout - self.silent_seconds(now)
            self._deadline = self.loop.call_later(left, self._end_if_overdue)

    def fail(self, error: KafkaError) -> None:
        """Close, and fail all requests that wait."""
        if self.closed:
            return
        self.closed = True
        if self._deadline is not None:
            self._deadline.cancel()
        self.loop.unwatch(self)
        self._stream.close()
        if self._buffer is not None:
            self._buffer.release()
            self._buffer = None
        # Batches lie in here; those who sent them may use their buffers again from now on.
        self._outbox.clear()
        waiting: list[Waiting | Held] = [*self._waiting, *(self._held or ())]
        self._waiting, self._held = deque(), None
        self.was_idle = not waiting
        # The owner first: those who wait may ask it for a connection, and must not get this one.
        self._on_closed(error)
        for request in waiting:
            request.on_failure(error)

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except KafkaError as error:
            self.fail(error)

    def _finish_connect(self) -> None:
        if self._stream.finish_connect():
            self._open = True
            self.loop.rewatch(self, READ)
            self._on_open()
            if not self.closed:
                self._flush()
        else:
            self.loop.rewatch(self, self._stream.wants)

    def _flush(self) -> None:
        if self.loop.before_write is not None:
            self.loop.before_write()
        while self._outbox:
            sent = self._stream.send(self._outbox)
            if sent == 0:
                break
            self.sent_bytes += sent
            drop_sent(self._outbox, sent)
            if self._outbox:
                self._moved_at = self.loop.clock()
        if self._outbox:
            if not self._writing:
                self.loop.rewatch(self, READ | WRITE)
                self._writing = True
        elif self._writing:
            self.loop.rewatch(self, READ)
            self._writing = False

    def _read(self) -> None:
        try:
            self._read_some()
            # The loop does not call for bytes that have left the socket.
            while not self.closed and self._stream.pending():
                self._read_some()
        except KafkaError:
            raise  # ends the connection
        except MirrorError:
            # What ends the task. Responses behind this one are there already, and show what else is
            # stored: its position is kept before the end.
            self.loop.call_later(0.0, self._read_on)
            raise

    def _read_on(self) -> None:
        if not self.closed:
            self._guarded(self._read)

    def _read_some(self) -> None:
        if self._buffer is not None:
            self._read_large()
        else:
            self._read_small()

    def _receive(self, into: memoryview) -> int:
        size = self._stream.receive(into)
        if size:
            self._moved_at = self.loop.clock()
            self.received_bytes += size
        return size

    def _read_large(self) -> None:
        assert self._buffer is not None
        self._response_size += self._receive(self._response[self._response_size :])
        left = len(self._response) - self._response_size
        if left == 0:
            buffer, response = self._buffer, self._response
            self._buffer, self._response, self._response_size = None, memoryview(b""), 0
            self._wake_at(1)
            self._deliver(response, buffer)
        else:
            self._wake_for(left)

    def _wake_for(self, left: int) -> None:
        """Little comes with the next packet; asking for it would cost more than it saves."""
        most = LONG_LINE_READ_BYTES if self.is_long else LARGE_READ_BYTES
        self._wake_at(min(left, most) if left > SCRATCH_BYTES else 1)

    def _wake_at(self, size: int) -> None:
        if size != self._wake_size:
            self._wake_size = size
            self._stream.wake_at(size)

    def _read_small(self) -> None:
        self._scratch_size += self._receive(self._scratch[self._scratch_size :])
        at = 0
        try:
            while not self.closed and self._scratch_size - at >= FRAME.size:
                size, correlation = FRAME.unpack_from(self._scratch, at)
                self._check_frame(size, correlation)
                start, end = at + FRAME.size, at + 4 + size
                if end > self._scratch_size:
                    if size + 4 > SCRATCH_BYTES or self._waiting[0].keep:
                        self._begin_large(self._scratch[start : self._scratch_size], size - 4)
                        self._scratch_size = at = 0
                    break
                at = end
                self._deliver_small(self._scratch[start:end])
        finally:
            # Also when the response ends the task: what is stored until then goes over this line.
            left = self._scratch_size - at
            if at and left:
                self._scratch[:left] = self._scratch[at : self._scratch_size]
            self._scratch_size = left

    def _check_frame(self, size: int, correlation: int) -> None:
        if not self._waiting or self._waiting[0].correlation != correlation:
            raise RemoteProtocolError(f"{self._stream.address} sent a response to no request")
        if not 4 <= size <= LARGEST_FRAME:
            raise RemoteProtocolError(f"{self._stream.address} sent a response of {size} bytes")

    def _note_time(self, request: Waiting) -> None:
        self.fastest_seconds = min(self.fastest_seconds, self.loop.clock() - request.sent_at)

    def _begin_large(self, start: memoryview, size: int) -> None:
        self._note_time(self._waiting[0])
        self._buffer = self._pool.take(size)
        self._response = memoryview(self._buffer.memory)[:size]
        self._response[: len(start)] = start
        self._response_size = len(start)
        self._wake_for(size - len(start))

    def _deliver_small(self, response: memoryview) -> None:
        if not self._waiting[0].keep:
            self._deliver(response, None)
            return
        buffer = self._pool.take(len(response))
        copy = memoryview(buffer.memory)[: len(response)]
        copy[:] = response
        self._deliver(copy, buffer)

    def _deliver(self, response: memoryview, buffer: PooledBuffer | None) -> None:
        request = self._waiting.popleft()
        self.responses += 1
        self._note_time(request)
        try:
            request.on_response(response, buffer if request.keep else None)
        except KafkaError as error:
            request.on_failure(error)
            raise
        finally:
            if buffer is not None and not request.keep:
                buffer.release()
