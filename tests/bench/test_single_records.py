"""Batches of one record: what the benchmark writes is what a reader of batches finds."""

from __future__ import annotations

import struct

import pytest

from bench.single_records import check_response, response_size, single_record_batches
from sparkmirror.batches.header import check_crc, read_header
from sparkmirror.errors import BrokerError

PARTITIONS = range(2)


def response(*codes: int) -> bytes:
    partitions = b"".join(
        struct.pack(">ihqqq", number, code, 7, -1, 0) for number, code in enumerate(codes)
    )
    body = struct.pack(">ii", 0, 1) + b"\0\1t" + struct.pack(">i", len(codes)) + partitions
    return struct.pack(">i", len(body) + 4) + body + bytes(4)


def test_a_response_has_the_size_that_is_read() -> None:
    assert len(response(0, 0)) == response_size("t", PARTITIONS)
    check_response(response(0, 0), "t", PARTITIONS)


def test_a_batch_that_is_not_stored_ends_the_filling() -> None:
    with pytest.raises(BrokerError, match=r"fill t-1 .*error code 87"):
        check_response(response(0, 87), "t", PARTITIONS)


def test_a_batch_holds_its_value_and_nothing_else() -> None:
    (batch,) = single_record_batches([b"v" * 100])
    header = read_header(batch)
    check_crc(memoryview(batch), header)
    assert header.record_count == 1
    assert batch.endswith(b"v" * 100 + b"\0")
