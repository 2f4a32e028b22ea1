"""The task's end of the control link.

Runs on: executor. Blocking until the start message has come, then part of the copy loop.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from sparkmirror.errors import KafkaError, TransportError
from sparkmirror.retry import RetryPolicy, retry_until
from sparkmirror.spark.link.frames import (
    LENGTH,
    REFUSED,
    LinkMessage,
    authenticate_to_worker,
    check_length,
    decode_message,
    encode_message,
    receive_message,
    send_message,
)
from sparkmirror.spark.link.task_token import TaskToken
from sparkmirror.spark.link.tls import RECORD_BYTES, connect_tls
from sparkmirror.wire.net.event_loop import READ, WRITE, EventLoop

CONNECT_SECONDS = 10.0
# A worker that is just starting, or has no descriptor left, listens again within moments.
CONNECT_AGAIN = RetryPolicy.every(0.2)
# The worker reads the positions of all partitions before it responds.
START_SECONDS = 120.0
# We report every second: when none of it was acknowledged this long, the network is cut, and the
# worker may have given our partitions to another attempt.
UNHEARD_MS = 15_000
READ_BYTES = 1 << 16


def open_link(token: TaskToken) -> ssl.SSLSocket:
    """Connect to the worker and authenticate both sides; the start message follows."""
    sock = connect_tls(_connect(token.host, token.port), token.fingerprint)
    try:
        authenticate_to_worker(sock, token.secret, token.task)
    except KafkaError:
        sock.close()
        raise
    return sock


def _connect(host: str, port: int) -> socket.socket:
    sock = retry_until(
        lambda: _try_connect(host, port),
        CONNECT_AGAIN,
        CONNECT_SECONDS,
        is_retriable=lambda error: error.retriable,
        pause=_sleep,
    )
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNHEARD_MS)
    return sock


def _try_connect(host: str, port: int) -> socket.socket:
    try:
        return socket.create_connection((host, port), timeout=CONNECT_SECONDS)
    except OSError as error:
        raise TransportError(f"control link to the worker at {host}:{port}: {error}") from error


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


class LinkClient:
    """Messages both ways without blocking, once the copy loop runs.

    Belongs to the thread that makes it; other threads may `send`, which waits for its next send.
    """

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self._socket = sock
        self._thread = threading.get_ident()
        self._of_others: deque[LinkMessage] = deque()
        self._loop: EventLoop | None = None
        self._inbox = bytearray()
        self._outbox = bytearray()
        self._on_message: Callable[[LinkMessage], None] = lambda _: None
        self._on_lost: Callable[[KafkaError], None] = lambda _: None
        # Messages that arrived while `ask` waited for its response.
        self._early: list[LinkMessage] = []
        self.lost = False

    def wait_for_start(self) -> LinkMessage:
        """Block until the start message arrives; the worker may read positions first."""
        self._socket.settimeout(START_SECONDS)
        start_message = receive_message(self._socket)
        if start_message.get("type") == REFUSED:
            raise KafkaError(f"no start message from the worker: {start_message['reason']}")
        return start_message

    def ask(self, question: LinkMessage, kind: str) -> LinkMessage:
        """Block until the worker responds with such a message; others wait for `attach`."""
        self.send(question)
        while (reply := receive_message(self._socket)).get("type") != kind:
            self._early.append(reply)
        return reply

    def attach(
        self,
        loop: EventLoop,
        on_message: Callable[[LinkMessage], None],
        on_lost: Callable[[KafkaError], None],
    ) -> None:
        """From here on everything happens on `loop`."""
        self._socket.setblocking(False)
        self._loop, self._on_message, self._on_lost = loop, on_message, on_lost
        loop.watch(self, READ)
        # TLS may have read more than was asked for: the socket does not show that.
        loop.call_later(0.0, lambda: self.on_ready(READ))
        for message in self._early:
            loop.call_later(0.0, partial(on_message, message))

    def fileno(self) -> int:
        """The socket's descriptor, for the event loop."""
        return self._socket.fileno()

    def send(self, message: dict[str, Any]) -> None:
        """Queue a message; a worker that is gone is noticed by the loop."""
        if self.lost:
            return
        if threading.get_ident() != self._thread:
            self._of_others.append(message)
            return
        if self._loop is None:
            send_message(self._socket, message)
            return
        self._take_of_others()
        self._outbox += encode_message(message)
        self._guarded(self._flush)

    def on_ready(self, events: int) -> None:
        """Called by the loop."""
        if events & WRITE:
            self._guarded(self._flush)
        if events & READ and not self.lost:
            self._guarded(self._read)

    def close(self) -> None:
        """Hang up after everything queued was sent."""
        if not self.lost:
            self.lost = True
            if self._loop is not None:
                self._loop.unwatch(self)
            self._take_of_others()
            self._socket.settimeout(2.0)
            try:
                self._socket.sendall(self._outbox)
            except OSError:
                self._outbox.clear()  # the worker is gone
        self._socket.close()

    def _take_of_others(self) -> None:
        while self._of_others:
            self._outbox += encode_message(self._of_others.popleft())

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except (OSError, KafkaError) as error:
            self.lost = True
            assert self._loop is not None
            self._loop.unwatch(self)
            self._on_lost(TransportError(f"the link to the worker is cut: {error}"))

    def _flush(self) -> None:
        assert self._loop is not None
        try:
            while self._outbox:
                del self._outbox[: self._socket.send(self._outbox[:RECORD_BYTES])]
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
            self._loop.rewatch(self, READ | WRITE)
        else:
            self._loop.rewatch(self, READ)

    def _read(self) -> None:
        while not self.lost:
            try:
                piece = self._socket.recv(READ_BYTES)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            if not piece:
                raise TransportError("control link: the worker is gone")
            self._inbox += piece
            self._take_messages()

    def _take_messages(self) -> None:
        while len(self._inbox) >= LENGTH.size:
            end = LENGTH.size + check_length(LENGTH.unpack_from(self._inbox)[0])
            if len(self._inbox) < end:
                return
            message = decode_message(self._inbox[LENGTH.size : end])
            del self._inbox[:end]
            self._on_message(message)
