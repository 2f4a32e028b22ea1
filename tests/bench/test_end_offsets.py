"""ListOffsets by hand: golden bytes, taken from the protocol's definition."""

from __future__ import annotations

import pytest
from bench.end_offsets import decode_response, encode_request

from sparkmirror.errors import BrokerError
from sparkmirror.types import TopicPartition


def answer(code: int) -> bytes:
    return bytes.fromhex(
        "00000000"  # correlation id
        "00000002"  # topics
        "0001 61 00000002"
        "00000000 0000 ffffffffffffffff 0000000000000005"
        "00000001 0000 ffffffffffffffff 0000000100000000"
        "0002 6263 00000001"
        f"00000007 {code:04x} ffffffffffffffff 0000000000000003"
    )


def test_request_groups_partitions_by_topic() -> None:
    partitions = [TopicPartition("a", 0), TopicPartition("bc", 7), TopicPartition("a", 1)]
    assert encode_request(partitions) == bytes.fromhex(
        "0002 0001 00000000 0005 62656e6368"  # ListOffsets v1, correlation id, "bench"
        "ffffffff 00000002"
        "0001 61 00000002 00000000 ffffffffffffffff 00000001 ffffffffffffffff"
        "0002 6263 00000001 00000007 ffffffffffffffff"
    )


def test_response_gives_every_end_offset() -> None:
    assert list(decode_response(answer(0))) == [5, 1 << 32, 3]


@pytest.mark.parametrize("code", [3, 5, 6])
def test_partition_that_is_not_there_yet_is_empty(code: int) -> None:
    assert list(decode_response(answer(code))) == [5, 1 << 32, 0]


def test_other_errors_are_raised() -> None:
    with pytest.raises(BrokerError, match="list offsets of bc-7: error code 29"):
        list(decode_response(answer(29)))
