"""Produce: what kafka-python reads in our requests, and what we read in its responses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from sparkmirror.batches.header import Buffer
from sparkmirror.errors import RemoteProtocolError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.protocol.api_versions import PRODUCE
from sparkmirror.wire.protocol.produce_messages import Produced, decode_produce, encode_produce
from tests.wire.nonsense import read

A0, A1, B7 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b\u00e9", 7)

VERSIONS = range(PRODUCE.oldest, PRODUCE.newest + 1)

Topic = ProduceResponse.TopicProduceResponse
Row = Topic.PartitionProduceResponse


# -- requests -------------------------------------------------------------------------------------


def test_request_golden() -> None:
    pieces = encode_produce([(A1, b"batch")], acks=-1, timeout_ms=1000)
    assert b"".join(pieces) == bytes.fromhex(
        "ffff ffff 000003e8 00000001 0001 61 00000001 00000001 00000005 6261746368"
    )


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param({A0: b"one"}, id="one"),
        pytest.param({B7: b"one"}, id="a name that is not ascii"),
        pytest.param({A0: b"one", A1: b"two"}, id="two partitions"),
        pytest.param({A0: b"one", B7: b"two", A1: b"three"}, id="two topics, mixed"),
    ],
)
@pytest.mark.parametrize("acks", [-1, 1])
@pytest.mark.parametrize("version", VERSIONS)
def test_request_as_kafka_python_reads_it(
    batches: dict[TopicPartition, bytes], acks: int, version: int
) -> None:
    pieces = encode_produce(list(batches.items()), acks, timeout_ms=30_000)
    request = ProduceRequest.decode(b"".join(pieces), version=version)
    found = {
        TopicPartition(topic.name, row.index): bytes(row.records)
        for topic in request.topic_data
        for row in topic.partition_data
    }
    assert found == batches
    assert (request.acks, request.timeout_ms, request.transactional_id) == (acks, 30_000, None)


def test_batches_are_not_copied() -> None:
    views: list[Buffer] = [memoryview(bytearray(b"first")), memoryview(bytearray(b"second"))]
    for count in (1, 2):
        rows = list(zip((A0, A1), views[:count], strict=False))
        pieces = encode_produce(rows, -1, 1000)
        assert all(any(piece is view for piece in pieces) for view in views[:count])


# -- responses ------------------------------------------------------------------------------------


def response(*rows: tuple[TopicPartition, dict[str, Any]], version: int = 8) -> memoryview:
    known = {
        "error_code": 0,
        "base_offset": 0,
        "log_append_time_ms": -1,
        "log_start_offset": 0,
        "record_errors": [],
        "error_message": None,
    }
    topics: dict[str, list[Any]] = {}
    for tp, fields in rows:
        row = Row(index=tp.partition, **(known | fields))
        topics.setdefault(tp.topic, []).append(row)
    message = ProduceResponse(
        responses=[Topic(name=name, partition_responses=found) for name, found in topics.items()],
        throttle_time_ms=0,
    )
    return memoryview(bytes(message.encode(version=version)))


RECORD_ERRORS = [
    Row.BatchIndexAndErrorMessage(batch_index=3, batch_index_error_message="too old"),
    Row.BatchIndexAndErrorMessage(batch_index=5, batch_index_error_message=None),
]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"base_offset": 1 << 40}, (0, 1 << 40, None), id="stored"),
        pytest.param({"error_code": 6, "base_offset": -1}, (6, -1, None), id="not the leader"),
        pytest.param(
            {"error_code": 87, "base_offset": -1, "error_message": "bad"},
            (87, -1, "bad"),
            id="with words",
        ),
        pytest.param(
            {"error_code": 32, "base_offset": -1, "record_errors": RECORD_ERRORS},
            (32, -1, "record 3: too old; record 5"),
            id="with records",
        ),
        pytest.param(
            {"error_code": 32, "error_message": "bad", "record_errors": RECORD_ERRORS},
            (32, 0, "bad; record 3: too old; record 5"),
            id="with both",
        ),
    ],
)
def test_response_of_one_partition(fields: dict[str, Any], expected: Produced) -> None:
    assert decode_produce(response((B7, fields)), 8) == {B7: expected}
    code, offset, _ = expected
    assert decode_produce(response((B7, fields), version=7), 7) == {B7: (code, offset, None)}


def test_response_of_several_partitions() -> None:
    found = decode_produce(
        response(
            (A0, {"base_offset": 5}),
            (A1, {"error_code": 32, "record_errors": RECORD_ERRORS}),
            (B7, {"base_offset": 6}),
        ),
        8,
    )
    assert found == {
        A0: (0, 5, None),
        A1: (32, 0, "record 3: too old; record 5"),
        B7: (0, 6, None),
    }


def test_response_golden() -> None:
    data = bytes.fromhex(
        "00000001 0001 61 00000001"
        "00000001 0000 0000000000000007 ffffffffffffffff 0000000000000000 00000000 ffff"
        "00000000"
    )
    assert decode_produce(memoryview(data), 8) == {A1: (0, 7, None)}


# -- nonsense -------------------------------------------------------------------------------------

WHOLE = bytes(
    response((A0, {"base_offset": 5}), (B7, {"error_code": 32, "record_errors": RECORD_ERRORS}))
)


@pytest.mark.parametrize("size", range(len(WHOLE) - 4 - 2))  # behind the rows: words, throttle
def test_a_response_that_is_cut_is_the_brokers_fault(size: int) -> None:
    with pytest.raises(RemoteProtocolError, match="a produce response that cannot be read"):
        decode_produce(memoryview(WHOLE[:size]), 8)


@given(data=st.binary(max_size=120))
@example(data=b"\x7f" * 100)
@example(data=b"\0\0\0\1\0\1\xff")
def test_nonsense_is_the_brokers_fault(data: bytes) -> None:
    found = read(lambda view: decode_produce(view, 8), data)
    assert isinstance(found, RemoteProtocolError) or (
        isinstance(found, dict) and len(found) <= len(data)
    )
