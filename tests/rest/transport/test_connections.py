"""Connections that keep the server waiting are closed; those that make progress are not."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from sparkmirror.rest.connect_api import make_app
from sparkmirror.rest.request import RestOptions
from sparkmirror.rest.rest_server import RestServer
from sparkmirror.rest.transport import connections
from tests.rest.fake_herder import FakeHerder
from tests.rest.requests import HEARTBEAT, NAME, request

IDLE_SECONDS = 0.5
HEAD = b"PUT /connectors/x/config HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"


@pytest.fixture
def server(herder: FakeHerder) -> Iterator[RestServer]:
    with RestServer([("127.0.0.1", 0)], idle_seconds=IDLE_SECONDS) as server:
        yield server.start(make_app(herder))


@contextmanager
def connected(server: RestServer) -> Iterator[socket.socket]:
    with closing(socket.create_connection(("127.0.0.1", server.ports[0]), timeout=20)) as sock:
        yield sock


def read_to_the_end(sock: socket.socket) -> bytes:
    """Everything until the server closes; fails by the socket's timeout if it does not."""
    parts = []
    try:
        while part := sock.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def drip(sock: socket.socket, data: bytes, every_seconds: float) -> int:
    """Send byte by byte until the server has had enough; how many bytes it took."""
    for at in range(len(data)):
        try:
            sock.sendall(data[at : at + 1])
        except (ConnectionResetError, BrokenPipeError):
            return at
        time.sleep(every_seconds)
    return len(data)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: h\r\n",
        HEAD + b"Content-Length: 100\r\n\r\n",
        HEAD + b'Content-Length: 100\r\n\r\n{"a":',
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n",
    ],
    ids=["nothing", "part of a line", "part of a head", "no body", "half a body", "half a chunk"],
)
def test_a_client_that_stops_is_disconnected(server: RestServer, sent: bytes) -> None:
    with connected(server) as sock:
        sock.sendall(sent)
        assert b" 200 " not in read_to_the_end(sock)


def test_an_idle_connection_is_closed_after_its_response(server: RestServer) -> None:
    with connected(server) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        assert b" 200 OK" in read_to_the_end(sock)


def test_a_head_that_drips_has_a_deadline(server: RestServer) -> None:
    with connected(server) as sock:
        head = b"GET / HTTP/1.1\r\nHost: h\r\n" + b"X-A: b\r\n" * 10_000
        assert drip(sock, head, IDLE_SECONDS / 10) < 1000


def test_a_body_that_makes_progress_is_waited_for(server: RestServer) -> None:
    body = b'{"connector.class": "x"}'
    with connected(server) as sock:
        sock.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body))
        assert drip(sock, body, IDLE_SECONDS / 10) == len(body)
        assert sock.recv(100).startswith(b"HTTP/1.1 ")


def test_a_body_that_continues_after_the_response_is_not_read_for_ever(herder: FakeHerder) -> None:
    with RestServer([("127.0.0.1", 0)], idle_seconds=IDLE_SECONDS) as server:
        server.start(make_app(herder, RestOptions(request_timeout_seconds=0.2)))
        with connected(server) as sock:
            sock.sendall(HEAD + b"Content-Length: 100000\r\n\r\n")
            assert drip(sock, b"x" * 100_000, IDLE_SECONDS / 10) < 1000


def test_an_unread_response_times_out(server: RestServer, herder: FakeHerder) -> None:
    config = HEARTBEAT | {"name": NAME, "x": "x" * 900_000}
    url = f"http://127.0.0.1:{server.ports[0]}"
    assert request(url, "PUT", f"/connectors/{NAME}/config", config).status_code == 201
    with closing(socket.socket()) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(20)
        sock.connect(("127.0.0.1", server.ports[0]))
        sock.sendall(b"GET /connectors?expand=info HTTP/1.1\r\nHost: h\r\n\r\n" * 20)
        wait_until(lambda: not connections_of(server))


def connections_of(server: RestServer) -> int:
    return sum(len(each.server_state.connections) for each in server._servers)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_request_that_takes_long_is_not_cut_off(server: RestServer, herder: FakeHerder) -> None:
    herder.gate.clear()
    threading.Timer(4 * IDLE_SECONDS, herder.gate.set).start()
    url = f"http://127.0.0.1:{server.ports[0]}"
    assert request(url, "PUT", f"/connectors/{NAME}/config", HEARTBEAT).status_code == 201


def test_connections_beyond_the_limit_are_dropped(
    herder: FakeHerder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "_MOST_CONNECTIONS", 3)
    monkeypatch.setattr(connections.GuardedProtocol, "_warned_at", float("-inf"))
    with RestServer([("127.0.0.1", 0)]) as server:
        server.start(make_app(herder))
        kept = [socket.create_connection(("127.0.0.1", server.ports[0])) for _ in range(3)]
        wait_until(lambda: connections_of(server) == 3)
        for _ in range(2):
            with connected(server) as sock:
                assert read_to_the_end(sock) == b""
        kept.pop().close()
        wait_until(lambda: connections_of(server) == 2)
        assert request(f"http://127.0.0.1:{server.ports[0]}", "GET", "/").status_code == 200
        for sock in kept:
            sock.close()
    warnings = [text for text in caplog.messages if "its maximum" in text]
    assert len(warnings) == 1
