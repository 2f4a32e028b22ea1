"""The control link's frames and handshake over a socket pair."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest

from sparkmirror.errors import AuthenticationError, KafkaError, RemoteProtocolError, TransportError
from sparkmirror.spark.link.frames import (
    LARGEST_MESSAGE,
    LinkMessage,
    authenticate_task,
    authenticate_to_worker,
    check_length,
    decode_message,
    encode_message,
    new_secret,
    receive_message,
    send_message,
)

SECRET = "s3cret"


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    worker, task = socket.socketpair()
    for each in (worker, task):
        each.settimeout(5.0)
    with worker, task:
        yield worker, task


class Side:
    """One side of a handshake in a thread of its own, and how it ended."""

    def __init__(self, run: Callable[[], object]) -> None:
        self._run = run
        self.result: object = None
        self.error: KafkaError | None = None
        self._thread = threading.Thread(target=self._catch)
        self._thread.start()

    def _catch(self) -> None:
        try:
            self.result = self._run()
        except KafkaError as error:
            self.error = error

    def join(self) -> Side:
        """Wait for its end."""
        self._thread.join(5.0)
        assert not self._thread.is_alive()
        return self


# -- frames ---------------------------------------------------------------------------------------


def test_frame_golden() -> None:
    assert encode_message({"type": "stop"}) == b'\0\0\0\x0f{"type":"stop"}'
    assert decode_message(b'{"type":"stop"}') == {"type": "stop"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"", "not JSON", id="empty"),
        pytest.param(b"{", "not JSON", id="cut"),
        pytest.param(b"\xff\xff", "not JSON", id="bytes"),
        pytest.param(b"[1]", "not an object", id="a list"),
        pytest.param(b"1", "not an object", id="a number"),
    ],
)
def test_nonsense_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(RemoteProtocolError, match=message):
        decode_message(body)


def test_messages_of_any_size_but_not_of_any(pair: tuple[socket.socket, socket.socket]) -> None:
    worker, task = pair
    large: LinkMessage = {"text": "x" * 1_000_000, "none": None, "list": [1, "\u00e9"]}
    sender = Side(lambda: send_message(worker, large))
    assert receive_message(task) == large
    sender.join()
    with pytest.raises(RemoteProtocolError, match="a message of"):
        check_length(LARGEST_MESSAGE + 1)


def test_a_message_that_is_too_large_is_not_waited_for(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    worker, task = pair
    worker.sendall(struct.pack(">I", LARGEST_MESSAGE + 1))
    with pytest.raises(RemoteProtocolError, match="a message of"):
        receive_message(task)


def test_frames_in_single_bytes(pair: tuple[socket.socket, socket.socket]) -> None:
    worker, task = pair
    for byte in encode_message({"a": 1}) + encode_message({"b": 2}):
        worker.send(bytes([byte]))
    assert [receive_message(task), receive_message(task)] == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("start", [b"", b"\0\0", b"\0\0\0\x0f{"], ids=["idle", "length", "body"])
def test_the_end_of_the_stream(pair: tuple[socket.socket, socket.socket], start: bytes) -> None:
    worker, task = pair
    worker.sendall(start)
    worker.close()
    with pytest.raises(TransportError, match="the other side is gone"):
        receive_message(task)


# -- handshake ------------------------------------------------------------------------------------


def test_both_know_the_secret(pair: tuple[socket.socket, socket.socket]) -> None:
    worker, task = pair
    side = Side(lambda: authenticate_task(worker, lambda _: SECRET))
    authenticate_to_worker(task, SECRET, "a->b|c-0")
    assert side.join().result == "a->b|c-0"


def test_a_task_with_another_secret_is_rejected(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    worker, task = pair

    def greet() -> object:
        try:
            return authenticate_task(worker, lambda _: SECRET)
        finally:
            worker.close()

    side = Side(greet)
    with pytest.raises(TransportError):
        authenticate_to_worker(task, "another", "t")
    assert isinstance(side.join().error, AuthenticationError)


def test_a_worker_with_another_secret_gets_no_task(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    worker, task = pair

    def pretend() -> None:
        send_message(worker, {"challenge": "c"})
        receive_message(worker)
        send_message(worker, {"proof": "f" * 64})

    side = Side(pretend)
    with pytest.raises(AuthenticationError, match="the worker does not know the secret"):
        authenticate_to_worker(task, SECRET, "t")
    side.join()


def record_hello(pair: tuple[socket.socket, socket.socket]) -> LinkMessage:
    """What a real task sends in a real handshake, as an eavesdropper sees it."""
    worker, task = pair
    heard: list[LinkMessage] = []

    def relay() -> None:
        send_message(worker, {"challenge": "0" * 64})
        heard.append(receive_message(worker))
        worker.close()

    side = Side(relay)
    with pytest.raises(TransportError):
        authenticate_to_worker(task, SECRET, "t")
    side.join()
    return heard[0]


def test_a_replayed_hello_is_rejected(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    hello = record_hello(pair)
    worker, thief = socket.socketpair()
    with worker, thief:
        side = Side(lambda: authenticate_task(worker, lambda _: SECRET))
        assert "challenge" in receive_message(thief)
        send_message(thief, hello)
        assert isinstance(side.join().error, AuthenticationError)


def test_a_proof_made_for_another_task_is_rejected(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    worker, task = pair

    def greet_as_other() -> None:
        relay_worker, relay_task = socket.socketpair()
        with relay_worker, relay_task:
            inner = Side(lambda: authenticate_to_worker(relay_task, SECRET, "mine"))
            send_message(relay_worker, receive_message(task))
            send_message(task, receive_message(relay_worker) | {"task": "yours"})
            relay_worker.close()
            inner.join()

    side = Side(greet_as_other)
    with pytest.raises(AuthenticationError):
        authenticate_task(worker, lambda _: SECRET)
    side.join()


def test_a_workers_own_proof_cannot_be_replayed_to_it(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    """A caller without the secret uses one handshake to solve the challenge of another."""
    worker, thief = pair
    first = Side(lambda: authenticate_task(worker, lambda _: SECRET))
    challenge = receive_message(thief)["challenge"]
    send_message(thief, {"task": "worker", "proof": challenge, "challenge": challenge})
    assert isinstance(first.join().error, AuthenticationError)


@pytest.mark.parametrize(
    "hello",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"task": None, "proof": None, "challenge": None}, id="nulls"),
        pytest.param({"task": ["t"], "proof": {"a": 1}, "challenge": 3}, id="other types"),
    ],
)
def test_a_senseless_hello_is_rejected(
    pair: tuple[socket.socket, socket.socket], hello: LinkMessage
) -> None:
    worker, task = pair
    side = Side(lambda: authenticate_task(worker, lambda _: SECRET))
    receive_message(task)
    send_message(task, hello)
    assert isinstance(side.join().error, AuthenticationError)


def test_secrets_are_long_and_never_the_same() -> None:
    assert len({new_secret() for _ in range(10)}) == 10
    assert len(new_secret()) >= 64


def test_a_proof_that_is_not_ascii(pair: tuple[socket.socket, socket.socket]) -> None:
    worker, task = pair
    hello = {"task": "t", "proof": "\u00e9", "challenge": "c"}

    def response() -> None:
        receive_message(task)
        send_message(task, hello)

    send = Side(response)
    with pytest.raises(AuthenticationError):
        authenticate_task(worker, lambda _: SECRET)
    send.join()
