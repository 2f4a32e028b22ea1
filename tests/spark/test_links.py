"""Both ends of the control link over loopback: handshake, start message, messages, end."""

from __future__ import annotations

import dataclasses
import hashlib
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from sparkmirror.errors import AuthenticationError, KafkaError, TransportError
from sparkmirror.spark.link.certificate import make_identity
from sparkmirror.spark.link.client import LinkClient, open_link
from sparkmirror.spark.link.frames import (
    encode_message,
)
from sparkmirror.spark.link.server import LinkServer, TaskConnection
from sparkmirror.spark.link.task_token import TaskToken
from tests.spark.link_ends import WAIT_SECONDS, Peer, Task


def test_the_start_message_comes_first_then_messages_both_ways(peer: Peer, task: Task) -> None:
    assert task.begin() == {"type": "start", "number": 0}
    task.link.send({"type": "numbers", "records": 3})
    assert peer.messages.get(timeout=WAIT_SECONDS) == {"type": "numbers", "records": 3}
    link = peer.links.get(timeout=WAIT_SECONDS)
    link.send({"type": "assign"})
    link.send({"type": "stop"})
    task.run_until(lambda: len(task.messages) == 2)
    assert task.messages == [{"type": "assign"}, {"type": "stop"}]


def test_messages_sent_before_the_loop_runs(peer: Peer, task: Task) -> None:
    task.link.send({"type": "log", "text": "early"})
    assert peer.messages.get(timeout=WAIT_SECONDS)["text"] == "early"


def test_a_large_message_in_both_directions(peer: Peer, task: Task) -> None:
    large = {"text": "x" * 3_000_000}
    task.begin()
    task.link.send(large)
    link = peer.links.get(timeout=WAIT_SECONDS)
    sender = threading.Thread(target=link.send, args=(large,))
    sender.start()
    task.run_until(lambda: bool(task.messages))
    sender.join(WAIT_SECONDS)
    assert task.messages == [large]
    assert peer.messages.get(timeout=WAIT_SECONDS) == large


def test_a_message_queued_before_closing_arrives(peer: Peer, task: Task) -> None:
    task.begin()
    task.link.send({"text": "x" * 1_000_000})
    task.link.send({"clean": True})
    task.link.close()
    assert len(peer.messages.get(timeout=WAIT_SECONDS)["text"]) == 1_000_000
    assert peer.messages.get(timeout=WAIT_SECONDS) == {"clean": True}
    assert peer.gone.get(timeout=WAIT_SECONDS) is peer.links.get(timeout=WAIT_SECONDS)


def test_a_newer_attempt_cuts_the_older_off(server: LinkServer, peer: Peer, task: Task) -> None:
    task.begin()
    older = peer.links.get(timeout=WAIT_SECONDS)
    second = Task(server)
    second.begin()
    task.run_until(lambda: bool(task.lost))
    assert isinstance(task.lost[0], TransportError)
    assert peer.gone.get(timeout=WAIT_SECONDS) is older
    newer = peer.links.get(timeout=WAIT_SECONDS)
    newer.send({"type": "stop"})
    second.run_until(lambda: bool(second.messages))
    assert peer.gone.empty()
    second.close()
    assert peer.gone.get(timeout=WAIT_SECONDS) is newer


def test_a_task_that_is_not_expected_gets_nothing(server: LinkServer) -> None:
    unknown = Task(server, "unknown")
    with pytest.raises(TransportError):
        unknown.begin()
    unknown.close()


def test_a_task_that_is_forgotten_is_cut_off(server: LinkServer, peer: Peer, task: Task) -> None:
    task.begin()
    server.forget("t")
    task.run_until(lambda: bool(task.lost))
    assert peer.gone.get(timeout=WAIT_SECONDS)


def test_a_worker_that_ends_is_noticed(server: LinkServer, peer: Peer, task: Task) -> None:
    task.begin()
    server.close()
    task.run_until(lambda: bool(task.lost))
    assert task.link.lost
    task.link.send({"type": "numbers"})  # it is lost, and nothing breaks


def test_nonsense_on_an_open_link_ends_it(server: LinkServer, peer: Peer) -> None:
    sock = open_link(server.token("127.0.0.1", "t"))
    with sock:
        sock.sendall(b"\0\0\0\2{]")
        assert peer.gone.get(timeout=WAIT_SECONDS)
    assert peer.messages.empty()


def test_the_reason_for_no_start_message_reaches_the_task(server: LinkServer, peer: Peer) -> None:
    peer.failure = TransportError("the offsets topic cannot be read")
    task = Task(server)
    with pytest.raises(KafkaError, match="the offsets topic cannot be read"):
        task.begin()
    task.close()


def wait_for(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# -- TLS -------------------------------------------------------------------------------------------


def test_everything_is_encrypted(server: LinkServer, peer: Peer) -> None:
    """What passes between both ends shows neither the start message nor the task."""
    listener = socket.create_server(("127.0.0.1", 0))
    heard = bytearray()
    relay = threading.Thread(target=listen_in, args=(listener, server.port, heard))
    relay.start()
    token = dataclasses.replace(server.token("127.0.0.1", "t"), port=listener.getsockname()[1])
    link = LinkClient(open_link(token))
    assert link.wait_for_start()["type"] == "start"
    link.send({"type": "log", "text": "a word"})
    assert peer.messages.get(timeout=WAIT_SECONDS)["text"] == "a word"
    link.close()
    relay.join(WAIT_SECONDS)
    listener.close()
    assert len(heard) > 500
    for word in (b"start", b"challenge", b"proof", b"a word", token.secret.encode()):
        assert word not in heard


def listen_in(listener: socket.socket, port: int, heard: bytearray) -> None:
    """Pass everything on, both ways, and keep a copy."""
    near, _ = listener.accept()
    with near, socket.create_connection(("127.0.0.1", port)) as far:
        back = threading.Thread(target=pass_on, args=(far, near, heard))
        back.start()
        pass_on(near, far, heard)
        back.join(WAIT_SECONDS)


def pass_on(source: socket.socket, target: socket.socket, heard: bytearray) -> None:
    with suppress(OSError):  # either side may hang up first
        while piece := source.recv(1 << 16):
            heard += piece
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


def test_a_worker_with_another_certificate_learns_nothing(server: LinkServer) -> None:
    """A process in between that even knows the secret."""
    other = LinkServer("127.0.0.1")
    mine = server.token("127.0.0.1", "t")
    with pytest.raises(AuthenticationError, match="another certificate than the task's worker"):
        open_link(dataclasses.replace(mine, port=other.port))
    other.close()


def test_a_worker_without_tls_gets_nothing() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    heard: queue.Queue[bytes] = queue.Queue()

    def respond() -> None:
        sock, _ = listener.accept()
        with sock:
            sock.sendall(encode_message({"challenge": "0" * 64}))
            heard.put(sock.recv(1 << 16))

    thread = threading.Thread(target=respond)
    thread.start()
    token = TaskToken("127.0.0.1", listener.getsockname()[1], "the secret", "0" * 64, "t")
    with pytest.raises(TransportError, match="no TLS with the worker"):
        open_link(token)
    thread.join(WAIT_SECONDS)
    listener.close()
    assert b"proof" not in heard.get(timeout=WAIT_SECONDS)


def test_every_worker_has_a_certificate_of_its_own() -> None:
    first, second = make_identity(), make_identity()
    assert first.fingerprint != second.fingerprint
    assert len(first.fingerprint) == hashlib.sha256().digest_size * 2
    assert first.context.minimum_version is ssl.TLSVersion.TLSv1_3


def test_threads_that_write_and_one_that_reads(peer: Peer, task: Task) -> None:
    """Both directions at once, from several threads of the worker: TLS allows one at a time."""
    task.begin()
    link = peer.links.get(timeout=WAIT_SECONDS)
    text = "x" * 20_000

    def talk() -> None:
        for _ in range(50):
            link.send({"text": text})

    threads = [threading.Thread(target=talk) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(200):
        task.link.send({"number": number, "text": text})
        task.loop.run_once(0.01)
    task.run_until(lambda: len(task.messages) == 200)
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert {message["text"] for message in task.messages} == {text}
    numbers = [peer.messages.get(timeout=WAIT_SECONDS)["number"] for _ in range(200)]
    assert numbers == list(range(200))


def test_messages_of_another_thread_wait_for_the_next_message(peer: Peer, task: Task) -> None:
    task.begin()
    other = threading.Thread(target=task.link.send, args=({"text": "from a thread"},))
    other.start()
    other.join(WAIT_SECONDS)
    assert peer.messages.empty()
    task.link.send({"type": "numbers"})
    received = [peer.messages.get(timeout=WAIT_SECONDS) for _ in range(2)]
    assert received == [{"text": "from a thread"}, {"type": "numbers"}]


def test_messages_that_came_with_the_start_message_are_not_forgotten(server: LinkServer) -> None:
    """They may be in one TLS record with them: then the socket shows nothing more."""

    class Hasty(Peer):
        def on_hello(self, link: TaskConnection) -> None:
            frames = [encode_message({"type": "start"}), encode_message({"type": "stop"})]
            link._channel.sendall(b"".join(frames))

    server.expect("t", Hasty())
    task = Task(server)
    assert task.begin() == {"type": "start"}
    task.run_until(lambda: task.messages == [{"type": "stop"}])
    task.close()


def test_a_failed_handshake_leaves_no_socket(server: LinkServer) -> None:
    with pytest.raises(KafkaError):
        open_link(dataclasses.replace(server.token("127.0.0.1", "t"), secret="another secret"))


def test_close_ends_the_accepting_thread() -> None:
    before = set(threading.enumerate())
    server = LinkServer("127.0.0.1")
    accepting = set(threading.enumerate()) - before
    server.close()
    wait_for(lambda: not any(thread.is_alive() for thread in accepting))
