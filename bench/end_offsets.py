"""Counts the records of a topic so cheaply that it can do so twenty times a second.

confluent-kafka takes about a millisecond of CPU per request, on the cores that are measured; a
hand-written ListOffsets version 1 takes a third of that.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence

from sparkmirror.errors import BrokerError, RemoteProtocolError
from sparkmirror.types import TopicPartition

_API_KEY = 2
_API_VERSION = 1
_LATEST = -1
_TIMEOUT_SECONDS = 30.0
# The mirror has not created the topic yet, or its leader is not known yet.
_NOT_THERE_YET = {3, 5, 6}


class EndOffsets:
    """A connection to each broker of a cluster; each is asked about all partitions."""

    def __init__(self, host: str, *ports: int) -> None:
        self._sockets = [
            socket.create_connection((host, port), timeout=_TIMEOUT_SECONDS) for port in ports
        ]
        for each in self._sockets:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def record_count(self, partitions: Sequence[TopicPartition], each: int) -> int:
        """Records in all partitions, at most `each` of any: duplicates must not hide missing ones.

        Partitions that do not exist yet count as empty.
        """
        return sum(min(end or 0, each) for end in self.end_offsets(partitions).values())

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int | None]:
        """End offsets, None for partitions that do not exist yet, in any order."""
        request = encode_request(partitions)
        found: dict[TopicPartition, int | None] = {}
        for each in self._sockets:
            each.sendall(struct.pack(">i", len(request)) + request)
            (size,) = struct.unpack(">i", read_exactly(each, 4))
            for tp, end_offset in decode_response(read_exactly(each, size)):
                # A broker that does not lead the partition does not know its end.
                found[tp] = found.get(tp) if end_offset is None else end_offset
        return found

    def close(self) -> None:
        """Close the connections."""
        for each in self._sockets:
            each.close()

    def __enter__(self) -> EndOffsets:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_exactly(connection: socket.socket, size: int) -> bytes:
    """Exactly this many bytes of a connection, in any number of reads."""
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise RemoteProtocolError("read a response: the broker closed the connection")
        data += part
    return bytes(data)


def encode_request(partitions: Sequence[TopicPartition]) -> bytes:
    """A ListOffsets request: header (key, version, correlation id, client id), then the topics."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    parts = [struct.pack(">hhi", _API_KEY, _API_VERSION, 0), encode_text("bench")]
    parts.append(struct.pack(">ii", -1, len(by_topic)))  # replica id: a client
    for topic, numbers in by_topic.items():
        parts += [encode_text(topic), struct.pack(">i", len(numbers))]
        parts += [struct.pack(">iq", number, _LATEST) for number in numbers]
    return b"".join(parts)


def decode_response(data: bytes) -> Iterator[tuple[TopicPartition, int | None]]:
    """End offsets in a response: correlation id, topics of (partition, error, time, offset)."""
    (topics,) = struct.unpack_from(">i", data, 4)
    at = 8
    for _ in range(topics):
        (name_size,) = struct.unpack_from(">h", data, at)
        name = data[at + 2 : at + 2 + name_size].decode()
        at += 2 + name_size
        (count,) = struct.unpack_from(">i", data, at)
        at += 4
        for partition, code, _, end_offset in struct.iter_unpack(
            ">ihqq", data[at : at + 22 * count]
        ):
            where = TopicPartition(name, partition)
            yield where, _checked(end_offset, code, where)
        at += 22 * count


def _checked(end_offset: int, code: int, where: TopicPartition) -> int | None:
    if code in _NOT_THERE_YET:
        return None
    if code != 0:
        raise BrokerError(f"list offsets of {where}: error code {code}", code, retriable=False)
    return end_offset


def encode_text(text: str) -> bytes:
    """A string of Kafka's protocol: its length, then UTF-8."""
    data = text.encode()
    return struct.pack(">h", len(data)) + data
