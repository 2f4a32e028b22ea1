"""The pipelined connection against a peer that the test plays, byte by byte."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from sparkmirror.errors import KafkaError, RemoteProtocolError, TransportError
from sparkmirror.wire.net.buffer_pool import BufferPool, PooledBuffer
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.net.event_loop import EventLoop
from sparkmirror.wire.net.frames import SCRATCH_BYTES
from sparkmirror.wire.net.stream import PlainStream

API = (3, 7)
WAIT_SECONDS = 20.0


class Sent(NamedTuple):
    """A request as the peer sees it."""

    api: tuple[int, int]
    correlation: int
    client_id: bytes
    body: bytes


class Rig:
    """A connection, its peer, and everything that was reported."""

    def __init__(self) -> None:
        self.now = 0.0
        self.loop = EventLoop(lambda: self.now)
        self.pool = BufferPool(1 << 20)
        self.events: list[str] = []
        self.responses: list[bytes] = []
        self.buffers: list[PooledBuffer | None] = []
        self.failures: list[KafkaError] = []
        with socket.create_server(("127.0.0.1", 0)) as listener:
            host, port = listener.getsockname()
            self.connection = Connection(
                self.loop,
                PlainStream(host, port, -1, -1),
                "me",
                self.pool,
                on_open=lambda: self.events.append("open"),
                on_closed=lambda error: self.events.append(f"closed: {error}"),
            )
            self.peer, _ = listener.accept()
        self.peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        """Both ends."""
        self.connection.fail(TransportError("the test is over"))
        self.peer.close()
        self.loop.close()

    def open(self) -> None:
        """Finish the connect."""
        self.run_until(lambda: "open" in self.events)

    def run_until(self, done: Callable[[], bool]) -> None:
        """The loop's clock stands still, so turns are counted."""
        for _ in range(500):
            if done():
                return
            self.loop.run_once(0.01)
        pytest.fail(f"{self.events}, {len(self.responses)} responses, {self.failures}")

    def request(self, body: bytes = b"", *, keep: bool = False, timeout: float = 10.0) -> None:
        """Send one request whose response is noted."""

        def on_response(view: memoryview, buffer: PooledBuffer | None) -> None:
            self.responses.append(bytes(view))
            self.buffers.append(buffer)

        self.connection.send(API, [body], on_response, self.failures.append, timeout, keep=keep)

    def read_request(self) -> Sent:
        """The next request that the peer has received."""
        size, key, version, correlation, name = struct.unpack(">ihhih", self._read(14))
        rest = self._read(size - 10)
        return Sent((key, version), correlation, rest[:name], rest[name:])

    def _read(self, size: int) -> bytes:
        self.peer.settimeout(WAIT_SECONDS)
        data = b""
        while len(data) < size:
            data += self.peer.recv(size - len(data))
        return data


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.close()


def frame(correlation: int, body: bytes) -> bytes:
    return struct.pack(">ii", 4 + len(body), correlation) + body


# -- requests -------------------------------------------------------------------------------------


def test_requests_are_framed_with_header_and_client_id(rig: Rig) -> None:
    rig.open()
    rig.request(b"body")
    rig.request()
    assert rig.read_request() == Sent(API, 1, b"me", b"body")
    assert rig.read_request() == Sent(API, 2, b"me", b"")
    assert rig.connection.in_flight == 2


def test_requests_that_others_follow_leave_with_the_flush(rig: Rig) -> None:
    rig.open()
    for body in (b"first", b"second"):
        rig.connection.send(API, [body], lambda *_: None, rig.failures.append, 1.0, more=True)
    rig.peer.setblocking(False)
    with pytest.raises(BlockingIOError):
        rig.peer.recv(1)
    rig.connection.flush()
    assert [rig.read_request().body, rig.read_request().body] == [b"first", b"second"]


def test_a_closed_connection_has_nothing_to_flush(rig: Rig) -> None:
    rig.open()
    rig.connection.send(API, [b"body"], lambda *_: None, rig.failures.append, 1.0, more=True)
    rig.connection.fail(TransportError("gone"))
    rig.connection.flush()
    assert [str(failure) for failure in rig.failures] == ["gone"]


def test_a_flexible_header_has_tags(rig: Rig) -> None:
    rig.open()
    rig.connection.send(API, [b"a", b"b"], lambda *_: None, rig.failures.append, 1.0, flexible=True)
    assert rig.read_request().body == b"\0ab"


def test_requests_made_before_the_connection_is_open_leave_when_it_is(rig: Rig) -> None:
    rig.request(b"early")
    rig.open()
    assert rig.read_request().body == b"early"


def test_a_large_request_leaves_piece_by_piece(rig: Rig) -> None:
    rig.open()
    body = bytes(range(256)) * (1 << 14)
    rig.request(body)
    rig.request(b"next")
    rig.peer.setblocking(False)
    received = bytearray()

    def drained() -> bool:
        try:
            received.extend(rig.peer.recv(1 << 20))
        except BlockingIOError:
            return len(received) >= len(body) + 36
        return False

    rig.run_until(drained)
    assert received[16 : 16 + len(body)] == body
    assert received.endswith(b"next")


# -- responses ------------------------------------------------------------------------------------


def test_responses_in_single_bytes(rig: Rig) -> None:
    rig.open()
    rig.request()
    rig.request()
    for byte in frame(1, b"first") + frame(2, b"second"):
        rig.peer.send(bytes([byte]))
        rig.loop.run_once(0.01)
    rig.run_until(lambda: len(rig.responses) == 2)
    assert rig.responses == [b"first", b"second"]
    assert rig.connection.in_flight == 0


def test_kept_responses_in_single_bytes(rig: Rig) -> None:
    rig.open()
    rig.request(keep=True)
    rig.request(keep=True)
    for byte in frame(1, b"first") + frame(2, b"second"):
        rig.peer.send(bytes([byte]))
        rig.loop.run_once(0.01)
    rig.run_until(lambda: len(rig.responses) == 2)
    assert rig.responses == [b"first", b"second"]


def test_several_responses_in_one_read(rig: Rig) -> None:
    rig.open()
    for _ in range(5):
        rig.request()
    rig.peer.sendall(b"".join(frame(at, b"%d" % at) for at in range(1, 6)))
    rig.run_until(lambda: len(rig.responses) == 5)
    assert rig.responses == [b"1", b"2", b"3", b"4", b"5"]


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("size", [SCRATCH_BYTES - 9, SCRATCH_BYTES, SCRATCH_BYTES + 1, 3 << 20])
def test_large_responses_between_small_ones(rig: Rig, size: int, keep: bool) -> None:
    rig.open()
    large = (bytes(range(251)) * (size // 251 + 1))[:size]
    rig.request()
    rig.request(keep=keep)
    rig.request()
    data = memoryview(frame(1, b"small") + frame(2, large) + frame(3, b"last"))
    rig.peer.setblocking(False)
    at = 0

    def sent_and_received() -> bool:
        nonlocal at
        with contextlib.suppress(BlockingIOError):
            at += rig.peer.send(data[at : at + 100_000])
        return len(rig.responses) == 3

    rig.run_until(sent_and_received)
    assert rig.responses == [b"small", large, b"last"]
    assert [buffer is not None for buffer in rig.buffers] == [False, keep, False]
    if keep:
        assert rig.pool.used_bytes >= size
        buffer = rig.buffers[1]
        assert buffer is not None
        buffer.release()
    assert rig.pool.used_bytes == 0


def test_a_kept_response_survives_the_next_one(rig: Rig) -> None:
    rig.open()
    views: list[memoryview] = []
    for _ in range(2):
        rig.connection.send(
            API, [], lambda view, _: views.append(view), rig.failures.append, 1.0, keep=True
        )
    rig.peer.sendall(frame(1, b"first") + frame(2, b"second"))
    rig.run_until(lambda: len(views) == 2)
    assert [bytes(view) for view in views] == [b"first", b"second"]


def test_a_response_without_a_body(rig: Rig) -> None:
    rig.open()
    rig.request()
    rig.peer.sendall(frame(1, b""))
    rig.run_until(lambda: bool(rig.responses))
    assert rig.responses == [b""]


def test_a_request_made_while_a_response_is_taken(rig: Rig) -> None:
    rig.open()
    rig.connection.send(API, [b"1"], lambda *_: rig.request(b"2"), rig.failures.append, 1.0)
    rig.read_request()
    rig.peer.sendall(frame(1, b""))
    rig.loop.run_once(1.0)
    assert rig.read_request().body == b"2"
    assert rig.connection.in_flight == 1


# -- the end --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(frame(2, b"x"), "sent a response to no request", id="wrong correlation"),
        pytest.param(
            frame(1, b"x") + frame(2, b"y") + frame(3, b"z"),
            "sent a response to no request",
            id="one too many",
        ),
        pytest.param(struct.pack(">ii", 3, 1), "sent a response of 3 bytes", id="too short"),
        pytest.param(struct.pack(">ii", -1, 1), "sent a response of -1 bytes", id="negative"),
    ],
)
def test_nonsense_ends_the_connection(rig: Rig, data: bytes, message: str) -> None:
    rig.open()
    rig.request()
    rig.request()
    rig.peer.sendall(data)
    rig.run_until(lambda: rig.connection.closed)
    assert message in rig.events[-1]
    assert len(rig.responses) + len(rig.failures) == 2
    assert all(isinstance(error, RemoteProtocolError) for error in rig.failures)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("start", [b"", frame(1, bytes(1 << 20))[:1000]], ids=["idle", "midway"])
def test_all_requests_fail_when_the_peer_hangs_up(rig: Rig, start: bytes, keep: bool) -> None:
    rig.open()
    for _ in range(3):
        rig.request(keep=keep)
    for _ in range(3):
        rig.read_request()
    rig.peer.sendall(start)
    rig.peer.close()
    rig.run_until(lambda: rig.connection.closed)
    assert len(rig.failures) == 3
    assert all(isinstance(error, TransportError) for error in rig.failures)
    assert [text for text in rig.events if text.startswith("closed")] == [rig.events[-1]]
    assert rig.pool.used_bytes == 0
    assert rig.responses == []


def test_a_reader_that_finds_a_response_senseless_ends_the_connection(rig: Rig) -> None:
    rig.open()

    def refuse(view: memoryview, _: PooledBuffer | None) -> None:
        raise RemoteProtocolError(f"cannot read {bytes(view)!r}")

    rig.connection.send(API, [], refuse, rig.failures.append, 1.0)
    rig.request()
    rig.peer.sendall(frame(1, b"what"))
    rig.run_until(lambda: rig.connection.closed)
    assert "cannot read b'what'" in rig.events[-1]
    assert len(rig.failures) == 2


def test_a_request_that_waits_too_long_ends_the_connection(rig: Rig) -> None:
    rig.open()
    rig.request(timeout=10.0)
    rig.connection.fail_if_overdue(9.0)
    rig.connection.fail_if_overdue(9.5)
    assert not rig.connection.closed
    rig.connection.fail_if_overdue(11.0)
    assert rig.connection.closed
    (error,) = rig.failures
    assert isinstance(error, TransportError)
    assert "no response" in str(error)


def test_nothing_is_overdue_without_requests(rig: Rig) -> None:
    rig.open()
    rig.connection.fail_if_overdue(1e9)
    assert not rig.connection.closed


def test_it_ends_once(rig: Rig) -> None:
    rig.open()
    rig.request()
    rig.connection.fail(TransportError("first"))
    rig.connection.fail(TransportError("second"))
    assert rig.events == ["open", "closed: first"]
    assert [str(error) for error in rig.failures] == ["first"]


def test_a_request_on_a_closed_connection_fails_at_once(rig: Rig) -> None:
    rig.open()
    rig.connection.fail(TransportError("over"))
    rig.request()
    assert len(rig.failures) == 1
    assert rig.connection.in_flight == 0


def test_a_port_that_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    loop = EventLoop()
    events: list[KafkaError] = []
    try:
        stream = PlainStream("127.0.0.1", port, -1, -1)
    except TransportError as error:
        events.append(error)
    else:
        Connection(loop, stream, "me", BufferPool(0), on_open=lambda: None, on_closed=events.append)
    loop.run_until(lambda: bool(events), WAIT_SECONDS)
    loop.close()
    assert "ECONNREFUSED" in str(events[0])
