"""Asks a broker on a plain socket which brokers it knows.

Whether a cluster is ready needs no Kafka client, only Metadata v1, which every broker from 0.10 to
4.x supports.

    request   size i32 | api key i16 = 3 | version i16 = 1 | correlation i32 | client id string
              | number of topics i32 = 0
    response  size i32 | correlation i32
              | brokers: count i32, each node i32, host string, port i32, rack nullable string
              | controller i32 | topics: count i32 = 0
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from sparkmirror.errors import RemoteProtocolError, TransportError

_CLIENT_ID = b"sparkmirror-probe"
_BODY = struct.pack(">hhih", 3, 1, 0, len(_CLIENT_ID)) + _CLIENT_ID + struct.pack(">i", 0)
_REQUEST = struct.pack(">i", len(_BODY)) + _BODY
_NO_CONTROLLER = -1


@dataclass(frozen=True, slots=True)
class ProbeResponse:
    """A broker's view of its cluster."""

    node_ids: tuple[int, ...]
    controller_id: int

    @property
    def has_controller(self) -> bool:
        return self.controller_id != _NO_CONTROLLER


def ask(host: str, port: int, timeout_seconds: float = 2.0) -> ProbeResponse:
    """Send one Metadata request and decode the response."""
    try:
        with socket.create_connection((host, port), timeout_seconds) as connection:
            connection.sendall(_REQUEST)
            (size,) = struct.unpack(">i", _read(connection, 4))
            return decode_response(_read(connection, size))
    except OSError as error:
        raise TransportError(f"ask {host}:{port} for its brokers: {error}") from error


def _read(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        if not chunk:
            raise ConnectionResetError("the broker closed the connection")
        received += chunk
    return bytes(received)


def decode_response(body: bytes) -> ProbeResponse:
    """Decode a Metadata v1 response without its size field."""
    try:
        _, count = struct.unpack_from(">ii", body, 0)
        at = 8
        node_ids = []
        for _ in range(count):
            (node_id,) = struct.unpack_from(">i", body, at)
            node_ids.append(node_id)
            at = _after_string(body, _after_string(body, at + 4) + 4)
        (controller_id,) = struct.unpack_from(">i", body, at)
    except struct.error as error:
        raise RemoteProtocolError(f"decode the response to Metadata v1: {error}") from error
    return ProbeResponse(tuple(sorted(node_ids)), controller_id)


def _after_string(body: bytes, at: int) -> int:
    (length,) = struct.unpack_from(">h", body, at)
    return int(at + 2 + max(length, 0))
