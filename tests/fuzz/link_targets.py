"""What a caller of the control link sends, before and after it has proved who it is."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from typing import Any, cast

from sparkmirror.errors import KafkaError
from sparkmirror.spark.link.client import LinkClient
from sparkmirror.spark.link.frames import (
    authenticate_task,
    authenticate_to_worker,
    encode_message,
    receive_message,
)
from sparkmirror.wire.net.event_loop import READ, EventLoop
from tests.fuzz.target import Choices, Target

SECRET = "secret"


class _Socket:
    """Has the fuzzed bytes to read, and forgets what is written."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def recv(self, size: int) -> bytes:
        piece, self._data = self._data[:size], self._data[size:]
        return piece

    def sendall(self, data: bytes) -> None:
        """It is not read."""

    def send(self, data: bytes) -> int:
        return len(data)

    def setblocking(self, flag: bool) -> None:
        """It never blocks."""

    def settimeout(self, seconds: float) -> None:
        """The same."""

    def fileno(self) -> int:
        return 0

    def close(self) -> None:
        """Nothing is open."""


class _Loop:
    """Watches nothing."""

    def watch(self, handler: object, events: int) -> None:
        """The target knows the link."""

    rewatch = watch

    def unwatch(self, handler: object) -> None:
        """The same."""

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """The target calls anyway."""


def run_link(data: bytes) -> None:
    """Either side of the handshake, plain messages, and the task's side in its loop."""
    choices = Choices(data)
    which = choices.number() % 4
    sock = cast("ssl.SSLSocket", _Socket(choices.rest()))
    try:
        if which == 0:
            authenticate_task(sock, lambda _: SECRET)
        elif which == 1:
            authenticate_to_worker(sock, SECRET, "task-0")
        elif which == 2:
            while True:
                assert isinstance(receive_message(sock), dict)
        else:
            _run_client(sock)
    except KafkaError:
        return


def _run_client(sock: ssl.SSLSocket) -> None:
    client = LinkClient(sock)
    got: list[dict[str, Any]] = []
    lost: list[KafkaError] = []
    client.attach(cast("EventLoop", _Loop()), got.append, lost.append)
    while not client.lost:
        client.on_ready(READ)
    assert lost
    assert all(isinstance(message, dict) for message in got)


def link_seeds() -> Iterator[bytes]:
    hello = encode_message({"task": "t-0", "proof": "00" * 32, "challenge": "11" * 32})
    start = encode_message({"type": "start", "partitions": [["t", 0, 5]], "settings": {"a": None}})
    for which in range(4):
        yield from (bytes((which,)) + data for data in (hello, start, hello + start))
    yield b"\1" + encode_message({"challenge": "22" * 32}) + encode_message({"proof": "33"})


TARGETS = (Target("link", run_link, link_seeds),)
