"""Requests of a member of a classic group, and of a producer with transactions, as bytes.

The versions of `api_versions`: without tagged fields, and before group instance ids (KIP-345),
which a mirror does not use.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sparkmirror.batches.header import Buffer
from sparkmirror.types import TopicPartition
from sparkmirror.wire.protocol.messages import encode_string, parsing

GROUP, TRANSACTION = 0, 1


class Coordinator(NamedTuple):
    """The coordinator of a group or a transactional id."""

    code: int
    node: int
    host: str
    port: int


class Joined(NamedTuple):
    """The response to a join. `members` (id: metadata) is known to the leader only."""

    code: int
    generation: int
    leader: str
    member: str
    members: dict[str, bytes]


class _Fields:
    """Reads one field after the other."""

    def __init__(self, response: memoryview, at: int = 0) -> None:
        self._response = response
        self._at = at

    def short(self) -> int:
        return self._take(">h")

    def integer(self) -> int:
        return self._take(">i")

    def string(self) -> str:
        return self._slice(self.short()).decode()

    def data(self) -> bytes:
        return self._slice(self.integer())

    def _take(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self._response, self._at)
        self._at += struct.calcsize(layout)
        return int(value)

    def _slice(self, size: int) -> bytes:
        size = max(size, 0)  # -1: null
        found = bytes(self._response[self._at : self._at + size])
        if len(found) < size:
            raise ValueError(f"{size} bytes wanted at {self._at} of {len(self._response)}")
        self._at += size
        return found


def encode_data(value: bytes) -> bytes:
    """BYTES of the classic encoding."""
    return struct.pack(">i", len(value)) + value


def encode_find_coordinator(key: str, kind: int) -> bytes:
    return encode_string(key) + struct.pack(">b", kind)


def decode_find_coordinator(response: memoryview) -> Coordinator:
    with parsing("coordinator"):
        fields = _Fields(response, 4)
        code = fields.short()
        fields.string()  # the broker's text for the error
        return Coordinator(code, fields.integer(), fields.string(), fields.integer())


def encode_join(
    group: str,
    member: str,
    protocol: tuple[str, str, bytes],
    session_timeout_ms: int,
    rebalance_timeout_ms: int,
) -> bytes:
    """Join with one protocol: (type, name, metadata)."""
    kind, name, metadata = protocol
    return b"".join(
        (
            encode_string(group),
            struct.pack(">ii", session_timeout_ms, rebalance_timeout_ms),
            encode_string(member),
            encode_string(kind) + struct.pack(">i", 1),
            encode_string(name) + encode_data(metadata),
        )
    )


def decode_join(response: memoryview) -> Joined:
    with parsing("join response"):
        fields = _Fields(response, 4)
        code, generation = fields.short(), fields.integer()
        fields.string()  # the protocol: we offer one only
        leader, member = fields.string(), fields.string()
        members: dict[str, bytes] = {}
        for _ in range(fields.integer()):
            name = fields.string()
            members[name] = fields.data()
        return Joined(code, generation, leader, member, members)


def encode_sync(
    group: str, generation: int, member: str, assignments: Mapping[str, bytes]
) -> bytes:
    rows = [encode_string(each) + encode_data(data) for each, data in assignments.items()]
    head = encode_string(group) + struct.pack(">i", generation) + encode_string(member)
    return head + struct.pack(">i", len(rows)) + b"".join(rows)


def decode_sync(response: memoryview) -> tuple[int, bytes]:
    """(error code, assignment)."""
    with parsing("sync response"):
        fields = _Fields(response, 4)
        return fields.short(), fields.data()


def encode_heartbeat(group: str, generation: int, member: str) -> bytes:
    return encode_string(group) + struct.pack(">i", generation) + encode_string(member)


def encode_leave(group: str, member: str) -> bytes:
    return encode_string(group) + encode_string(member)


def decode_code(response: memoryview) -> int:
    """The error code of a response that has nothing else: heartbeat, leave, end of transaction."""
    with parsing("response"):
        return _Fields(response, 4).short()


def encode_init_transactions(transactional_id: str, timeout_ms: int) -> bytes:
    """Ask for the producer id of a transactional id; the previous owner is fenced."""
    return encode_string(transactional_id) + struct.pack(">i", timeout_ms)


def encode_add_partition(
    transactional_id: str, producer_id: int, epoch: int, tp: TopicPartition
) -> bytes:
    head = encode_string(transactional_id) + struct.pack(">qhi", producer_id, epoch, 1)
    return head + encode_string(tp.topic) + struct.pack(">ii", 1, tp.partition)


def decode_add_partition(response: memoryview) -> int:
    """The error code of the one partition that was asked for."""
    with parsing("response about partitions of a transaction"):
        fields = _Fields(response, 4)
        fields.integer()
        fields.string()
        fields.integer()
        fields.integer()
        return fields.short()


def encode_end_transaction(
    transactional_id: str, producer_id: int, epoch: int, *, commit: bool
) -> bytes:
    head = encode_string(transactional_id)
    return head + struct.pack(">qhb", producer_id, epoch, int(commit))


def encode_transactional_produce(
    transactional_id: str, tp: TopicPartition, batch: Buffer, timeout_ms: int
) -> Sequence[Buffer]:
    """One batch for one partition, acknowledged by all replicas."""
    head = encode_string(transactional_id) + struct.pack(">hii", -1, timeout_ms, 1)
    head += encode_string(tp.topic) + struct.pack(">iii", 1, tp.partition, len(batch))
    return [head, batch]
