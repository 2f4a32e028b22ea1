"""The bytes of an exact offset map (see offset_map) in a compacted topic.

Runs on: executor, which writes chunks, and worker, which reads them. Pure.

A map is stored in chunks, one record each. The first offsets of a chunk, on both sides, are part of
its key; a growing chunk is rewritten under that key, and a full one is followed by the next. A
second copy begins elsewhere on the target, so compaction never replaces the first by it. Key,
big-endian:

    topic          uint16 byte length, UTF-8 (the upstream name)
    partition      int32
    upstream       int64, offset of the first record
    downstream     int64, its offset on the target

Value, with varints of seven bits a byte, lowest first, top bit set on all bytes but the last:

    byte           version = 0
    byte           how it starts: ChunkStart
    for each run, counted from the ends of the run before, or from 0:
        varint     upstream offsets skipped * 2, + 1 if downstream offsets are skipped too
        varint     downstream offsets skipped, only if there are any
        varint     how many records follow each other on both sides

So a transaction marker on the source costs two or three bytes, a million records without one none.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Self

from sparkmirror.batches.varints import MAX_LONG_BYTES, decode_unsigned, encode_unsigned
from sparkmirror.mirror.records import RecordError, UnsupportedRecordError
from sparkmirror.mirror.translation.offsets import OffsetPair

_VERSION = 0
_HEADER_BYTES = 2
_MAX_OFFSET = (1 << 63) - 1
_KEY_AFTER_TOPIC = struct.Struct(">iqq")


class OffsetRun(NamedTuple):
    """Records that follow each other on both sides: upstream + n is at downstream + n.

    A run without records means only that the copy continued at `upstream`, when the target's end
    was at `downstream`.
    """

    upstream: int
    downstream: int
    length: int

    @property
    def first(self) -> OffsetPair:
        return OffsetPair(self.upstream, self.downstream)

    @property
    def end(self) -> OffsetPair:
        """Where a record that follows on both sides would be."""
        return OffsetPair(self.end_upstream, self.end_downstream)

    @property
    def end_upstream(self) -> int:
        return self.upstream + self.length

    @property
    def end_downstream(self) -> int:
        return self.downstream + self.length


class ChunkStart(IntEnum):
    """How the first record of a chunk relates to the chunks before it."""

    CONTINUES = 0
    """Copied next by the same task, or in transactions, so nothing is between."""
    SESSION = 1
    """A task started: earlier records may have been copied without a chunk."""
    NEW_LOG = 2
    """The source topic was recreated: earlier chunks describe other records."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of the map: at least one run, rising on both sides."""

    start: ChunkStart
    runs: tuple[OffsetRun, ...]

    @property
    def first(self) -> OffsetPair:
        """Where the chunk begins: part of its key."""
        return self.runs[0].first

    def encode(self) -> bytes:
        """Return the record's value."""
        value = bytearray(encode_header(self.start))
        end = OffsetRun(0, 0, 0)
        for run in self.runs:
            value += encode_run(end, run)
            end = run
        return bytes(value)

    @classmethod
    def decode(cls, value: bytes) -> Self:
        """Read a record's value. Raises: RecordError."""
        if len(value) < _HEADER_BYTES:
            raise _bad_value(value, "it is too short")
        version, start = value[0], value[1]
        if version != _VERSION:
            raise UnsupportedRecordError(
                f"read a chunk of an offset map: version {version} is not supported, "
                f"only {_VERSION}"
            )
        if start not in ChunkStart.__members__.values():
            raise _bad_value(value, f"it starts in an unknown way, {start}")
        runs = tuple(_decode_runs(value))
        if not runs:
            raise _bad_value(value, "it is empty")
        return cls(ChunkStart(start), runs)


class ChunkKey(NamedTuple):
    """Which partition's map a chunk belongs to, and where it begins."""

    topic: str
    partition: int
    first: OffsetPair

    def encode(self) -> bytes:
        """Return the record's key."""
        topic = self.topic.encode()
        size = struct.pack(">H", len(topic))
        return size + topic + _KEY_AFTER_TOPIC.pack(self.partition, *self.first)

    @classmethod
    def decode(cls, key: bytes) -> Self:
        """Read a record's key. Raises: RecordError."""
        try:
            (size,) = struct.unpack_from(">H", key)
            topic = key[2 : 2 + size].decode()
            partition, *first = _KEY_AFTER_TOPIC.unpack(key[2 + size :])
        except (struct.error, UnicodeDecodeError) as exc:
            raise RecordError(f"read the key of an offset map's chunk {key!r}: {exc}") from exc
        return cls(topic, partition, OffsetPair(*first))


def offset_map_topic(source_alias: str) -> str:
    """Name of the map's topic on the target; the default excludes keep it from being copied."""
    return f"mm2-offset-map.{source_alias}.internal"


def encode_header(start: ChunkStart) -> bytes:
    """Return the first bytes of a chunk's value."""
    return bytes((_VERSION, start))


def encode_run(previous: OffsetRun, run: OffsetRun) -> bytes:
    """Return the encoding of a run after `previous`."""
    skipped_upstream = run.upstream - previous.end_upstream
    skipped_downstream = run.downstream - previous.end_downstream
    numbers = [skipped_upstream << 1, run.length]
    if skipped_downstream:
        numbers = [skipped_upstream << 1 | 1, skipped_downstream, run.length]
    return b"".join(map(encode_unsigned, numbers))


def _decode_runs(value: bytes) -> Iterator[OffsetRun]:
    at = _HEADER_BYTES
    upstream = downstream = 0
    while at < len(value):
        skipped, at = _read_varint(value, at)
        upstream += skipped >> 1
        if skipped & 1:
            skipped_downstream, at = _read_varint(value, at)
            downstream += skipped_downstream
        length, at = _read_varint(value, at)
        yield OffsetRun(upstream, downstream, length)
        upstream += length
        downstream += length
        if upstream > _MAX_OFFSET or downstream > _MAX_OFFSET:
            raise _bad_value(value, "its offsets are too large")


def _read_varint(value: bytes, at: int) -> tuple[int, int]:
    """Read a number; returns it and the position after it."""
    try:
        return decode_unsigned(value, at, MAX_LONG_BYTES)
    except ValueError as error:
        raise _bad_value(value, str(error)) from error


def _bad_value(value: bytes, why: str) -> RecordError:
    return RecordError(
        f"read a chunk of an offset map, {len(value)} bytes {value[:40].hex()}: {why}"
    )
