"""Messages of the old formats, magic 0 and 1, which brokers up to 3.x may still hold on disk.

    #  at  size  field                          at  size  field
    #   0     8  offset                         18     8  timestamp (magic 1 only)
    #   8     4  length of what follows              4     key length (-1: null), key
    #  12     4  CRC-32 of everything after it       4     value length (-1: null), value
    #  16     1  magic
    #  17     1  attributes: bit 0-2 codec, 3 LogAppendTime (magic 1)

A compressed message is a wrapper whose value is a message set. Its offset is that of the last
inner message. Inner offsets are absolute in magic 0; in magic 1 they count from 0 (KIP-31, unless
the cleaner removed some), so the last one gives the offset of the first. Magic 0 has no timestamps
(KIP-32).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import pairwise
from struct import Struct

from sparkmirror.batches.codecs import Codec
from sparkmirror.batches.header import CODEC_MASK, LARGEST_OFFSET, LOG_APPEND_TIME, NO_TIMESTAMP
from sparkmirror.batches.outgoing import ForwardRules, OutgoingBatch, Runs
from sparkmirror.batches.records import Record, encode
from sparkmirror.errors import BatchError

MIN_MESSAGE_LENGTH = 14  # CRC, magic, attributes, two lengths
_FRONT = Struct(">qiIBB")
_TIMESTAMP = Struct(">q")
_FIELD_LENGTH = Struct(">i")
_RECORD_OVERHEAD_BYTES = 30  # generous: lengths, deltas and header count of one record


class LegacyMessage:
    """One message, fields read and checked; a wrapper's value is still compressed."""

    __slots__ = ("attributes", "key", "magic", "offset", "size", "timestamp", "value")

    def __init__(self, view: memoryview, check_crcs: bool) -> None:
        """Read the message that `view` starts with."""
        if len(view) < _FRONT.size:
            raise BatchError("read message: the data ends inside its first bytes")
        self.offset, length, crc, self.magic, self.attributes = _FRONT.unpack_from(view)
        self.size = 12 + length
        if self.magic > 1 or length < MIN_MESSAGE_LENGTH or self.size > len(view):
            raise self._error(f"magic {self.magic}, {length} bytes of {len(view) - 12}")
        view = view[: self.size]
        if check_crcs and zlib.crc32(view[16:]) != crc:
            raise self._error("CRC does not fit; the bytes were damaged on disk or on the way")
        at = _FRONT.size
        self.timestamp = NO_TIMESTAMP
        if self.magic:
            if at + _TIMESTAMP.size > self.size:
                raise self._error("it ends inside its timestamp")
            (self.timestamp,) = _TIMESTAMP.unpack_from(view, at)
            at += _TIMESTAMP.size
        self.key, at = self._field(view, at)
        self.value, at = self._field(view, at)
        if at != self.size:
            raise self._error(f"{self.size - at} bytes follow its value")

    @property
    def codec(self) -> Codec:
        return Codec.of(self.attributes & CODEC_MASK)

    @property
    def has_append_time(self) -> bool:
        return self.magic == 1 and bool(self.attributes & LOG_APPEND_TIME)

    def _field(self, view: memoryview, at: int) -> tuple[bytes | None, int]:
        if at + 4 > self.size:
            raise self._error("it ends inside a field length")
        (length,) = _FIELD_LENGTH.unpack_from(view, at)
        at += 4
        if length == -1:
            return None, at
        if length < 0 or at + length > self.size:
            raise self._error(f"a field claims {length} bytes")
        return bytes(view[at : at + length]), at + length

    def _error(self, why: str) -> BatchError:
        return BatchError(f"read message at offset {self.offset}: {why}")


def decode_message(
    view: memoryview,
    rules: ForwardRules = ForwardRules(),  # noqa: B008 - frozen
) -> tuple[list[Record], Codec]:
    """Decode one message, or all that it wraps: the records, and how they were compressed."""
    message = LegacyMessage(view, rules.check_crcs)
    if message.size != len(view):
        raise BatchError(f"read message at offset {message.offset}: bytes follow it")
    if message.codec is Codec.NONE:
        records = [Record(message.offset, message.timestamp, message.key, message.value)]
    else:
        records = _unwrap(message, rules)
    _check_offsets(message.offset, records)
    return records, message.codec


def _check_offsets(offset: int, records: list[Record]) -> None:
    offsets = [-1, *(record.offset for record in records), LARGEST_OFFSET + 1]
    is_rising = all(before < after for before, after in pairwise(offsets))
    if not is_rising or not 0 <= offset <= LARGEST_OFFSET:
        raise BatchError(f"read message at offset {offset}: offsets in it are not in order")


def _unwrap(wrapper: LegacyMessage, rules: ForwardRules) -> list[Record]:
    if wrapper.value is None:
        raise BatchError(f"read message at offset {wrapper.offset}: compressed, but without value")
    content = memoryview(wrapper.codec.decompress(wrapper.value, rules.limit_bytes))
    inner = list(_messages(content, rules.check_crcs))
    for message in inner:
        if message.magic != wrapper.magic or message.codec is not Codec.NONE:
            raise BatchError(
                f"read message at offset {wrapper.offset}: "
                f"it wraps one of magic {message.magic} compressed with {message.codec.name}"
            )
    first_offset = wrapper.offset - inner[-1].offset if wrapper.magic and inner else 0
    return [
        Record(
            first_offset + message.offset,
            wrapper.timestamp if wrapper.has_append_time else message.timestamp,
            message.key,
            message.value,
        )
        for message in inner
    ]


def _messages(content: memoryview, check_crcs: bool) -> Iterator[LegacyMessage]:
    while len(content):
        message = LegacyMessage(content, check_crcs)
        yield message
        content = content[message.size :]


class MessageSet:
    """Neighbouring messages of the old formats, on their way to become magic-2 batches."""

    def __init__(self, next_offset: int) -> None:
        self._next_offset = next_offset
        self._records: list[tuple[Record, Codec]] = []
        self.last_offset = next_offset - 1

    def add(self, view: memoryview, rules: ForwardRules) -> None:
        """Take one message, without what lies before the position."""
        records, codec = decode_message(view, rules)
        wanted = [record for record in records if record.offset > self.last_offset]
        self._records += [(record, codec) for record in wanted]
        offset = int.from_bytes(view[:8], "big", signed=True)
        self.last_offset = max([self.last_offset, offset, *(record.offset for record in wanted)])

    def batches(self, rules: ForwardRules) -> Iterator[OutgoingBatch]:
        """Encode all of it, a new batch where the codec changes or the size is reached."""
        group: list[Record] = []
        group_codec = Codec.NONE
        room = rules.merge_into_bytes
        for record, codec in self._records:
            size = len(record.key or b"") + len(record.value or b"") + _RECORD_OVERHEAD_BYTES
            if group and (codec is not group_codec or size > room):
                yield _encode(group, group_codec, rules)
                group, room = [], rules.merge_into_bytes
            group.append(record)
            group_codec = codec
            room -= size
        if group:
            yield _encode(group, group_codec, rules)


def _encode(records: list[Record], codec: Codec, rules: ForwardRules) -> OutgoingBatch:
    codec = codec if rules.codec is None else rules.codec
    batch = encode(records, codec, rules.codec_level)
    times = [record.timestamp for record in records]
    runs = _runs([record.offset for record in records])
    return OutgoingBatch(
        batch, records[0].offset, records[-1].offset, len(records), times[0], max(times),
        runs if len(runs) > 1 else None, len(batch),
    )  # fmt: skip


def _runs(offsets: list[int]) -> Runs:
    runs: list[tuple[int, int]] = []
    for offset in offsets:
        if runs and sum(runs[-1]) == offset:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((offset, 1))
    return tuple(runs)
