"""The connections of a long line: pieces that are delivered in order, after a delay.

Runs on: the process of line_relay.

    client -> recv -> | piece, due | piece, due | -> send at its time -> server
                      +---- in flight <= window, until the acknowledgement is back ----+

A piece is delivered `delay` after it was read, in order, and acknowledged after another `delay`.
Each direction of a connection has at most `window` unacknowledged bytes, so it carries one window
per round trip, like TCP. The first bytes of a connection take an extra round trip, for the
handshake. Slow start, loss and limited bandwidth are not simulated.
"""

from __future__ import annotations

import contextlib
import itertools
import selectors
import socket
import struct
import time
from collections import deque
from typing import Protocol

# The size of one read. Data shorter than a quarter of it is copied, to free the large buffer.
PIECE_BYTES = 256 << 10
SHORT_BYTES = PIECE_BYTES // 4
# The most pieces of one write.
MOST_PIECES = 64
# In flight without a window.
MOST_BYTES = 256 << 20
# Close with a reset: data in flight is lost, as when a router forgets a connection.
RESET = struct.pack("ii", 1, 0)

LinePiece = bytes | memoryview | None
"""Bytes on the line; None: the end of the stream."""


class LineState(Protocol):
    """The part of a line that its connections need."""

    delay: float
    window: int
    is_stalled: bool

    def call_at(self, due: float, half: Half) -> None:
        """Run a half at this time."""

    def take_buffer(self) -> bytearray:
        """A buffer for one read."""

    def give_buffer(self, buffer: bytearray) -> None:
        """Return a buffer."""

    def forget(self, pair: Pair) -> None:
        """Forget a connection that is being closed."""


class Half:
    """One direction of one connection."""

    def __init__(self, line: LineState, pair: Pair, source: End, sink: End, *, is_up: bool) -> None:
        self._line = line
        self._pair = pair
        self._source = source
        self._sink = sink
        self._is_up = is_up
        self._queue: deque[tuple[float, LinePiece, bytearray | None]] = deque()
        self._acks: deque[tuple[float, int]] = deque()
        self._in_flight = 0
        self._has_ended = False
        self.is_done = False
        self.most_in_flight = 0
        self.bytes = 0

    def read(self, now: float) -> None:
        """Read available data, as far as the window has room."""
        room = self._room(now)
        if room <= 0:
            self._source.wants_read = False
            if self._acks:
                self._line.call_at(self._acks[0][0], self)
            return
        buffer = self._line.take_buffer()
        try:
            size = self._source.socket.recv_into(buffer, min(room, PIECE_BYTES))
        except BlockingIOError:
            self._line.give_buffer(buffer)
            return
        except OSError:
            size = 0
        self._take(buffer, size, now)

    def _take(self, buffer: bytearray, size: int, now: float) -> None:
        due = now + self._line.delay
        if self._is_up:
            due = max(due, self._pair.born + 3 * self._line.delay)
        if size == 0:
            self._line.give_buffer(buffer)
            self._has_ended, self._source.wants_read = True, False
            self._queue.append((due, None, None))
        elif size < SHORT_BYTES:
            self._queue.append((due, bytes(memoryview(buffer)[:size]), None))
            self._line.give_buffer(buffer)
        else:
            self._queue.append((due, memoryview(buffer)[:size], buffer))
        self._in_flight += size
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        self._line.call_at(due, self)

    def _room(self, now: float) -> int:
        while self._acks and self._acks[0][0] <= now:
            self._in_flight -= self._acks.popleft()[1]
        return (self._line.window or MOST_BYTES) - self._in_flight

    def run(self, now: float) -> None:
        """Deliver pieces that are due, and resume reading if there is room."""
        self._sink.wants_write = False
        while self._queue and self._queue[0][0] <= now and not self._pair.is_silent:
            if self._queue[0][1] is None:
                self._end()
                return
            if not self._send(now):
                break
        if not self._source.wants_read and not self._has_ended and self._room(now) > 0:
            self._source.wants_read = True

    def _send(self, now: float) -> bool:
        """Write the pieces that are due; returns whether all were written."""
        pieces = self._due_pieces(now)
        try:
            sent = self._sink.socket.sendmsg(pieces)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._pair.reset()
            return False
        self.bytes += sent
        self._pair.count_down(0 if self._is_up else sent)
        if sent:
            self._acks.append((now + self._line.delay, sent))
            if not self._source.wants_read and not self._has_ended:
                self._line.call_at(self._acks[0][0], self)
        wanted = sum(map(len, pieces))
        self._drop(sent)
        self._sink.wants_write = sent < wanted
        return sent == wanted

    def _due_pieces(self, now: float) -> list[bytes | memoryview]:
        pieces: list[bytes | memoryview] = []
        left = None if self._is_up else self._pair.left
        for due, piece, _ in itertools.islice(self._queue, MOST_PIECES):
            if due > now or piece is None or left == 0:
                break
            pieces.append(piece[:left])
            if left is not None:
                left -= len(pieces[-1])
        return pieces

    def _drop(self, sent: int) -> None:
        queue = self._queue
        while sent:
            due, piece, buffer = queue.popleft()
            assert piece is not None
            if sent < len(piece):
                queue.appendleft((due, memoryview(piece)[sent:], buffer))
                return
            sent -= len(piece)
            if buffer is not None:
                self._line.give_buffer(buffer)

    def _end(self) -> None:
        self.is_done = True
        with contextlib.suppress(OSError):  # the other side has closed it
            self._sink.socket.shutdown(socket.SHUT_WR)
        self._pair.close_if_done()


class End:
    """One socket of a connection: the source of one half, the sink of the other."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = sock
        self.wants_read = True
        self.wants_write = False
        self.watched = 0
        self.read_half: Half | None = None
        self.write_half: Half | None = None

    def on_ready(self, events: int, now: float) -> None:
        """Called when the socket is ready."""
        if events & selectors.EVENT_WRITE and self.write_half is not None:
            self.write_half.run(now)
        if events & selectors.EVENT_READ and self.read_half is not None and self.wants_read:
            self.read_half.read(now)

    @property
    def wanted(self) -> int:
        """The events to wait for."""
        return selectors.EVENT_READ * self.wants_read | selectors.EVENT_WRITE * self.wants_write


class Pair:
    """A client's connection, and our own to the server for it."""

    def __init__(self, line: LineState, client: socket.socket, server: socket.socket) -> None:
        self._line = line
        self.born = time.monotonic()
        self.ends = (End(client), End(server))
        near, far = self.ends
        self.up = Half(line, self, near, far, is_up=True)
        self.down = Half(line, self, far, near, is_up=False)
        near.read_half, near.write_half = self.up, self.down
        far.read_half, far.write_half = self.down, self.up
        # Bytes to deliver to the client before the connection falls silent; None: it does not.
        self.left: int | None = None

    @property
    def is_frozen(self) -> bool:
        """Whether it has fallen silent."""
        return self.left == 0

    @property
    def is_silent(self) -> bool:
        """Whether nothing is delivered, in either direction."""
        return self.left == 0 or self._line.is_stalled

    def count_down(self, size: int) -> None:
        """Count bytes that were delivered to the client."""
        if self.left is not None:
            self.left -= size

    def wake(self, now: float) -> None:
        """Run both halves after a change of the line."""
        for half in (self.up, self.down):
            if not half.is_done:
                half.run(now)

    def close_if_done(self) -> None:
        """Close when both directions have ended."""
        if self.up.is_done and self.down.is_done:
            self._close()

    def reset(self) -> None:
        """Drop the data in flight, and notify both sides."""
        for end in self.ends:
            try:
                end.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            except OSError:
                continue  # closed already
        self._close()

    def _close(self) -> None:
        self.up.is_done = self.down.is_done = True
        self._line.forget(self)
        for end in self.ends:
            end.socket.close()
