"""The other side of a TLS stream: a thread that does the handshake and then runs a script."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tests.certificates import Certificates, Issued

WAIT_SECONDS = 20.0
Script = Callable[[ssl.SSLSocket], None]


def server_context(
    certificates: Certificates, issued: Issued, *, trusts: Issued | None = None
) -> ssl.SSLContext:
    """A broker's; with `trusts` it wants client certificates of that CA."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pem = certificates.write(f"{id(issued)}.pem", issued.key_pem() + issued.pem)
    context.load_cert_chain(pem)
    if trusts is not None:
        context.load_verify_locations(cadata=trusts.der)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class TlsPeer:
    """Serves one connection after the other; what goes wrong in a handshake is the client's."""

    def __init__(self, context: ssl.SSLContext, script: Script = lambda _: None) -> None:
        self._context = context
        self._script = script
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._run, name="TLS peer", daemon=True)
        self.port: int = self._listener.getsockname()[1]
        # What the script raised: it fails the test.
        self.error: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive()
        assert self.error is None

    def _run(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.settimeout(WAIT_SECONDS)
            self._serve(sock)

    def _serve(self, sock: socket.socket) -> None:
        with sock:
            try:
                tls = self._context.wrap_socket(sock, server_side=True)
            except OSError:
                return
            with tls:
                try:
                    self._script(tls)
                except AssertionError as error:
                    self.error = error
                except OSError:
                    return


class Forwarder:
    """Between both sides: passes bytes on in pieces that records do not know of."""

    def __init__(self, port: int, piece_bytes: int) -> None:
        self._target = port
        self._piece_bytes = piece_bytes
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._run, daemon=True)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.close()
        for thread in self._threads:
            thread.join(WAIT_SECONDS)
            assert not thread.is_alive()

    def _run(self) -> None:
        inner, _ = self._listener.accept()
        outer = socket.create_connection(("127.0.0.1", self._target))
        outer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        inner.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = threading.Thread(target=self._pass, args=(outer, inner), daemon=True)
        self._threads.append(back)
        back.start()
        self._pass(inner, outer)
        back.join(WAIT_SECONDS)
        inner.close()
        outer.close()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while piece := source.recv(self._piece_bytes):
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return


def read_exactly(sock: ssl.SSLSocket, size: int) -> bytes:
    """So many bytes."""
    data = bytearray()
    while len(data) < size:
        piece = sock.recv(size - len(data))
        assert piece, f"hung up after {len(data)} bytes"
        data += piece
    return bytes(data)
