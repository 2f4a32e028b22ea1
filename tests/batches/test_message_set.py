"""The old message formats, by hand-made bytes and kafka-python's writer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from sparkmirror.batches.codecs import Codec
from sparkmirror.batches.message_set import decode_message
from sparkmirror.batches.records import Record
from sparkmirror.errors import BatchError
from tests.batches.sources import message, wrapper

PACKED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
THREE = [Record(n, 50 - n, b"key" if n else None, b"v" * n if n else None) for n in range(3)]


def without_time(records: list[Record]) -> list[Record]:
    return [record._replace(timestamp=-1) for record in records]


@pytest.mark.parametrize("magic", [0, 1])
def test_single_message_is_one_record(magic: int) -> None:
    for record in THREE:
        found, codec = decode_message(memoryview(message(record, magic)))
        assert found == ([record] if magic else without_time([record]))
        assert codec is Codec.NONE


@pytest.mark.parametrize("codec", PACKED, ids=lambda codec: codec.name)
@pytest.mark.parametrize("magic", [0, 1])
def test_wrapped_messages_have_their_own_offsets(magic: int, codec: Codec) -> None:
    records = [record._replace(offset=record.offset + 70) for record in THREE]
    found, found_codec = decode_message(memoryview(wrapper(records, magic, codec)))
    assert found == (records if magic else without_time(records))
    assert found_codec is codec


def test_relative_offsets_count_back_from_the_last_one_when_some_are_gone() -> None:
    kept = [record._replace(offset=record.offset * 4 + 100) for record in THREE]
    found, _ = decode_message(memoryview(wrapper(kept, 1, Codec.GZIP)))
    assert [record.offset for record in found] == [100, 104, 108]


def test_append_time_of_a_wrapper_is_that_of_all_it_wraps() -> None:
    found, _ = decode_message(memoryview(wrapper(THREE, 1, Codec.LZ4, append_time=9)))
    assert [record.timestamp for record in found] == [9, 9, 9]


@settings(derandomize=True, deadline=None)
@given(
    values=st.lists(
        st.tuples(st.none() | st.binary(max_size=30), st.none() | st.binary(max_size=30)),
        min_size=1,
        max_size=10,
    ),
    form=st.sampled_from(((0, Codec.GZIP), (1, Codec.GZIP), (1, Codec.LZ4))),
)
def test_what_kafka_python_writes_is_read(
    values: list[tuple[bytes | None, bytes | None]], form: tuple[int, Codec]
) -> None:
    magic, codec = form
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=int(codec), batch_size=9999)
    for offset, (key, value) in enumerate(values):
        builder.append(offset, 1000 + offset if magic else None, key, value)
    data = bytearray(builder.build())
    data[0:8] = (len(values) - 1).to_bytes(8, "big")  # the broker gives the wrapper its offset
    found, _ = decode_message(memoryview(data))
    times = [1000 + n if magic else -1 for n in range(len(values))]
    assert found == [Record(n, times[n], key, value) for n, (key, value) in enumerate(values)]


def _reversed(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize(
    ("data", "message_part"),
    [
        (message(THREE[1], 1)[:15], "ends inside its first bytes"),
        (message(THREE[1], 1)[:-1], "read message at offset 1: magic 1"),
        (message(THREE[1], 1) + b"x", "bytes follow it"),
        (_reversed(message(THREE[1], 1)), "CRC does not fit"),
        (message(THREE[1], 2), "magic 2"),
        (message(Record(5, 0, None, None), 1, Codec.GZIP), "without value"),
        (message(Record(5, 0, None, b"junk"), 1, Codec.GZIP), "decompress gzip"),
        (message(Record(5, 0, None, b"junk"), 1, attributes=7), "find codec 7"),
        (
            message(
                Record(5, 0, None, bytes(Codec.GZIP.compress(message(THREE[1], 0)))),
                1,
                Codec.GZIP,
            ),
            "wraps one of magic 0",
        ),
    ],
    ids=[
        "nothing", "cut", "too-long", "crc", "magic", "no-value", "junk", "codec", "inner-magic",
    ],
)  # fmt: skip
def test_malformed_messages_are_refused(data: bytes, message_part: str) -> None:
    with pytest.raises(BatchError, match=message_part):
        decode_message(memoryview(data))
