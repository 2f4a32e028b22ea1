"""Produce requests and answers as bytes, version 8: every broker from 2.4 to 4.x speaks it.

A request carries exactly one batch for each partition it names.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from sparkmirror.types import TopicPartition
from sparkmirror.wire.messages import encode_string, parsing
from sparkmirror.wire.stream import Buffer

PRODUCE = (0, 8)

# partition, error code, base offset, log append time, log start, number of record errors
ROW = struct.Struct(">ihqqqi")
# The same, and the length of the message: all there is when nothing went wrong.
PLAIN_ROW = struct.Struct(">ihqqqih")


class Produced(NamedTuple):
    """A broker's word on one partition's batch."""

    code: int
    base_offset: int
    detail: str | None


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


def decode_single(answer: memoryview, tp: TopicPartition, name_size: int) -> int | None:
    """The base offset, when the answer is about `tp` alone and all is well; otherwise None.

    The usual case, and worth it: the whole decoding of a row takes ten times as long.
    """
    at = 10 + name_size  # one topic: its count, its name, one partition: its count
    if len(answer) < at + ROW.size:
        return None
    partition, code, base_offset, _, _, errors = ROW.unpack_from(answer, at)
    is_plain = partition == tp.partition and code == 0 and errors <= 0
    return int(base_offset) if is_plain else None


def decode_produce(answer: memoryview) -> dict[TopicPartition, Produced]:
    """Each partition's fate."""
    found: dict[TopicPartition, Produced] = {}
    with parsing("produce answer"):
        (topics,) = struct.unpack_from(">i", answer)
        at = 4
        for _ in range(topics):
            topic, at = _decode_string(answer, at)
            (rows,) = struct.unpack_from(">i", answer, at)
            at += 4
            for _ in range(rows):
                partition, code, base, _, _, errors, message = PLAIN_ROW.unpack_from(answer, at)
                detail = None
                if errors <= 0 and message < 0:
                    at += PLAIN_ROW.size
                else:
                    detail, at = _decode_detail(answer, at + ROW.size, errors)
                found[TopicPartition(topic or "", partition)] = Produced(code, base, detail)
    return found


def _decode_detail(answer: memoryview, at: int, errors: int) -> tuple[str | None, int]:
    """The broker's words on single records and on the whole batch."""
    details: list[str | None] = []
    for _ in range(max(errors, 0)):
        (index,) = struct.unpack_from(">i", answer, at)
        text, at = _decode_string(answer, at + 4)
        details.append(f"record {index}: {text}" if text else f"record {index}")
    message, at = _decode_string(answer, at)
    return "; ".join(filter(None, [message, *details])) or None, at


def _decode_string(view: memoryview, at: int) -> tuple[str | None, int]:
    (size,) = struct.unpack_from(">h", view, at)
    if size < 0:
        return None, at + 2
    return str(view[at + 2 : at + 2 + size], "utf-8"), at + 2 + size
