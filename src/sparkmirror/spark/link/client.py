"""The task's end of the control link.

Runs on: executor. Blocking until the orders have come, then part of the copy loop.
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
from sparkmirror.spark.link.frames import (
    LENGTH,
    REFUSED,
    LinkMessage,
    check_length,
    decode_message,
    encode_message,
    greet_worker,
    receive_message,
    send_message,
)
from sparkmirror.spark.link.task_token import TaskToken
from sparkmirror.spark.link.tls import RECORD_BYTES, call_over_tls
from sparkmirror.wire.net.event_loop import READ, WRITE, EventLoop

CONNECT_SECONDS = 10.0
# The worker reads the positions of all partitions before it answers.
ORDERS_SECONDS = 120.0
# We report every second: when nothing of it was acknowledged for so long, the network between is
# cut, and the worker may have given our partitions to another attempt.
UNHEARD_MS = 15_000
READ_BYTES = 1 << 16


def open_link(ticket: TaskToken) -> ssl.SSLSocket:
    """Call the worker, and let both prove who they are; the orders come next."""
    sock = call_over_tls(_call(ticket.host, ticket.port), ticket.fingerprint)
    try:
        greet_worker(sock, ticket.secret, ticket.task)
    except KafkaError:
        sock.close()
        raise
    return sock


def _call(host: str, port: int) -> socket.socket:
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            sock = socket.create_connection((host, port), timeout=CONNECT_SECONDS)
            break
        except OSError as error:
            if time.monotonic() > deadline:
                text = f"control link to the worker at {host}:{port}: {error}"
                raise TransportError(text) from error
            time.sleep(0.2)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNHEARD_MS)
    return sock


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
        # Said by the worker while it was asked something.
        self._early: list[LinkMessage] = []
        self.lost = False

    def wait_for_orders(self) -> LinkMessage:
        """Block until the worker tells what to do; it may be reading positions first."""
        self._socket.settimeout(ORDERS_SECONDS)
        orders = receive_message(self._socket)
        if orders.get("type") == REFUSED:
            raise KafkaError(f"no orders from the worker: {orders['reason']}")
        return orders

    def ask(self, question: LinkMessage, kind: str) -> LinkMessage:
        """Block until the worker answers with such a message; others wait for `attach`."""
        self.send(question)
        while (said := receive_message(self._socket)).get("type") != kind:
            self._early.append(said)
        return said

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
        # TLS may have taken in more than was asked for: the socket does not tell of that.
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
                self._outbox.clear()  # nobody is left to read it
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
