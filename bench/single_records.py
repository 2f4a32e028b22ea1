"""Writes batches of one record, like producers without linger, eight to a request.

With one request per record, as in confluent-kafka, filling a topic takes twice as long. These
requests contain one batch for every partition, the most that a broker accepts. The source stores
the same batches.
"""

from __future__ import annotations

import itertools
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import crc32c

from bench.end_offsets import encode_text, read_exactly
from sparkmirror.embedded.ports import HOST
from sparkmirror.errors import BrokerError

_PRODUCE, _VERSION = 0, 7
_LEADER_ONLY = 1
_TIMEOUT_SECONDS = 60.0
# A broker works on one request of a connection at a time.
_CONNECTIONS = 4
# Requests that are sent before the responses are read: these must fit the sockets' buffers.
_REQUESTS_AT_ONCE = 50
_RESPONSE = ">ihqqq"  # of a partition: number, error, base offset, append time, log start


def write_single_records(
    port: int, topic: str, values: Sequence[bytes], partitions: range, each: int
) -> None:
    """Write `each` records to every one of `partitions`, each record in its own batch."""
    batches = itertools.cycle(single_record_batches(values))
    requests = (encode_request(topic, partitions, batches) for _ in range(each))
    with ExitStack() as stack:
        connections = [
            stack.enter_context(socket.create_connection((HOST, port), timeout=_TIMEOUT_SECONDS))
            for _ in range(_CONNECTIONS)
        ]
        while _exchange(connections, requests, topic, partitions):
            pass


def _exchange(
    connections: Sequence[socket.socket],
    requests: Iterator[bytes],
    topic: str,
    partitions: range,
) -> bool:
    """Send some requests on every connection, then read the responses; False if none were left."""
    counts: list[int] = []
    for connection in connections:
        some = list(itertools.islice(requests, _REQUESTS_AT_ONCE))
        connection.sendall(b"".join(some))
        counts.append(len(some))
    size = response_size(topic, partitions)
    for connection, count in zip(connections, counts, strict=True):
        responses = read_exactly(connection, size * count)
        for at in range(0, len(responses), size):
            check_response(responses[at : at + size], topic, partitions)
    return counts[-1] > 0


def single_record_batches(values: Sequence[bytes]) -> list[bytes]:
    """A batch for each value, without a key and headers. The broker sets the base offset."""
    now_ms = time.time_ns() // 1_000_000
    return [_batch(value, now_ms) for value in values]


def _batch(value: bytes, now_ms: int) -> bytes:
    # Attributes, delta of time, delta of offset, no key (-1), value, no headers.
    body = b"\0\0\0\1" + _varint(len(value)) + value + b"\0"
    record = _varint(len(body)) + body
    # Attributes, last offset delta, both times, no producer (id, epoch, sequence), one record.
    checked = struct.pack(">hiqqqhii", 0, 0, now_ms, now_ms, -1, -1, -1, 1) + record
    # Base offset, length, leader epoch, magic, CRC.
    return struct.pack(">qiibI", 0, 9 + len(checked), -1, 2, crc32c.crc32c(checked)) + checked


def _varint(number: int) -> bytes:
    """A size as records store it: doubled (the lowest bit is a sign), seven bits a byte."""
    rest, found = number << 1, bytearray()
    while rest > 127:
        found.append(rest & 127 | 128)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def encode_request(topic: str, partitions: range, batches: Iterator[bytes]) -> bytes:
    """A Produce request with the next batch for each partition."""
    parts = [
        struct.pack(">hhi", _PRODUCE, _VERSION, 0),
        encode_text("bench"),
        struct.pack(">hhi", -1, _LEADER_ONLY, int(_TIMEOUT_SECONDS * 1000)),
        struct.pack(">i", 1),
        encode_text(topic),
        struct.pack(">i", len(partitions)),
    ]
    for partition in partitions:
        batch = next(batches)
        parts += [struct.pack(">ii", partition, len(batch)), batch]
    request = b"".join(parts)
    return struct.pack(">i", len(request)) + request


def response_size(topic: str, partitions: range) -> int:
    """Bytes of a response: size, correlation id, one topic with its partitions, throttle time."""
    return 8 + 4 + len(encode_text(topic)) + 4 + struct.calcsize(_RESPONSE) * len(partitions) + 4


def check_response(response: bytes, topic: str, partitions: range) -> None:
    """Raise if the broker has not stored a batch."""
    at = 8 + 4 + len(encode_text(topic)) + 4
    for partition, code, *_ in struct.iter_unpack(_RESPONSE, response[at:-4]):
        if code != 0:
            raise BrokerError(
                f"fill {topic}-{partition} of {list(partitions)}: error code {code}",
                code,
                retriable=False,
            )
