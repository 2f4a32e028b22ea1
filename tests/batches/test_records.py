"""The plain reader and writer, against golden bytes and kafka-python's."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from sparkmirror.batches.codecs import Codec
from sparkmirror.batches.records import Record, decode, encode
from sparkmirror.errors import BatchError
from tests.batches.sources import SourceBatch

PROPERTY = settings(derandomize=True, deadline=None)
SHARED = [Codec.NONE, Codec.GZIP, Codec.LZ4, Codec.ZSTD]  # kafka-python lacks a snappy library here

optional_bytes = st.none() | st.binary(max_size=80)
timestamps = st.integers(-1, 1 << 44)
record_lists = st.lists(
    st.builds(
        Record,
        offset=st.just(0),
        timestamp=timestamps,
        key=optional_bytes,
        value=optional_bytes,
        headers=st.lists(st.tuples(st.text(max_size=5), optional_bytes), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=70,
)

# One record, timestamp 1000, key "k", value null, header h="v": written by hand from the format.
GOLDEN = bytes.fromhex(
    "0000000000000000 0000003d ffffffff 02 ee24a8ba 0000 00000000 00000000000003e8 00000000000003e8"
    "ffffffffffffffff ffff ffffffff 00000001"
    "16 00 00 00 02 6b 01 02 02 68 02 76"
)


def numbered(records: list[Record]) -> list[Record]:
    return [record._replace(offset=offset) for offset, record in enumerate(records)]


def test_batch_has_the_bytes_of_the_format() -> None:
    record = Record(0, 1000, b"k", None, (("h", b"v"),))
    encoded = encode([record])
    assert encoded == GOLDEN
    assert decode(encoded) == [record]


@PROPERTY
@given(records=record_lists, codec=st.sampled_from(Codec))
def test_records_come_back(records: list[Record], codec: Codec) -> None:
    assert decode(encode(records, codec)) == numbered(records)


@PROPERTY
@given(records=record_lists, codec=st.sampled_from(SHARED))
def test_kafka_python_reads_what_is_written(records: list[Record], codec: Codec) -> None:
    batch = DefaultRecordBatch(bytes(encode(records, codec)))
    assert batch.validate_crc()
    assert batch.max_timestamp == max(record.timestamp for record in records)
    found = [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]
    assert found == numbered(records)


@PROPERTY
@given(records=record_lists, codec=st.sampled_from(SHARED))
def test_what_kafka_python_writes_is_read(records: list[Record], codec: Codec) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=int(codec), is_transactional=False, producer_id=-1,
        producer_epoch=-1, base_sequence=-1, batch_size=1 << 20,
    )  # fmt: skip
    for n, record in enumerate(records):
        builder.append(n, record.timestamp, record.key, record.value, list(record.headers))
    assert decode(bytes(builder.build())) == numbered(records)


def test_uncompressed_bytes_equal_those_of_kafka_python() -> None:
    records = [Record(n, 5000 - n, b"k", b"v" * n, (("h", None),)) for n in range(100)]
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=False, producer_id=-1, producer_epoch=-1,
        base_sequence=-1, batch_size=1 << 20,
    )  # fmt: skip
    for n, record in enumerate(records):
        builder.append(n, record.timestamp, record.key, record.value, list(record.headers))
    theirs, ours = bytes(builder.build()), bytes(encode(records))
    assert ours[16:17] + ours[21:] == theirs[16:17] + theirs[21:]


def test_append_time_is_every_records_timestamp() -> None:
    records = tuple(Record(n, 100 + n, None, b"v") for n in range(3))
    batch = SourceBatch(records, append_time=777).encode()
    assert [record.timestamp for record in decode(batch)] == [777, 777, 777]


def test_delete_horizon_leaves_timestamps_as_they_are() -> None:
    records = (Record(0, 100, None, b"v"), Record(1, 50, b"k", None))
    batch = SourceBatch(records, delete_horizon=True, base_timestamp=9000).encode()
    assert decode(batch) == list(records)


def test_header_names_that_are_not_utf8_keep_their_bytes() -> None:
    record = Record(0, 1, None, None, ((b"\xff\xfe".decode("utf-8", "surrogateescape"), b""),))
    encoded = encode([record])
    assert b"\xff\xfe" in encoded
    assert decode(encoded) == [record]


def test_empty_batch_decodes_to_nothing() -> None:
    assert decode(SourceBatch((), last_offset=9).encode()) == []


def test_encoding_no_records_is_refused() -> None:
    with pytest.raises(BatchError, match="no records"):
        encode([])


def _damaged(batch: bytearray, at: int, byte: int) -> bytearray:
    batch[at] = byte
    return batch


def _one() -> bytearray:
    return encode([Record(0, 1000, b"k", b"v")])


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (_one()[:40], "40 bytes left"),
        (_one()[:-1], "header says"),
        (_one() + b"x", "header says"),
        (_damaged(_one(), -1, 9), "CRC"),
        (_damaged(_one(), 16, 3), "unknown magic 3"),
        (_damaged(_one(), 60, 2), "2 records cannot have a last offset delta of 0"),
        (_damaged(_one(), 23, 0xFF), "last offset delta -"),
        (_damaged(_one(), 0, 0xFF), "negative offset"),
    ],
    ids=["no-header", "cut", "too-long", "crc", "magic", "count", "last-delta", "offset"],
)
def test_malformed_batches_are_refused(batch: bytearray, message: str) -> None:
    with pytest.raises(BatchError, match=message):
        decode(batch)
