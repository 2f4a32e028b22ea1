"""Both ends of the control link over loopback: hello, orders, messages, the end."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from sparkmirror.errors import KafkaError, TransportError
from sparkmirror.spark.link_client import LinkClient, open_link
from sparkmirror.spark.link_frames import Message, greet_worker
from sparkmirror.spark.link_server import Link, LinkServer
from sparkmirror.wire.loop import Loop

WAIT_SECONDS = 20.0


class Peer:
    """Answers for a task id; notes what it is told."""

    def __init__(self) -> None:
        self.links: queue.Queue[Link] = queue.Queue()
        self.messages: queue.Queue[Message] = queue.Queue()
        self.gone: queue.Queue[Link] = queue.Queue()
        self.failure: KafkaError | None = None

    def on_hello(self, link: Link) -> None:
        if self.failure is not None:
            raise self.failure
        link.send({"type": "start", "number": self.links.qsize()})
        self.links.put(link)

    def on_message(self, link: Link, message: Message) -> None:
        self.messages.put(message)

    def on_gone(self, link: Link) -> None:
        self.gone.put(link)


class Task:
    """The task's end, on a loop of its own."""

    def __init__(self, server: LinkServer, name: str = "t") -> None:
        self.loop = Loop()
        self.messages: list[Message] = []
        self.lost: list[KafkaError] = []
        self.link = LinkClient(open_link("127.0.0.1", server.port, server.secret, name))

    def begin(self) -> Message:
        """Get the orders, then go over to the loop."""
        orders = self.link.wait_for_orders()
        self.link.attach(self.loop, self.messages.append, self.lost.append)
        return orders

    def run_until(self, done: Callable[[], bool]) -> None:
        assert self.loop.run_until(done, WAIT_SECONDS)

    def close(self) -> None:
        self.link.close()
        self.loop.close()


@pytest.fixture
def server() -> Iterator[LinkServer]:
    server = LinkServer("127.0.0.1")
    yield server
    server.close()


@pytest.fixture
def peer(server: LinkServer) -> Peer:
    peer = Peer()
    server.expect("t", peer)
    return peer


@pytest.fixture
def task(server: LinkServer, peer: Peer) -> Iterator[Task]:
    task = Task(server)
    yield task
    task.close()


def test_orders_come_first_then_messages_both_ways(peer: Peer, task: Task) -> None:
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
    task.link.send({"type": "numbers"})  # nobody hears it, and nothing breaks


def test_a_caller_without_the_secret_is_turned_away(
    server: LinkServer, peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    address = ("127.0.0.1", server.port)
    with socket.create_connection(address, WAIT_SECONDS) as sock, pytest.raises(KafkaError):
        greet_worker(sock, "another secret", "t")
    wait_for(lambda: "was turned away" in caplog.text)
    assert peer.links.empty()


def test_nonsense_on_an_open_link_ends_it(server: LinkServer, peer: Peer) -> None:
    sock = open_link("127.0.0.1", server.port, server.secret, "t")
    with sock:
        sock.sendall(b"\0\0\0\2{]")
        assert peer.gone.get(timeout=WAIT_SECONDS)
    assert peer.messages.empty()


def test_a_reason_for_having_no_orders_reaches_the_task(server: LinkServer, peer: Peer) -> None:
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


def test_a_failed_handshake_leaves_no_socket(server: LinkServer) -> None:
    with pytest.raises(KafkaError):
        open_link("127.0.0.1", server.port, "another secret", "t")


def test_close_ends_the_accepting_thread() -> None:
    before = set(threading.enumerate())
    server = LinkServer("127.0.0.1")
    accepting = set(threading.enumerate()) - before
    server.close()
    wait_for(lambda: not any(thread.is_alive() for thread in accepting))
