"""Who may connect over the control link, and what rejected callers learn."""

from __future__ import annotations

import dataclasses
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

import pytest

from sparkmirror.errors import KafkaError
from sparkmirror.spark.link import callers as link_callers
from sparkmirror.spark.link import server as link_server
from sparkmirror.spark.link.callers import Callers
from sparkmirror.spark.link.client import open_link
from sparkmirror.spark.link.frames import (
    LARGEST_HELLO,
    LENGTH,
    encode_message,
    receive_message,
)
from sparkmirror.spark.link.server import LinkServer
from sparkmirror.spark.link.tls import connect_tls
from tests.spark.link_ends import WAIT_SECONDS, Peer, Task


def test_a_caller_without_the_secret_is_rejected(
    server: LinkServer, peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    token = dataclasses.replace(server.token("127.0.0.1", "t"), secret="another secret")
    with pytest.raises(KafkaError):
        open_link(token)
    wait_for(lambda: "was rejected" in caplog.text)
    assert peer.links.empty()


def test_the_token_of_a_task_opens_no_link_of_another(server: LinkServer, peer: Peer) -> None:
    other = Peer()
    server.expect("other", other)
    token = server.token("127.0.0.1", "t")
    assert token.secret != server.token("127.0.0.1", "other").secret
    with pytest.raises(KafkaError):
        open_link(dataclasses.replace(token, task="other"))
    assert other.links.empty()
    open_link(token).close()
    assert peer.links.get(timeout=WAIT_SECONDS)


def test_unauthenticated_callers_are_limited_and_lock_out_no_task(
    server: LinkServer, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_callers, "SPARE_CALLERS", 8)
    with ExitStack() as stack:
        idle = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), WAIT_SECONDS))
            for _ in range(50)
        ]
        # All but ten (eight, and two for the task) are dropped, the oldest first.
        for sock in idle[:40]:
            assert sock.recv(1) == b""
        wait_for(lambda: len(server._callers) == 10)
        caller = Task(server)
        assert caller.begin()["type"] == "start"
        caller.close()
    wait_for(lambda: len(server._callers) == 0)


def test_links_that_have_proved_themselves_do_not_count(server: LinkServer, peer: Peer) -> None:
    caller = Task(server)
    caller.begin()
    wait_for(lambda: len(server._callers) == 0)
    caller.close()


def test_the_address_with_most_callers_gives_way(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_callers, "SPARE_CALLERS", 3)
    callers = Callers(lambda: 0)
    pairs = [socket.socketpair() for _ in range(5)]
    hosts = ["good", "bad", "bad", "bad", "bad"]
    made = [callers.add(near, host) for (near, _), host in zip(pairs, hosts, strict=True)]
    assert [caller.host for caller in callers._all] == ["good", "bad", "bad"]
    for at in range(30):
        callers.log_rejected(f"bad:{at}", "it sends nothing")
    assert len(caplog.messages) == 21
    assert "further rejected callers" in caplog.messages[-1]
    for caller in made:
        caller.close()
    for pair in pairs:
        for sock in pair:
            sock.close()


def wait_for(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_caller_without_tls_is_rejected(
    server: LinkServer, peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_connection(("127.0.0.1", server.port), WAIT_SECONDS) as sock:
        sock.sendall(encode_message({"task": "t", "proof": "", "challenge": ""}))
        with suppress(ConnectionResetError):
            assert b"challenge" not in sock.recv(1000)
    wait_for(lambda: "was rejected: control link: a caller without TLS" in caplog.text)
    assert peer.links.empty()


def test_a_silent_caller_is_rejected_in_time(
    server: LinkServer, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte by byte does not help him."""
    monkeypatch.setattr(link_server, "HELLO_SECONDS", 3.0)
    began = time.monotonic()
    raw = socket.create_connection(("127.0.0.1", server.port), WAIT_SECONDS)
    with connect_tls(raw, server.token("", "").fingerprint) as sock:
        assert "challenge" in receive_message(sock)
        with pytest.raises((ConnectionError, ssl.SSLError)):
            send_slowly(sock, encode_message({"task": "t" * 10_000}))
    assert time.monotonic() - began < WAIT_SECONDS / 2
    assert peer.links.empty()


def send_slowly(sock: socket.socket, data: bytes) -> None:
    for byte in data:
        sock.sendall(bytes([byte]))
        time.sleep(0.05)


def test_a_caller_cannot_send_much_before_he_has_proved_anything(
    server: LinkServer, caplog: pytest.LogCaptureFixture
) -> None:
    raw = socket.create_connection(("127.0.0.1", server.port), WAIT_SECONDS)
    with connect_tls(raw, server.token("", "").fingerprint) as sock:
        sock.sendall(LENGTH.pack(LARGEST_HELLO + 1))
        wait_for(lambda: f"a message of {LARGEST_HELLO + 1} bytes" in caplog.text)
