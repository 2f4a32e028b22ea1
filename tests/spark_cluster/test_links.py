"""The control link: who may call, which attempt counts, and what a silent or refused task hears."""

from __future__ import annotations

import dataclasses
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from sparkmirror.errors import AuthenticationError, KafkaError, TransportError
from sparkmirror.spark.link import server as link_server
from sparkmirror.spark.link.certificate import make_identity
from sparkmirror.spark.link.client import LinkClient, open_link
from sparkmirror.spark.link.frames import LinkMessage, new_secret, receive_message, send_message
from sparkmirror.spark.link.server import LinkServer, TaskConnection
from sparkmirror.spark.link.task_token import TaskToken
from sparkmirror.spark.link.tls import accept_tls
from tests.clusters import wait_for

TASK = "a->b|MirrorSourceConnector-0"
START: LinkMessage = {"type": "start", "assigned": []}


class Peer:
    """Sends START to every task, or an error, and remembers what happened."""

    def __init__(self, error: KafkaError | None = None) -> None:
        self.error = error
        self.links: list[TaskConnection] = []
        self.gone: list[TaskConnection] = []
        self.messages: list[LinkMessage] = []

    def on_hello(self, link: TaskConnection) -> None:
        self.links.append(link)
        if self.error is not None:
            raise self.error
        link.send(START)

    def on_message(self, link: TaskConnection, message: LinkMessage) -> None:
        self.messages.append(message)

    def on_gone(self, link: TaskConnection) -> None:
        self.gone.append(link)


@pytest.fixture
def links() -> Iterator[LinkServer]:
    server = LinkServer("127.0.0.1")
    yield server
    server.close()


@pytest.fixture
def call(links: LinkServer) -> Iterator[Callable[..., LinkClient]]:
    """Call in as a task does."""
    opened: list[LinkClient] = []

    def call_in(task: str = TASK, secret: str = "") -> LinkClient:
        token = links.token("127.0.0.1", task)
        if secret:
            token = dataclasses.replace(token, secret=secret)
        opened.append(LinkClient(open_link(token)))
        return opened[-1]

    yield call_in
    for client in opened:
        client.close()


def await_gone(peer: Peer, count: int = 1) -> None:
    wait_for(lambda: len(peer.gone) == count, within=20, describe=lambda: f"{peer.gone} gone")


def test_task_gets_its_start_message_and_its_messages_arrive(
    links: LinkServer, call: Callable[..., LinkClient]
) -> None:
    peer = Peer()
    links.expect(TASK, peer)
    client = call()
    assert client.wait_for_start() == START
    client.send({"type": "numbers", "records": 1})
    wait_for(lambda: peer.messages, within=20)
    assert peer.messages == [{"type": "numbers", "records": 1}]
    client.close()
    await_gone(peer)
    assert not peer.gone[0].was_silent


def test_caller_without_the_secret_is_rejected(
    links: LinkServer, call: Callable[..., LinkClient]
) -> None:
    peer = Peer()
    links.expect(TASK, peer)
    with pytest.raises(KafkaError):
        call(secret=new_secret())
    assert peer.links == []


def test_task_does_not_trust_a_worker_without_the_secret() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    identity = make_identity()

    def pretend() -> None:
        sock, _ = listener.accept()
        line = accept_tls(sock, identity.context, 20.0)
        send_message(line, {"challenge": "00"})
        receive_message(line)
        send_message(line, {"proof": "00"})
        line.close()

    thread = threading.Thread(target=pretend)
    thread.start()
    port = listener.getsockname()[1]
    with pytest.raises(AuthenticationError, match="worker does not know the secret"):
        open_link(TaskToken("127.0.0.1", port, new_secret(), identity.fingerprint, TASK))
    thread.join()
    listener.close()


def test_newer_attempt_cuts_off_the_older(
    links: LinkServer, call: Callable[..., LinkClient], caplog: pytest.LogCaptureFixture
) -> None:
    peer = Peer()
    links.expect(TASK, peer)
    older = call()
    older.wait_for_start()
    newer = call()
    assert newer.wait_for_start() == START
    await_gone(peer)
    assert peer.gone == peer.links[:1]
    with pytest.raises(TransportError):
        older.wait_for_start()
    assert f"task {TASK} runs again" in caplog.text


def test_unknown_task_is_cut_off(call: Callable[..., LinkClient]) -> None:
    with pytest.raises(TransportError):
        call("a->b|MirrorSourceConnector-9").wait_for_start()


def test_task_without_start_message_gets_a_reason(
    links: LinkServer, call: Callable[..., LinkClient]
) -> None:
    peer = Peer(TransportError("read topic 'mm2-offsets.a.internal' on 'b': not done in 60 s"))
    links.expect(TASK, peer)
    with pytest.raises(KafkaError, match=r"no start message .*: read topic 'mm2-offsets"):
        call().wait_for_start()
    await_gone(peer)


def test_silent_task_is_given_up(
    links: LinkServer,
    call: Callable[..., LinkClient],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link_server, "SILENCE_SECONDS", 0.2)
    peer = Peer()
    links.expect(TASK, peer)
    call().wait_for_start()
    await_gone(peer)
    assert peer.gone[0].was_silent


def test_port_that_is_taken_is_named(links: LinkServer) -> None:
    with pytest.raises(TransportError, match=f"127.0.0.1:{links.port}.*choose another"):
        LinkServer("127.0.0.1", links.port)


def test_fixed_port_is_used() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    server = LinkServer("127.0.0.1", port)
    assert server.port == port
    server.close()
