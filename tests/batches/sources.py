"""Batches as a source broker may hold them, made record by record in the plainest way."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from struct import Struct

from crc32c import crc32c

from sparkmirror.batches.codecs import Codec
from sparkmirror.batches.header import WRITE_HEADER
from sparkmirror.batches.records import Record
from sparkmirror.batches.varints import encode_varint

_MESSAGE_V0 = Struct(">BB")
_MESSAGE_V1 = Struct(">BBq")


def field(data: bytes | None) -> bytes:
    """Encode a nullable field of a record."""
    return encode_varint(-1) if data is None else encode_varint(len(data)) + data


def encode_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    """Encode one record with its offset as it is."""
    out = b"\x00" + encode_varint(record.timestamp - base_timestamp)
    out += encode_varint(record.offset - base_offset) + field(record.key) + field(record.value)
    out += encode_varint(len(record.headers))
    for name, value in record.headers:
        out += field(name.encode()) + field(value)
    return encode_varint(len(out)) + out


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """A magic-2 batch: records with their offsets, and what the broker put around them."""

    records: tuple[Record, ...]
    base_offset: int = 0
    last_offset: int | None = None  # None: that of the last record
    codec: Codec = Codec.NONE
    base_timestamp: int | None = None  # None: that of the first record
    append_time: int | None = None
    transactional: bool = False
    control: bool = False
    delete_horizon: bool = False
    producer_id: int = -1

    def encode(self) -> bytearray:
        """Write it out, CRC and all."""
        times = [record.timestamp for record in self.records]
        base_time = self.base_timestamp
        if base_time is None:
            base_time = times[0] if times else -1
        max_time = max(times, default=-1) if self.append_time is None else self.append_time
        body = b"".join(encode_record(each, self.base_offset, base_time) for each in self.records)
        payload = bytes(self.codec.compress(body)) if body else b""
        batch = bytearray(61) + payload
        WRITE_HEADER.pack_into(
            batch, 0, self.base_offset, len(batch) - 12, 5, 2, 0, self._attributes(),
            self.end_offset - 1 - self.base_offset, base_time, max_time, self.producer_id, 3, 17,
            len(self.records),
        )  # fmt: skip
        batch[17:21] = crc32c(batch[21:]).to_bytes(4, "big")
        return batch

    @property
    def end_offset(self) -> int:
        """The first offset after the batch."""
        last = self.records[-1].offset if self.last_offset is None else self.last_offset
        return last + 1

    def _attributes(self) -> int:
        return (
            self.codec
            | (self.append_time is not None) << 3
            | self.transactional << 4
            | self.control << 5
            | self.delete_horizon << 6
        )

    def visible(self) -> list[Record]:
        """Give the records as a consumer sees them."""
        if self.append_time is None:
            return list(self.records)
        return [record._replace(timestamp=self.append_time) for record in self.records]


def marker(offset: int, producer_id: int, *, commit: bool) -> SourceBatch:
    """Make the control batch that ends a transaction."""
    key = b"\x00\x00\x00" + bytes([commit])
    return SourceBatch(
        (Record(offset, 1, key, bytes(6)),),
        base_offset=offset,
        transactional=True,
        control=True,
        producer_id=producer_id,
    )


def message(record: Record, magic: int, attributes: int = 0) -> bytes:
    """Encode one message of the old formats."""
    front = (
        _MESSAGE_V1.pack(magic, attributes, record.timestamp)
        if magic
        else _MESSAGE_V0.pack(magic, attributes)
    )
    content = front + _old_field(record.key) + _old_field(record.value)
    checked = zlib.crc32(content).to_bytes(4, "big") + content
    return record.offset.to_bytes(8, "big") + len(checked).to_bytes(4, "big") + checked


def _old_field(data: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if data is None else len(data).to_bytes(4, "big") + data


def wrapper(
    records: list[Record], magic: int, codec: Codec, append_time: int | None = None
) -> bytes:
    """Compress messages into one; inner offsets are relative in magic 1."""
    base = records[0].offset if magic else 0
    inner = b"".join(message(r._replace(offset=r.offset - base), magic) for r in records)
    attributes = codec | (append_time is not None) << 3
    time = max(r.timestamp for r in records) if append_time is None else append_time
    outer = Record(records[-1].offset, time, None, bytes(codec.compress(inner)))
    return message(outer, magic, attributes)


def rebase(batch: SourceBatch, offset: int) -> SourceBatch:
    """Move a batch to another place in the log."""
    by = offset - batch.base_offset
    return replace(
        batch,
        base_offset=offset,
        records=tuple(r._replace(offset=r.offset + by) for r in batch.records),
        last_offset=None if batch.last_offset is None else batch.last_offset + by,
    )
