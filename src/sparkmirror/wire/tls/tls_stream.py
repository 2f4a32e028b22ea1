"""A byte stream over TLS, without blocking.

Runs on: executor and worker. OpenSSL hands out one record (at most 16 KB) per call, and may hold
bytes that the socket no longer shows: `pending` reports them.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence

from sparkmirror.batches.header import Buffer
from sparkmirror.errors import AuthenticationError, KafkaError, TransportError
from sparkmirror.wire.net.event_loop import READ, WRITE
from sparkmirror.wire.net.stream import HungUp, PlainStream
from sparkmirror.wire.tls.tls_context import TlsContext
from sparkmirror.wire.tls.tls_failures import explain_handshake, explain_later, explain_silence
from sparkmirror.wire.tls.tls_suites import SuiteRefused

# A record holds 16 KB; with its header and the most that encryption may add.
RECORD_BYTES = (16 << 10) + 2048 + 5
# Pieces shorter than this are sent together, up to JOINED_BYTES: every record costs a system call.
SMALL_BYTES = 16 << 10
JOINED_BYTES = 64 << 10
# Other connections need their turn: so much is read or written in one go.
MOST_BYTES = 4 << 20

_LATER = (ssl.SSLWantReadError, ssl.SSLWantWriteError)


class TlsStream(PlainStream):
    """TCP with TLS; the handshake is part of connecting."""

    def __init__(
        self,
        host: str,
        port: int,
        send_buffer: int,
        receive_buffer: int,
        attempt: int = 0,
        *,
        context: TlsContext,
    ) -> None:
        super().__init__(host, port, send_buffer, receive_buffer, attempt)
        self._host = host.rstrip(".")
        self._context = context
        self._tls: ssl.SSLSocket | None = None
        self._has_received = False

    def finish_connect(self) -> bool:
        """True once the handshake is over; `wants` is what to wait for otherwise."""
        try:
            self._shake_hands()
        except ssl.SSLWantReadError:
            self.wants = READ
            return False
        except ssl.SSLWantWriteError:
            self.wants = WRITE
            return False
        except SuiteRefused as error:
            raise AuthenticationError(
                f"TLS handshake: the broker chose {error.suite}, which ssl.cipher.suites does not "
                "have; add it, or set ssl.enabled.protocols to TLSv1.2"
            ) from error
        except OSError as error:
            raise explain_handshake(error, self._context.has_own_key) from error
        return True

    def wake_at(self, size: int) -> None:
        """OpenSSL may have taken a part of the next record from the socket already."""
        super().wake_at(max(1, size - RECORD_BYTES))

    def receive(self, into: memoryview) -> int:
        """Bytes received, 0 when there are none yet."""
        assert self._tls is not None
        receive, size, most = self._tls.recv_into, 0, min(len(into), MOST_BYTES)
        try:
            while size < most:
                got = receive(into[size:most])
                if got == 0:
                    break
                size += got
        except _LATER:
            self._has_received = self._has_received or size > 0
            return size
        except OSError as error:
            if size == 0:
                raise self._failed(error) from error
        if size == 0:
            raise self.hung_up()
        self._has_received = True
        return size

    def pending(self) -> bool:
        """Whether OpenSSL holds bytes that `receive` would return at once."""
        return self._tls is not None and self._tls.pending() > 0

    def send(self, pieces: Sequence[Buffer]) -> int:
        """Bytes taken from the front of `pieces`.

        After a 0, OpenSSL holds a record with the next bytes, and needs at least those again: they
        are the front of `pieces` then, with more behind them or not.
        """
        assert self._tls is not None
        send, sent = self._tls.send, 0
        try:
            for chunk in _chunks(pieces):
                at, size = 0, len(chunk)
                while at < size:
                    taken = send(chunk[at:])
                    at += taken
                    sent += taken
                if sent >= MOST_BYTES:
                    break
        except _LATER:
            return sent
        except OSError as error:
            if sent == 0:
                raise self._rejected_or(error) from error
        return sent

    def close(self) -> None:
        """Close at once."""
        if self._tls is not None:
            self._tls.close()
        super().close()

    def hung_up(self) -> HungUp:
        """The error of a connection that the broker closed, with the likely reason."""
        if self._has_received:
            return super().hung_up()
        return HungUp(explain_silence(self._context.has_own_key))

    def _rejected_or(self, error: OSError) -> KafkaError:
        """Why nothing can be sent: with TLS 1.3, a client learns of its rejection by reading on."""
        assert self._tls is not None
        try:
            self._tls.recv(1)
        except _LATER:
            return self._failed(error)
        except OSError as later:
            return self._failed(later)
        return self._failed(error)

    def _failed(self, error: OSError) -> KafkaError:
        if isinstance(error, ssl.SSLEOFError | ConnectionError):
            return self.hung_up()
        if isinstance(error, ssl.SSLError):
            return explain_later(error, self._context.has_own_key)
        return TransportError(f"read from or write to {self.address}: {error}")

    def _shake_hands(self) -> None:
        if self._tls is None:
            super().finish_connect()
            self._tls = self._context.ssl.wrap_socket(
                self._socket, do_handshake_on_connect=False, server_hostname=self._host
            )
            # The descriptor is the same; it belongs to the TLS socket now.
            self._socket = self._tls
        self._tls.do_handshake()


def _chunks(pieces: Sequence[Buffer]) -> Iterator[memoryview]:
    """The pieces, short ones joined."""
    short: list[Buffer] = []
    size = 0
    for piece in pieces:
        if len(piece) < SMALL_BYTES:
            short.append(piece)
            size += len(piece)
            if size < JOINED_BYTES:
                continue
        if short:
            yield memoryview(b"".join(short) if len(short) > 1 else short[0])
            short, size = [], 0
        if len(piece) >= SMALL_BYTES:
            yield memoryview(piece)
    if short:
        yield memoryview(b"".join(short) if len(short) > 1 else short[0])
