"""Produce requests and responses as bytes. A request carries one batch for each partition it names.

Versions 7 and 8 differ in the response only: version 8, of brokers from 2.4 on, reports which
records of a rejected batch are at fault (KIP-467).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from sparkmirror.batches.header import Buffer
from sparkmirror.types import TopicPartition
from sparkmirror.wire.protocol.messages import UNREADABLE, encode_string, unreadable

WITH_DETAILS = 8

INT = struct.Struct(">i")
SHORT = struct.Struct(">h")
# partition, error code, base offset, log append time, log start, number of record errors
ROW = struct.Struct(">ihqqqi")
# The same, and the length of the message: everything there is without an error.
PLAIN_ROW = struct.Struct(">ihqqqih")
# partition, error code, base offset, log append time, log start: all that version 7 has
SHORT_ROW = struct.Struct(">ihqqq")


# A broker's result for one partition's batch: error code, base offset, its text for the error.
Produced = tuple[int, int, str | None]


def encode_produce(
    batches: Sequence[tuple[TopicPartition, Buffer]], acks: int, timeout_ms: int
) -> list[Buffer]:
    """The body in pieces: the batches themselves are not copied."""
    if len(batches) == 1:
        ((topic, partition), view) = batches[0]
        name = topic.encode()
        size = len(name)
        head = struct.pack(
            f">hhiih{size}siii", -1, acks, timeout_ms, 1, size, name, 1, partition, len(view)
        )
        return [head, view]
    topics: dict[str, list[tuple[int, Buffer]]] = {}
    for (topic, partition), view in batches:
        topics.setdefault(topic, []).append((partition, view))
    out: list[Buffer] = []
    head = encode_string(None) + struct.pack(">hii", acks, timeout_ms, len(topics))
    for topic, rows in topics.items():
        head += encode_string(topic) + struct.pack(">i", len(rows))
        for partition, view in rows:
            out.append(head + struct.pack(">ii", partition, len(view)))
            out.append(view)
            head = b""
    return out


def decode_produce(response: memoryview, version: int) -> dict[tuple[str, int], Produced]:
    """Each partition's fate. Plain tuples: this runs for every batch."""
    if version < WITH_DETAILS:
        return _decode_short(response)
    found: dict[tuple[str, int], Produced] = {}
    unpack_row, plain_size = PLAIN_ROW.unpack_from, PLAIN_ROW.size
    try:
        (topics,) = INT.unpack_from(response)
        at = INT.size
        for _ in range(topics):
            topic, at = _decode_string(response, at)
            name = topic or ""
            (rows,) = INT.unpack_from(response, at)
            at += INT.size
            for _ in range(rows):
                partition, code, base, _, _, errors, message = unpack_row(response, at)
                if errors <= 0 and message < 0:
                    found[name, partition] = code, base, None
                    at += plain_size
                else:
                    detail, at = _decode_detail(response, at + ROW.size, errors)
                    found[name, partition] = code, base, detail
    except UNREADABLE as error:
        raise unreadable("produce response", error) from error
    return found


def _decode_short(response: memoryview) -> dict[tuple[str, int], Produced]:
    found: dict[tuple[str, int], Produced] = {}
    try:
        (topics,) = INT.unpack_from(response)
        at = INT.size
        for _ in range(topics):
            topic, at = _decode_string(response, at)
            (rows,) = INT.unpack_from(response, at)
            at += INT.size
            for _ in range(rows):
                partition, code, base, _, _ = SHORT_ROW.unpack_from(response, at)
                found[topic or "", partition] = code, base, None
                at += SHORT_ROW.size
    except UNREADABLE as error:
        raise unreadable("produce response", error) from error
    return found


def _decode_detail(response: memoryview, at: int, errors: int) -> tuple[str | None, int]:
    """The broker's texts on single records and on the whole batch."""
    details: list[str | None] = []
    for _ in range(max(errors, 0)):
        (index,) = struct.unpack_from(">i", response, at)
        text, at = _decode_string(response, at + 4)
        details.append(f"record {index}: {text}" if text else f"record {index}")
    message, at = _decode_string(response, at)
    return "; ".join(filter(None, [message, *details])) or None, at


def _decode_string(view: memoryview, at: int) -> tuple[str | None, int]:
    (size,) = SHORT.unpack_from(view, at)
    if size < 0:
        return None, at + 2
    return str(view[at + 2 : at + 2 + size], "utf-8"), at + 2 + size
