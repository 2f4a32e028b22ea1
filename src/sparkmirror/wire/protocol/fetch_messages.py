"""Fetch requests and responses as bytes, with sessions: by topic name or by topic id.

Version 13 names topics by their ids (KIP-516), so a topic that was deleted and recreated cannot be
mistaken for the old one. It and version 12 are "flexible" (KIP-482): compact lengths (length + 1 as
a varint) and tagged fields. Versions 10 and 11, of brokers before 2.7, have the classic encoding:
lengths are fixed integers, and the epoch of the last batch read is not sent.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sparkmirror.batches.varints import decode_unsigned, encode_unsigned
from sparkmirror.types import TopicPartition
from sparkmirror.wire.protocol.api_versions import FETCH
from sparkmirror.wire.protocol.messages import UNREADABLE, unreadable

BY_NAME = 12
BY_ID = 13

# replica -1, max wait, min bytes, max bytes, isolation, session id, session epoch
HEAD = struct.Struct(">iiiibii")
# partition, leader epoch, fetch offset, last fetched epoch, log start -1, max bytes, no tags
PARTITION = struct.Struct(">iiqiqib")
# partition, leader epoch, fetch offset, log start -1, max bytes
CLASSIC_PARTITION = struct.Struct(">iiqqi")
# partition, error code, high watermark, last stable offset, log start
RESPONSE = struct.Struct(">ihqqq")
ABORTED = struct.Struct(">qqb")
CLASSIC_ABORTED = struct.Struct(">qq")
INT = struct.Struct(">i")
SHORT = struct.Struct(">h")
# The first version in which a consumer names its rack, and is sent to a replica there (KIP-392).
WITH_RACK = 11
# Tagged field of a partition (KIP-595): epoch, end offset, tags.
DIVERGING_TAG = 0
DIVERGING = struct.Struct(">iqb")
# The session epoch of a request that opens a session; id and epoch of one that wants none.
NEW_SESSION = 0
NO_SESSION = 0, -1
# An array without elements.
NONE = b"\1"


class FetchRequestPartition(NamedTuple):
    """One partition to fetch. `last_epoch` is of the last batch read; -1: unknown, not compared."""

    tp: TopicPartition
    next_offset: int
    leader_epoch: int
    last_epoch: int = -1


class Limits(NamedTuple):
    """How much, and how long to wait for it.

    `start_age_ms`: without a position, fetching starts at records of at most this age.
    """

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partition_max_bytes: int
    read_committed: bool
    rack: str
    start_age_ms: int | None = None


class Fetched(NamedTuple):
    """One partition of a response; `records` lie in the response's buffer."""

    topic: str | bytes
    partition: int
    code: int
    high_watermark: int
    last_stable_offset: int
    log_start: int
    aborted: Sequence[tuple[int, int]]
    preferred_replica: int
    records: memoryview
    # (epoch, end offset): the log's last epoch up to the one that was read last, and its end. Sent
    # only where that is not what was read (KIP-595); then there are no records.
    diverging: tuple[int, int] | None = None


class FetchResponse(NamedTuple):
    """A whole fetch response; `topic` in its rows is a name or an id, as in the request."""

    code: int
    session_id: int
    rows: list[Fetched]


def skip_tags(view: memoryview, at: int) -> int:
    """Position after a set of tagged fields."""
    count, at = decode_unsigned(view, at)
    for _ in range(count):
        _, at = decode_unsigned(view, at)
        size, at = decode_unsigned(view, at)
        at += size
    return at


def encode_fetch(
    version: int,
    session: tuple[int, int],
    wanted: Sequence[FetchRequestPartition],
    forgotten: Sequence[TopicPartition],
    *,
    topic_ids: Mapping[str, bytes],
    limits: Limits,
) -> bytes:
    """The body of a request; `topic_ids` are used from version BY_ID on."""
    head = HEAD.pack(
        -1,
        limits.max_wait_ms,
        limits.min_bytes,
        limits.max_bytes,
        int(limits.read_committed),
        *session,
    )
    gone: dict[str, list[bytes]] = {}
    for topic, partition in forgotten:
        gone.setdefault(topic, []).append(INT.pack(partition))
    rows: dict[str, list[bytes]] = {}
    most, rack = limits.partition_max_bytes, limits.rack.encode()
    if version < FETCH.first_flexible:
        for (topic, partition), offset, epoch, _ in wanted:
            row = CLASSIC_PARTITION.pack(partition, epoch, offset, -1, most)
            rows.setdefault(topic, []).append(row)
        tail = SHORT.pack(len(rack)) + rack if version >= WITH_RACK else b""
        return b"".join((head, *_classic_topics(rows), *_classic_topics(gone), tail))
    for (topic, partition), offset, epoch, last_epoch in wanted:
        row = PARTITION.pack(partition, epoch, offset, last_epoch, -1, most, 0)
        rows.setdefault(topic, []).append(row)
    ids = topic_ids if version >= BY_ID else None
    forgets = _encode_topics(gone, ids) if gone else (NONE,)
    tail = encode_unsigned(len(rack) + 1) + rack + b"\0"
    return b"".join((head, *_encode_topics(rows, ids), *forgets, tail))


def _classic_topics(rows: Mapping[str, Sequence[bytes]]) -> Iterator[bytes]:
    yield INT.pack(len(rows))
    for topic, partitions in rows.items():
        name = topic.encode()
        yield SHORT.pack(len(name)) + name + INT.pack(len(partitions))
        yield from partitions


def _encode_topics(
    rows: Mapping[str, Sequence[bytes]], topic_ids: Mapping[str, bytes] | None
) -> Iterator[bytes]:
    yield encode_unsigned(len(rows) + 1)
    for topic, partitions in rows.items():
        if topic_ids is None:
            name = topic.encode()
            yield encode_unsigned(len(name) + 1) + name
        else:
            yield topic_ids[topic]
        yield encode_unsigned(len(partitions) + 1)
        yield from partitions
        yield b"\0"


def decode_fetch(view: memoryview, version: int) -> FetchResponse:
    """Walk a response; nothing is copied."""
    if version < FETCH.first_flexible:
        return _decode_classic(view, version)
    rows: list[Fetched] = []
    try:
        at = skip_tags(view, 0)
        code, session_id = struct.unpack_from(">hi", view, at + 4)
        topics, at = decode_unsigned(view, at + 10)
        for _ in range(topics - 1):
            at = _decode_topic(view, at, version, rows)
    except UNREADABLE as error:
        raise unreadable("fetch response", error) from error
    return FetchResponse(code, session_id, rows)


def _decode_topic(view: memoryview, at: int, version: int, rows: list[Fetched]) -> int:
    topic: str | bytes
    if version >= BY_ID:
        topic, at = bytes(view[at : at + 16]), at + 16
    else:
        size, at = decode_unsigned(view, at)
        if not size:
            raise ValueError("a topic without a name")
        topic, at = str(view[at : at + size - 1], "utf-8"), at + size - 1
    count, at = decode_unsigned(view, at)
    for _ in range(count - 1):
        partition, code, high, stable, start = RESPONSE.unpack_from(view, at)
        many, at = decode_unsigned(view, at + RESPONSE.size)
        aborted: list[tuple[int, int]] = []
        for _ in range(many - 1):
            producer_id, first, tags = ABORTED.unpack_from(view, at)
            aborted.append((producer_id, first))
            at = at + ABORTED.size if tags == 0 else skip_tags(view, at + ABORTED.size - 1)
        (replica,) = struct.unpack_from(">i", view, at)
        size, at = decode_unsigned(view, at + 4)
        end = at + max(size - 1, 0)
        if end > len(view):
            raise ValueError(f"{end - at} bytes of records in a response of {len(view)}")
        records = view[at:end]
        diverging = None
        if view[end]:
            diverging = _find_diverging(view, end)
        at = skip_tags(view, end)
        rows.append(
            Fetched(
                topic, partition, code, high, stable, start, aborted, replica, records, diverging
            )
        )
    return skip_tags(view, at)


def _decode_classic(view: memoryview, version: int) -> FetchResponse:
    rows: list[Fetched] = []
    try:
        code, session_id, topics = struct.unpack_from(">hii", view, 4)
        at = 14
        for _ in range(topics):
            (size,) = SHORT.unpack_from(view, at)
            if size < 0:
                raise ValueError("a topic without a name")
            topic, at = str(view[at + 2 : at + 2 + size], "utf-8"), at + 2 + size
            (count,) = INT.unpack_from(view, at)
            at += INT.size
            for _ in range(count):
                row, at = _decode_classic_row(view, at, version, topic)
                rows.append(row)
    except UNREADABLE as error:
        raise unreadable("fetch response", error) from error
    return FetchResponse(code, session_id, rows)


def _decode_classic_row(view: memoryview, at: int, version: int, topic: str) -> tuple[Fetched, int]:
    partition, code, high, stable, start = RESPONSE.unpack_from(view, at)
    at += RESPONSE.size
    (many,) = INT.unpack_from(view, at)
    at += INT.size
    aborted = []
    for _ in range(many):
        aborted.append(CLASSIC_ABORTED.unpack_from(view, at))
        at += CLASSIC_ABORTED.size
    replica = -1
    if version >= WITH_RACK:
        (replica,) = INT.unpack_from(view, at)
        at += INT.size
    (size,) = INT.unpack_from(view, at)
    at += INT.size
    end = at + max(size, 0)
    if end > len(view):
        raise ValueError(f"{end - at} bytes of records in a response of {len(view)}")
    records = view[at:end]
    return Fetched(topic, partition, code, high, stable, start, aborted, replica, records), end


def _find_diverging(view: memoryview, at: int) -> tuple[int, int] | None:
    """The diverging epoch among the tagged fields of a partition."""
    count, at = decode_unsigned(view, at)
    for _ in range(count):
        tag, at = decode_unsigned(view, at)
        size, at = decode_unsigned(view, at)
        if tag == DIVERGING_TAG:
            epoch, end_offset, _ = DIVERGING.unpack_from(view, at)
            return (epoch, end_offset) if epoch >= 0 and end_offset >= 0 else None
        at += size
    return None
