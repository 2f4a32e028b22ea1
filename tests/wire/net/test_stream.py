"""The TCP stream against a listening socket of the test."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator

import pytest

from sparkmirror.errors import TransportError
from sparkmirror.wire.net.stream import MOST_PIECES, PlainStream

WAIT_SECONDS = 20.0


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock


@pytest.fixture
def stream(listener: socket.socket) -> Iterator[PlainStream]:
    stream = connect(listener)
    yield stream
    stream.close()


@pytest.fixture
def peer(listener: socket.socket, stream: PlainStream) -> Iterator[socket.socket]:
    sock, _ = listener.accept()
    sock.settimeout(WAIT_SECONDS)
    with sock:
        yield sock


def connect(listener: socket.socket) -> PlainStream:
    host, port = listener.getsockname()
    stream = PlainStream(host, port, send_buffer=-1, receive_buffer=-1)
    wait(stream, for_write=True)
    assert stream.finish_connect()
    return stream


def wait(stream: PlainStream, *, for_write: bool = False) -> None:
    """Until the socket is ready, as the loop would."""
    poll = select.poll()
    poll.register(stream.fileno(), select.POLLOUT if for_write else select.POLLIN)
    assert poll.poll(WAIT_SECONDS * 1000)


def receive(stream: PlainStream, size: int) -> bytes:
    into = memoryview(bytearray(size))
    return bytes(into[: stream.receive(into)])


def test_nothing_to_read_is_zero_bytes(stream: PlainStream, peer: socket.socket) -> None:
    assert receive(stream, 10) == b""


def test_bytes_both_ways(stream: PlainStream, peer: socket.socket) -> None:
    peer.sendall(b"response")
    wait(stream)
    assert receive(stream, 100) == b"response"
    sent = stream.send([b"one ", bytearray(b"two "), memoryview(b"three")])
    assert sent == 13
    assert peer.recv(100) == b"one two three"


def test_more_pieces_than_the_system_takes_at_once(
    stream: PlainStream, peer: socket.socket
) -> None:
    assert stream.send([b"x"] * (MOST_PIECES + 500)) == MOST_PIECES


def test_a_slow_other_side_takes_nothing(stream: PlainStream, peer: socket.socket) -> None:
    piece = bytes(1 << 20)
    while stream.send([piece]):
        pass
    assert stream.send([piece]) == 0


def test_the_end_of_the_stream(stream: PlainStream, peer: socket.socket) -> None:
    peer.close()
    wait(stream)
    with pytest.raises(TransportError, match="the broker closed the connection"):
        receive(stream, 10)


def test_a_reset_while_reading_and_writing(stream: PlainStream, peer: socket.socket) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    peer.close()
    wait(stream)
    with pytest.raises(TransportError, match=f"read from {stream.address}"):
        receive(stream, 10)
    with pytest.raises(TransportError, match=f"write to {stream.address}"):
        stream.send([b"x"])


def test_wake_at_waits_for_that_many_bytes(stream: PlainStream, peer: socket.socket) -> None:
    poll = select.poll()
    poll.register(stream.fileno(), select.POLLIN)
    stream.wake_at(1000)
    peer.sendall(bytes(999))
    assert poll.poll(50) == []
    peer.sendall(bytes(1))
    assert poll.poll(WAIT_SECONDS * 1000)
    assert len(receive(stream, 2000)) == 1000


def test_a_port_that_is_closed(listener: socket.socket) -> None:
    host, port = listener.getsockname()
    listener.close()
    with pytest.raises(TransportError, match=rf"connect to 127\.0\.0\.1:{port}: ECONNREFUSED"):
        refused(host, port)


def refused(host: str, port: int) -> None:
    """The refusal comes at once or when the socket becomes writable."""
    stream = PlainStream(host, port, -1, -1)
    try:
        wait(stream, for_write=True)
        stream.finish_connect()
    finally:
        stream.close()


def test_a_name_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(TransportError, match=r"connect to nowhere:9092: .*not known"):
        PlainStream("nowhere", 9092, -1, -1)


def test_buffer_sizes_are_set_when_given(listener: socket.socket) -> None:
    host, port = listener.getsockname()
    small = PlainStream(host, port, send_buffer=8192, receive_buffer=16384)
    default = PlainStream(host, port, send_buffer=-1, receive_buffer=-1)
    sizes = [
        each._socket.getsockopt(socket.SOL_SOCKET, option)
        for each in (small, default)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF)
    ]
    for each in (small, default):
        each.close()
    assert sizes[:2] == [2 * 8192, 2 * 16384]  # Linux doubles them for its own use
    assert sizes[0] < sizes[2]


def test_lines_that_were_forgotten_on_the_way_are_noticed(stream: PlainStream) -> None:
    names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
    found = [stream._socket.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in names]
    assert stream._socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert found == [60, 10, 6, 120_000]


def test_a_fixed_buffer_is_emptied_before_it_is_full(listener: socket.socket) -> None:
    host, port = listener.getsockname()
    stream = PlainStream(host, port, send_buffer=-1, receive_buffer=100_000)
    stream.wake_at(4 << 20)
    assert stream._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 25_000
    stream.wake_at(100)
    assert stream._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 100
    stream.close()
