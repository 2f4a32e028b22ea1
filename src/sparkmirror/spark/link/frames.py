"""The control link's frames and its handshake: who may connect, and the shape of messages.

Runs on: worker and executor. A frame is a length and a JSON object, and all of them go over TLS.
Before the first message both sides prove that they know the task's secret, by a keyed hash of the
other's random challenge:

    worker -> task   challenge
    task -> worker   task id, proof, own challenge
    worker -> task   proof
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import struct
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from sparkmirror.errors import AuthenticationError, RemoteProtocolError, TransportError
from sparkmirror.foreign_json import parse_json

LinkMessage = dict[str, Any]

LENGTH = struct.Struct(">I")
# Start messages name every partition of a task: 10,000 partitions are some 500 KB.
LARGEST_MESSAGE = 64 << 20
# Of callers that have not authenticated yet.
LARGEST_HELLO = 64 << 10
CHALLENGE_BYTES = 32
# The type of the worker's response to a task that it has no start message for, with the reason.
REFUSED = "refused"


class ByteChannel(Protocol):
    """What frames go over: a socket, or something like it."""

    def sendall(self, data: bytes, /) -> None:
        """Send all of it; OSError when that cannot be done."""

    def recv(self, size: int, /) -> bytes:
        """Wait for some bytes; none at the end of the stream."""


def encode_message(message: Mapping[str, Any]) -> bytes:
    """One frame."""
    body = json.dumps(message, separators=(",", ":")).encode()
    return LENGTH.pack(len(body)) + body


def decode_message(body: bytes | bytearray | memoryview) -> LinkMessage:
    """The object of one frame's body."""
    try:
        message = parse_json(bytes(body))
    except ValueError as error:
        raise RemoteProtocolError(f"control link: not JSON: {error}") from error
    if not isinstance(message, dict):
        raise RemoteProtocolError("control link: not an object")
    return message


def check_length(size: int, largest: int = LARGEST_MESSAGE) -> int:
    """A length that a frame of ours can have."""
    if size > largest:
        raise RemoteProtocolError(f"control link: a message of {size} bytes")
    return size


def send_message(channel: ByteChannel, message: Mapping[str, Any]) -> None:
    """Send one frame, blocking."""
    try:
        channel.sendall(encode_message(message))
    except OSError as error:
        raise TransportError(f"control link: {error}") from error


def receive_message(channel: ByteChannel, largest: int = LARGEST_MESSAGE) -> LinkMessage:
    """Receive one frame, blocking; TransportError at the end of the stream."""
    (size,) = LENGTH.unpack(_receive_exactly(channel, LENGTH.size))
    return decode_message(_receive_exactly(channel, check_length(size, largest)))


def _receive_exactly(channel: ByteChannel, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        try:
            piece = channel.recv(size - len(data))
        except OSError as error:
            raise TransportError(f"control link: {error}") from error
        if not piece:
            raise TransportError("control link: the other side is gone")
        data += piece
    return bytes(data)


def new_secret() -> str:
    """A secret for one run of the worker."""
    return secrets.token_hex(32)


def task_secret(secret: str, task: str) -> str:
    """The secret of one task: no other task's link accepts it."""
    return hmac.new(secret.encode(), _bytes(f"secret of {task}"), hashlib.sha256).hexdigest()


def _proof(secret: str, role: str, challenge: str) -> str:
    # The role is part of it, so that a proof cannot be replayed to its maker.
    return hmac.new(secret.encode(), _bytes(f"{role}:{challenge}"), hashlib.sha256).hexdigest()


def _same(proof: object, expected: str) -> bool:
    """Compare in constant time; a proof may be any JSON value."""
    return hmac.compare_digest(_bytes(str(proof)), expected.encode())


def _bytes(text: str) -> bytes:
    # JSON can hold half a surrogate pair, which UTF-8 cannot.
    return text.encode(errors="surrogatepass")


def authenticate_task(channel: ByteChannel, secret_of: Callable[[str], str]) -> str:
    """The worker's side of the handshake; returns the task id, whose secret the caller knows."""
    challenge = secrets.token_hex(CHALLENGE_BYTES)
    send_message(channel, {"challenge": challenge})
    hello = receive_message(channel, LARGEST_HELLO)
    task = str(hello.get("task", ""))
    secret = secret_of(task)
    expected = _proof(secret, f"task {task}", challenge)
    if not _same(hello.get("proof"), expected):
        raise AuthenticationError("control link: a caller that does not know the secret")
    send_message(channel, {"proof": _proof(secret, "worker", str(hello.get("challenge", "")))})
    return task


def authenticate_to_worker(channel: ByteChannel, secret: str, task: str) -> None:
    """The task's side of the handshake."""
    theirs = str(receive_message(channel, LARGEST_HELLO).get("challenge", ""))
    challenge = secrets.token_hex(CHALLENGE_BYTES)
    proof = _proof(secret, f"task {task}", theirs)
    send_message(channel, {"task": task, "proof": proof, "challenge": challenge})
    response = receive_message(channel, LARGEST_HELLO)
    if not _same(response.get("proof"), _proof(secret, "worker", challenge)):
        raise AuthenticationError("control link: the worker does not know the secret")
