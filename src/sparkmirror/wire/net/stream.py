"""A byte stream to a broker, without blocking. TLS is another class with the same methods.

Runs on: executor and worker.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from typing import Protocol

from sparkmirror.batches.header import Buffer
from sparkmirror.errors import TransportError
from sparkmirror.wire.net.event_loop import WRITE

# Linux takes at most 1024 pieces in one writev.
MOST_PIECES = 1000
# Routers, firewalls and load balancers silently forget connections that were idle for a while,
# common ones after four to six minutes. Linux probes after two hours whether the
# other side is still there. Probed every minute, they forget nothing, and a line that is gone is
# noticed within two minutes, also while data wait for their acknowledgement.
_SECONDS_TO_PROBE, _SECONDS_BETWEEN_PROBES, _PROBES = 60, 10, 6
_DEAD_AFTER_MS = 1000 * (_SECONDS_TO_PROBE + _SECONDS_BETWEEN_PROBES * _PROBES)
_OPTIONS = (
    ("SOL_SOCKET", "SO_KEEPALIVE", 1),
    ("IPPROTO_TCP", "TCP_NODELAY", 1),
    ("IPPROTO_TCP", "TCP_KEEPIDLE", _SECONDS_TO_PROBE),
    ("IPPROTO_TCP", "TCP_KEEPINTVL", _SECONDS_BETWEEN_PROBES),
    ("IPPROTO_TCP", "TCP_KEEPCNT", _PROBES),
    ("IPPROTO_TCP", "TCP_USER_TIMEOUT", _DEAD_AFTER_MS),
)
# As setsockopt takes them; systems that lack one of them skip it.
SOCKET_OPTIONS = [
    (getattr(socket, level), getattr(socket, option), value)
    for level, option, value in _OPTIONS
    if hasattr(socket, option)
]


class HungUp(TransportError):
    """The other side closed the connection."""


def connect_problem(error: OSError) -> str:
    """Why no connection could be made, as text."""
    if isinstance(error, socket.gaierror):
        return f"the name does not resolve ({error.strerror})"
    return error.strerror or str(error)


class Stream(Protocol):
    """What a connection needs of its transport; none of the methods blocks."""

    address: str
    # What to wait for until `finish_connect` must be called again: READ or WRITE.
    wants: int

    def fileno(self) -> int:
        """The socket's descriptor, for the event loop."""

    def finish_connect(self) -> bool:
        """True once the stream is usable; raises TransportError when it never will be."""

    def wake_at(self, size: int) -> None:
        """Call back for reading only when `size` bytes are there, if the system can do that."""

    def receive(self, into: memoryview) -> int:
        """Bytes received, 0 when there are none yet; TransportError at the end of the stream."""

    def pending(self) -> bool:
        """Whether there are bytes to receive that the socket does not show."""

    def send(self, pieces: Sequence[Buffer]) -> int:
        """Bytes taken from the front of `pieces`, 0 when the other side is slow."""

    def close(self) -> None:
        """Close at once."""


class PlainStream:
    """TCP without encryption."""

    wants = WRITE

    def __init__(
        self, host: str, port: int, send_buffer: int, receive_buffer: int, attempt: int = 0
    ) -> None:
        self.address = f"{host}:{port}"
        try:
            places = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
            # A name may stand for several addresses (localhost: ::1 and 127.0.0.1), not all of
            # them served: each attempt takes the next one (KIP-302).
            family, kind, proto, _, place = places[attempt % len(places)]
            self._socket = socket.socket(family, kind, proto)
        except OSError as error:
            raise TransportError(f"connect to {self.address}: {connect_problem(error)}") from error
        self._socket.setblocking(False)
        for option in SOCKET_OPTIONS:
            self._socket.setsockopt(*option)
        # With a buffer of this size: a sender that waits for room costs a round trip.
        self._most_wake = receive_buffer // 4 if receive_buffer > 0 else 0
        self._set_buffer(socket.SO_SNDBUF, send_buffer)
        self._set_buffer(socket.SO_RCVBUF, receive_buffer)
        self._connect(place)

    def fileno(self) -> int:
        """The socket's descriptor, for the event loop."""
        return self._socket.fileno()

    def finish_connect(self) -> bool:
        """True once connected. Called when the socket becomes writable."""
        failure = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failure:
            raise TransportError(
                f"connect to {self.address}: {errno.errorcode.get(failure, failure)}"
            )
        return True

    def wake_at(self, size: int) -> None:
        """Fewer, larger reads: each one costs a turn of the loop."""
        if self._most_wake:
            size = max(1, min(size, self._most_wake))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)

    def receive(self, into: memoryview) -> int:
        """Bytes received, 0 when there are none yet."""
        try:
            size = self._socket.recv_into(into)
        except BlockingIOError:
            return 0
        except ConnectionResetError as error:
            raise self.hung_up() from error
        except OSError as error:
            raise TransportError(f"read from {self.address}: {error}") from error
        if size == 0:
            raise self.hung_up()
        return size

    def pending(self) -> bool:
        """The socket shows everything."""
        return False

    def send(self, pieces: Sequence[Buffer]) -> int:
        """Bytes taken from the front of `pieces`."""
        try:
            return self._socket.sendmsg(pieces[:MOST_PIECES])
        except BlockingIOError:
            return 0
        except OSError as error:
            raise TransportError(f"write to {self.address}: {error}") from error

    def close(self) -> None:
        """Close at once."""
        self._socket.close()

    def hung_up(self) -> HungUp:
        """The error of a connection that the broker closed."""
        return HungUp(f"read from {self.address}: the broker closed the connection")

    def _set_buffer(self, option: int, size: int) -> None:
        if size > 0:  # otherwise the kernel tunes it, which is better on long lines
            self._socket.setsockopt(socket.SOL_SOCKET, option, size)

    def _connect(self, place: object) -> None:
        failure = self._socket.connect_ex(place)  # type: ignore[arg-type]
        if failure not in (0, errno.EINPROGRESS):
            self._socket.close()
            name = errno.errorcode.get(failure, str(failure))
            raise TransportError(f"connect to {self.address}: {name}")
