"""TLS of the control link: start messages hold passwords and key stores.

Runs on: worker and executor. A task knows its worker by the fingerprint that came with the Spark
job, so there is nothing to set up and nothing that expires.
"""

from __future__ import annotations

import hashlib
import hmac
import select
import socket
import ssl
import threading
import time

from sparkmirror.errors import AuthenticationError, TransportError

# Of one TLS record: OpenSSL wants a failed write repeated with no less than this.
RECORD_BYTES = 16384


def connect_tls(sock: socket.socket, fingerprint: str) -> ssl.SSLSocket:
    """The task's side: encrypt, and hang up unless it is the worker that made the token."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # The certificate is not signed by an authority: the token has its fingerprint.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        secured = context.wrap_socket(sock)
    except OSError as error:
        sock.close()
        raise TransportError(f"control link: no TLS with the worker: {error}") from error
    shown = hashlib.sha256(secured.getpeercert(binary_form=True) or b"").hexdigest()
    if not hmac.compare_digest(shown, fingerprint):
        secured.close()
        raise AuthenticationError(
            "control link: the other side has another certificate than the task's worker; "
            "another process is in between, or uses its port now"
        )
    return secured


def accept_tls(sock: socket.socket, context: ssl.SSLContext, seconds: float) -> TlsSocket:
    """The worker's side: encrypt within `seconds`; the caller has not authenticated yet."""
    deadline = time.monotonic() + seconds
    sock.settimeout(seconds)
    try:
        return TlsSocket(context.wrap_socket(sock, server_side=True), deadline)
    except OSError as error:
        sock.close()
        raise TransportError(f"control link: a caller without TLS: {error}") from error


class TlsSocket:
    """A TLS connection that one thread reads while others write.

    OpenSSL lets one thread at a time use a connection, so no thread waits while it holds the lock.
    `seconds` is how long a read or a write may make no progress; at `deadline`, if there is one,
    everything ends.
    """

    def __init__(self, sock: ssl.SSLSocket, deadline: float | None = None) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._lock = threading.Lock()
        self.deadline = deadline
        self.seconds: float = 60.0

    def recv(self, size: int) -> bytes:
        """Some bytes, at most `size`; none at the end. Raises OSError, TimeoutError among them."""
        while True:
            with self._lock:
                try:
                    return self._socket.recv(size)
                except ssl.SSLWantReadError:
                    wanted = select.POLLIN
                except ssl.SSLWantWriteError:
                    wanted = select.POLLOUT
            self._wait(wanted)

    def sendall(self, data: bytes) -> None:
        """All of `data`; one thread at a time, or messages would be mixed up."""
        view = memoryview(data)
        while view:
            with self._lock:
                try:
                    view = view[self._socket.send(view[:RECORD_BYTES]) :]
                    continue
                except ssl.SSLWantWriteError:
                    wanted = select.POLLOUT
                except ssl.SSLWantReadError:
                    wanted = select.POLLIN
            self._wait(wanted)

    def hang_up(self) -> None:
        """End the reads and writes of other threads; OSError if they have ended already."""
        with self._lock:
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket."""
        with self._lock:
            self._socket.close()

    def _wait(self, wanted: int) -> None:
        seconds = self.seconds
        if self.deadline is not None:
            seconds = min(seconds, self.deadline - time.monotonic())
        poll = select.poll()
        with self._lock:
            if self._socket.fileno() < 0:
                raise OSError("hung up")
            poll.register(self._socket, wanted)
        if seconds <= 0 or not poll.poll(seconds * 1000):
            raise TimeoutError("nothing for too long")
