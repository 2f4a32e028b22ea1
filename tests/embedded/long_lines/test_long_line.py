"""The long line, between a client and an echo: late, in windows, in order, and failing on order."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.embedded.long_lines.long_line import LongLine
from tests.clusters import wait_for

DELAY_SECONDS = 0.05
WINDOW_BYTES = 64 << 10
SILENT_SECONDS = 0.3


@pytest.fixture
def echo_port() -> Iterator[int]:
    """A server that sends back what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_serve, args=(listener,), daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def _serve(listener: socket.socket) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_echo, args=(client,), daemon=True).start()


def _echo(client: socket.socket) -> None:
    with client:
        try:
            while data := client.recv(1 << 16):
                client.sendall(data)
        except OSError:
            return  # cut


@pytest.fixture
def line(echo_port: int, tmp_path: Path) -> Iterator[LongLine]:
    with LongLine(tmp_path) as line:
        line.connect_port(echo_port)
        yield line


def connect(line: LongLine) -> socket.socket:
    return socket.create_connection(("127.0.0.1", line.port), 10.0)


def ask(client: socket.socket, data: bytes) -> bytes:
    """Send, and read as much; from a separate thread, because the line may be full."""
    sender = threading.Thread(target=client.sendall, args=(data,))
    sender.start()
    response = receive(client, len(data))
    sender.join()
    return response


def receive(client: socket.socket, size: int) -> bytes:
    got = bytearray()
    while len(got) < size:
        part = client.recv(size - len(got))
        if not part:
            break
        got += part
    return bytes(got)


def seconds_of(client: socket.socket, data: bytes) -> float:
    started_at = time.monotonic()
    assert ask(client, data) == data
    return time.monotonic() - started_at


def is_silent(client: socket.socket) -> bool:
    client.settimeout(SILENT_SECONDS)
    try:
        return not client.recv(1)
    except TimeoutError:
        return True
    finally:
        client.settimeout(10.0)


def test_one_way_takes_the_delay_and_a_new_connection_a_round_trip_more(line: LongLine) -> None:
    line.stretch(delay_seconds=DELAY_SECONDS)
    with connect(line) as client:
        first, second = seconds_of(client, b"first"), seconds_of(client, b"second")
    assert first >= 4 * DELAY_SECONDS
    assert 2 * DELAY_SECONDS <= second < first


def test_a_window_limits_what_is_under_way_and_so_the_rate(line: LongLine) -> None:
    data = random.Random(1).randbytes(8 * WINDOW_BYTES)
    line.stretch(delay_seconds=DELAY_SECONDS)
    with connect(line) as client:
        seconds_of(client, b"handshake")
        free = seconds_of(client, data)
        line.stretch(delay_seconds=DELAY_SECONDS, window_bytes=WINDOW_BYTES)
        bound = seconds_of(client, data)
    # The first window is on its way at once, each other one a round trip later.
    assert bound >= 7 * 2 * DELAY_SECONDS > free


def test_bytes_come_in_order_at_any_size(line: LongLine) -> None:
    line.stretch(delay_seconds=0.01, window_bytes=300_000)
    data = random.Random(2).randbytes(3_000_001)
    with connect(line) as one, connect(line) as other:
        assert ask(one, data) == data
        assert ask(other, data[::-1]) == data[::-1]
    stats = line.stats()
    assert stats.up == stats.down == 2 * len(data)
    assert stats.most_in_flight <= 300_000
    assert stats.accepted == 2


def test_an_end_of_stream_comes_behind_the_last_byte(line: LongLine) -> None:
    line.stretch(delay_seconds=DELAY_SECONDS)
    with connect(line) as client:
        client.sendall(b"last")
        client.shutdown(socket.SHUT_WR)
        assert receive(client, 100) == b"last"
    wait_for(lambda: line.stats().open == 0, within=10.0, describe="the connection is closed")


def test_a_stall_delays_everything_loses_nothing_and_admits_no_connection(line: LongLine) -> None:
    with connect(line) as client:
        assert ask(client, b"before") == b"before"
        line.stall()
        client.sendall(b"waits")
        assert is_silent(client)
        with pytest.raises(TimeoutError):
            socket.create_connection(("127.0.0.1", line.port), SILENT_SECONDS)
        line.resume()
        assert receive(client, 5) == b"waits"
    with connect(line) as client:
        assert ask(client, b"after") == b"after"
    assert line.stats().accepted == 2


def test_a_cut_resets_and_rejects_until_it_is_mended(line: LongLine) -> None:
    with connect(line) as client:
        assert ask(client, b"before") == b"before"
        line.cut()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    with pytest.raises(ConnectionRefusedError):
        connect(line)
    line.mend()
    with connect(line) as client:
        assert ask(client, b"after") == b"after"


def test_a_frozen_connection_stops_at_the_byte_and_new_ones_work(line: LongLine) -> None:
    with connect(line) as frozen, connect(line) as fresh:
        assert ask(frozen, b"before") == b"before"
        line.freeze(after_bytes=3)
        frozen.sendall(b"abcdef")
        assert receive(frozen, 3) == b"abc"
        assert is_silent(frozen)
        assert line.stats().frozen == 1
        line.freeze()
        with connect(line) as later:
            assert ask(later, b"works") == b"works"
        assert line.stats().frozen == 2
        line.thaw()
        assert receive(frozen, 3) == b"def"
        assert ask(fresh, b"too") == b"too"


def test_a_server_that_is_not_there_resets_the_client(line: LongLine) -> None:
    # A port that is taken, and where nothing listens: no other program gets it.
    with socket.socket() as gone:
        gone.bind(("127.0.0.1", 0))
        line.connect_port(gone.getsockname()[1])
        # The reset may come before the client has heard of its connection.
        with pytest.raises(ConnectionResetError), connect(line) as client:
            client.recv(1)
        assert line.stats().refused == 1
