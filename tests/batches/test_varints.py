"""Varints one by one and many at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.batches.varints import (
    MAX_INT_BYTES,
    MAX_LONG_BYTES,
    decode_unsigned,
    encode_unsigned,
    encode_varint,
    read_varint,
    read_varints,
    skip_varints,
    write_varints_before,
    write_varints_over,
)
from sparkmirror.errors import BatchError

LONGS = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-300, 300)
PROPERTY = settings(derandomize=True, deadline=None)

GOLDEN = [
    (0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "8001"), (-65, "8101"),
    (8191, "fe7f"), (8192, "808001"), ((1 << 31) - 1, "feffffff0f"), (-(1 << 31), "ffffffff0f"),
    ((1 << 63) - 1, "feffffffffffffffff01"), (-(1 << 63), "ffffffffffffffffff01"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "encoded"), GOLDEN, ids=[str(value) for value, _ in GOLDEN])
def test_values_have_the_bytes_that_kafka_writes(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert encode_varint(value) == data
    assert read_varint(data, 0, len(data), MAX_LONG_BYTES) == (value, len(data))


@pytest.mark.parametrize(
    ("data", "end"),
    [(b"", 0), (b"\x80", 1), (b"\x80\x01", 1), (b"\xff" * 5 + b"\x01", 6)],
    ids=["nothing", "cut", "ends-too-late", "endless"],
)
def test_reading_refuses_unfinished_values(data: bytes, end: int) -> None:
    with pytest.raises(BatchError, match="not finished"):
        read_varint(data, 0, end)


@PROPERTY
@given(st.lists(LONGS, min_size=1, max_size=40))
def test_many_values_are_read_as_one_by_one(values: list[int]) -> None:
    parts = [encode_varint(value) for value in values]
    data = np.frombuffer(b"".join(parts), np.uint8)
    ends = np.cumsum([len(part) for part in parts])
    starts = ends - [len(part) for part in parts]
    found, after = read_varints(data, starts, MAX_LONG_BYTES)
    assert found.tolist() == values
    assert after.tolist() == ends.tolist()
    assert skip_varints(data, starts).tolist() == ends.tolist()


@PROPERTY
@given(st.lists(LONGS, min_size=1, max_size=40))
def test_many_values_are_written_in_shortest_form(values: list[int]) -> None:
    data = np.full(len(values) * 12, 0xEE, np.uint8)
    ends = np.arange(1, len(values) + 1) * 12
    starts = write_varints_before(data, ends, np.array(values, np.int64))
    for value, start, end in zip(values, starts, ends, strict=True):
        assert data[start:end].tobytes() == encode_varint(value)
        assert (data[end - 12 : start] == 0xEE).all()


@PROPERTY
@given(st.lists(st.tuples(st.integers(0, 1 << 28), st.integers(0, 1 << 28)), max_size=40))
def test_smaller_values_take_the_width_of_larger_ones(pairs: list[tuple[int, int]]) -> None:
    parts = [encode_varint(max(pair)) for pair in pairs]
    data = bytearray(b"".join(parts))
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    starts = ends - np.array([len(part) for part in parts], np.int64)
    new = np.array([min(pair) for pair in pairs], np.int64)
    write_varints_over(np.frombuffer(data, np.uint8), starts, ends, new)
    found = [
        read_varint(data, start, end)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    assert found == list(zip(new.tolist(), ends.tolist(), strict=True))


def test_endless_values_are_refused_among_many() -> None:
    data = np.full(30, 0xFF, np.uint8)
    with pytest.raises(BatchError, match="not finished"):
        read_varints(data, np.array([0, 3]))
    with pytest.raises(BatchError, match="not finished"):
        skip_varints(data, np.array([0, 3]))


@pytest.mark.parametrize(
    ("value", "expected"), [(0, b"\0"), (127, b"\x7f"), (128, b"\x80\1"), (300, b"\xac\2")]
)
def test_unsigned_values_have_the_bytes_that_kafka_writes(value: int, expected: bytes) -> None:
    assert encode_unsigned(value) == expected
    assert decode_unsigned(memoryview(b"x" + expected), 1) == (value, 1 + len(expected))


@PROPERTY
@given(st.integers(0, (1 << 63) - 1))
def test_unsigned_values_both_ways(value: int) -> None:
    data = encode_unsigned(value)
    assert decode_unsigned(data, 0, MAX_LONG_BYTES) == (value, len(data))


@pytest.mark.parametrize("width", [MAX_INT_BYTES, MAX_LONG_BYTES])
def test_an_unsigned_value_ends_with_its_last_byte_at_the_latest(width: int) -> None:
    longest = b"\x80" * (width - 1) + b"\1"
    assert decode_unsigned(longest, 0, width) == (1 << 7 * (width - 1), width)
    for data in (b"", b"\x80", b"\x80" * (width - 1), b"\x80" * width + b"\1"):
        with pytest.raises(ValueError, match="byte 0 does not end"):
            decode_unsigned(data, 0, width)
