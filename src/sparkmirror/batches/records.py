"""Records of a magic-2 batch, one by one: the plain reader and writer.

Forwarding never comes here. It is the reference that the fast paths are tested against, and what
reads and writes the records of internal topics.

    record   length varint | attributes = 0 | timestamp delta varlong | offset delta varint
             key length varint (-1: null), key | value length, value | header count
             each header: name length, name (UTF-8) | value length (-1: null), value
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sparkmirror.batches import header as layout
from sparkmirror.batches.codecs import DEFAULT_LIMIT_BYTES, Codec
from sparkmirror.batches.header import HEADER_BYTES, Buffer, Header, check_crc, check_header
from sparkmirror.batches.varints import MAX_LONG_BYTES, encode_varint, read_varint
from sparkmirror.errors import BatchError

RecordHeaders = tuple[tuple[str, bytes | None], ...]

_NULL = encode_varint(-1)


class Record(NamedTuple):
    """One record as a consumer sees it; header names that are not UTF-8 keep their bytes."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: RecordHeaders = ()


def decode(
    view: Buffer, *, check_crcs: bool = True, limit_bytes: int = DEFAULT_LIMIT_BYTES
) -> list[Record]:
    """Decode the one batch that `view` holds.

    Raises:
        BatchError: the bytes are not a whole, well-formed magic-2 batch.
    """
    header = layout.read_header(view)
    check_header(header)
    batch = memoryview(view)
    if header.size != len(batch):
        raise BatchError(
            f"decode batch at offset {header.base_offset}: "
            f"it has {len(batch)} bytes, its header says {header.size}"
        )
    if check_crcs:
        check_crc(batch, header)
    body = Codec.of(header.codec_id).decompress(batch[HEADER_BYTES:], limit_bytes)
    try:
        return _decode_body(header, bytes(body))
    except BatchError as error:
        raise BatchError(f"decode batch at offset {header.base_offset}: {error}") from error


def _decode_body(header: Header, body: bytes) -> list[Record]:
    records = []
    at = 0
    for _ in range(header.record_count):
        record, at = _decode_record(header, body, at)
        records.append(record)
    if at != len(body):
        raise BatchError(f"{len(body) - at} bytes follow the last of {header.record_count} records")
    return records


def _decode_record(header: Header, body: bytes, at: int) -> tuple[Record, int]:
    length, at = read_varint(body, at, len(body))
    end = at + length
    if not at < end <= len(body):
        raise BatchError(f"a record claims {length} bytes")
    timestamp_delta, at = read_varint(body, at + 1, end, MAX_LONG_BYTES)
    offset_delta, at = read_varint(body, at, end)
    key, at = _read_bytes(body, at, end)
    value, at = _read_bytes(body, at, end)
    headers, at = _read_headers(body, at, end)
    if at != end:
        raise BatchError(f"{end - at} bytes follow the headers of a record")
    timestamp = header.base_timestamp + timestamp_delta
    if header.has_append_time:
        timestamp = header.max_timestamp
    return Record(header.base_offset + offset_delta, timestamp, key, value, headers), end


def _read_bytes(body: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    length, at = read_varint(body, at, end)
    if length == -1:
        return None, at
    if length < 0 or at + length > end:
        raise BatchError(f"a field of a record claims {length} bytes")
    return body[at : at + length], at + length


def _read_headers(body: bytes, at: int, end: int) -> tuple[RecordHeaders, int]:
    count, at = read_varint(body, at, end)
    if count < 0:
        raise BatchError(f"a record claims {count} headers")
    headers = []
    for _ in range(count):
        name, at = _read_bytes(body, at, end)
        if name is None:
            raise BatchError("a record header has no name")
        value, at = _read_bytes(body, at, end)
        headers.append((name.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), at


def encode(
    records: Sequence[Record], codec: Codec = Codec.NONE, level: int | None = None
) -> bytearray:
    """Encode records as one batch: offsets 0, 1, 2 ..., no producer, CRC valid."""
    if not records:
        raise BatchError("encode batch: there are no records, and brokers reject empty batches")
    base_timestamp = records[0].timestamp
    body = b"".join(
        _encode_record(record, delta, base_timestamp) for delta, record in enumerate(records)
    )
    batch = bytearray(HEADER_BYTES)
    batch += codec.compress(body, level)
    layout.write_header(
        batch,
        codec_id=codec,
        count=len(records),
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in records),
    )
    layout.write_crc(batch)
    return batch


def _encode_record(record: Record, delta: int, base_timestamp: int) -> bytes:
    parts = [
        b"\x00",
        encode_varint(record.timestamp - base_timestamp),
        encode_varint(delta),
        _encode_bytes(record.key),
        _encode_bytes(record.value),
        encode_varint(len(record.headers)),
    ]
    for name, value in record.headers:
        parts += (_encode_bytes(name.encode("utf-8", "surrogateescape")), _encode_bytes(value))
    fields = b"".join(parts)
    return encode_varint(len(fields)) + fields


def _encode_bytes(data: bytes | None) -> bytes:
    return _NULL if data is None else encode_varint(len(data)) + data
