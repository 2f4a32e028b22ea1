"""Small requests and responses: golden bytes, and kafka-python reads ours and the reverse."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import ApiVersionsResponse, MetadataRequest, MetadataResponse
from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from sparkmirror.errors import BrokerError, RemoteProtocolError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.protocol import messages
from tests.wire.nonsense import read

A0, A1, B7 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("bb", 7)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(None, b"\xff\xff", id="none"),
        pytest.param("", b"\0\0", id="empty"),
        pytest.param("ab", b"\0\2ab", id="ascii"),
        pytest.param("\u00e9", b"\0\2\xc3\xa9", id="length in bytes"),
    ],
)
def test_strings(value: str | None, expected: bytes) -> None:
    assert messages.encode_string(value) == expected


# -- API versions ---------------------------------------------------------------------------------


def test_api_versions_golden() -> None:
    response = bytes.fromhex("0000 00000002 0001 0004 000d 0003 0000 000c")
    assert messages.decode_api_versions(memoryview(response)) == {1: (4, 13), 3: (0, 12)}


def test_api_versions_by_kafka_python() -> None:
    rows = [
        ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, low, high in ((0, 3, 12), (1, 4, 18), (3, 0, 13))
    ]
    response = ApiVersionsResponse(error_code=0, api_keys=rows).encode(version=0)
    found = messages.decode_api_versions(memoryview(response))
    assert found == {0: (3, 12), 1: (4, 18), 3: (0, 13)}


def test_api_versions_that_are_refused() -> None:
    with pytest.raises(BrokerError, match="ask for API versions: UNSUPPORTED_VERSION"):
        messages.decode_api_versions(memoryview(bytes.fromhex("0023 00000000")))


# -- metadata -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(4, 13))
def test_metadata_request_never_creates_topics(version: int) -> None:
    body = messages.encode_metadata(["a", "bb"], version)
    request = MetadataRequest.decode(body, version=version)
    assert [topic.name for topic in request.topics] == ["a", "bb"]
    assert request.allow_auto_topic_creation is False


def metadata(version: int, *topics: Any) -> memoryview:
    brokers = [
        MetadataResponse.MetadataResponseBroker(node_id=node, host=host, port=port, rack=None)
        for node, host, port in ((1, "one", 9092), (2, "two", 9093))
    ]
    response = MetadataResponse(
        throttle_time_ms=0,
        brokers=brokers,
        cluster_id="c",
        controller_id=1,
        topics=list(topics),
    )
    tags = b"\0" if version >= 9 else b""
    return memoryview(tags + bytes(response.encode(version=version)))


def topic(name: str, topic_id: int, *leaders: tuple[int, int], code: int = 0) -> Any:
    kind = MetadataResponse.MetadataResponseTopic
    rows = [
        kind.MetadataResponsePartition(
            error_code=0 if leader >= 0 else 5,
            partition_index=at,
            leader_id=leader,
            leader_epoch=epoch,
            replica_nodes=[1, 2],
            isr_nodes=[1],
            offline_replicas=[],
        )
        for at, (leader, epoch) in enumerate(leaders)
    ]
    return kind(
        error_code=code,
        name=name,
        topic_id=uuid.UUID(int=topic_id),
        is_internal=False,
        partitions=rows,
    )


@pytest.mark.parametrize("version", [7, 9, 10, 12])
def test_metadata_response(version: int) -> None:
    response = metadata(version, topic("a", 5, (1, 3), (-1, 4)), topic("gone", 0, code=3))
    view = messages.decode_metadata(response, version)
    assert view.nodes == {1: ("one", 9092), 2: ("two", 9093)}
    assert view.leaders == {A0: (1, 3)}
    assert view.errors == {"gone": 3}
    assert view.topic_ids == ({"a": uuid.UUID(int=5).bytes} if version >= 10 else {})


def test_metadata_response_of_the_oldest_version_has_no_epochs() -> None:
    view = messages.decode_metadata(metadata(4, topic("a", 0, (2, 0))), 4)
    assert view.leaders == {A0: (2, -1)}


# -- list offsets ---------------------------------------------------------------------------------


def test_list_offsets_golden() -> None:
    body = messages.encode_list_offsets({A1: messages.LATEST}, read_committed=True)
    assert body == bytes.fromhex(
        "ffffffff 01 00000001 0001 61 00000001 00000001 ffffffff ffffffffffffffff"
    )


@pytest.mark.parametrize("read_committed", [True, False])
def test_list_offsets_as_kafka_python_reads_it(read_committed: bool) -> None:
    wanted = {A0: messages.EARLIEST, B7: 1_700_000_000_000, A1: messages.LATEST}
    body = messages.encode_list_offsets(wanted, read_committed)
    request = ListOffsetsRequest.decode(body, version=4)
    found = {
        TopicPartition(topic.name, row.partition_index): row.timestamp
        for topic in request.topics
        for row in topic.partitions
    }
    assert found == wanted
    assert request.isolation_level == int(read_committed)
    assert request.replica_id == -1


def test_list_offsets_response() -> None:
    kind = ListOffsetsResponse.ListOffsetsTopicResponse
    rows = {A0: (0, 12), A1: (6, -1), B7: (0, 1 << 40)}
    topics = [
        kind(
            name=name,
            partitions=[
                kind.ListOffsetsPartitionResponse(
                    partition_index=tp.partition,
                    error_code=code,
                    timestamp=-1,
                    offset=offset,
                    leader_epoch=9,
                )
                for tp, (code, offset) in rows.items()
                if tp.topic == name
            ],
        )
        for name in ("a", "bb")
    ]
    response = ListOffsetsResponse(throttle_time_ms=3, topics=topics).encode(version=4)
    assert messages.decode_list_offsets(memoryview(response)) == rows


# -- producer ids ---------------------------------------------------------------------------------


def test_init_producer_id_golden() -> None:
    assert messages.encode_init_producer_id() == bytes.fromhex("ffff 0000ea60")
    request = InitProducerIdRequest.decode(messages.encode_init_producer_id(), version=1)
    assert request.transactional_id is None


@pytest.mark.parametrize("expected", [(0, 4711, 0), (14, -1, -1), (0, 1 << 40, 7)])
def test_init_producer_id_response(expected: tuple[int, int, int]) -> None:
    code, producer_id, epoch = expected
    response = InitProducerIdResponse(
        throttle_time_ms=5, error_code=code, producer_id=producer_id, producer_epoch=epoch
    ).encode(version=1)
    assert messages.decode_init_producer_id(memoryview(response)) == expected


# -- nonsense -------------------------------------------------------------------------------------

DECODERS: list[Callable[[memoryview], object]] = [
    messages.decode_api_versions,
    messages.decode_list_offsets,
    messages.decode_init_producer_id,
    lambda response: messages.decode_metadata(response, 4),
    lambda response: messages.decode_metadata(response, 12),
]
NAMES = ["api versions", "list offsets", "producer id", "metadata 4", "metadata 12"]


@pytest.mark.parametrize("decode", DECODERS, ids=NAMES)
@given(data=st.binary(max_size=80))
@example(data=b"")
@example(data=b"\x00\x00\xff\xff\xff\xff" + b"\x00" * 30)
@example(data=b"\x7f" * 60)
@example(data=b"\x00" + b"\xff" * 60)
def test_nonsense_is_the_brokers_fault(decode: Callable[[memoryview], object], data: bytes) -> None:
    found = read(decode, data)
    if isinstance(found, BrokerError):
        assert struct.unpack_from(">h", data)[0] == found.code
    else:
        assert isinstance(found, RemoteProtocolError | dict | tuple | messages.MetadataView)


@given(size=st.integers(min_value=0, max_value=200))
def test_metadata_that_is_cut_is_the_brokers_fault(size: int) -> None:
    whole = metadata(12, topic("a", 5, (1, 3), (2, 4)))
    cut = whole[: min(size, len(whole) - 1)]
    with pytest.raises(RemoteProtocolError):
        messages.decode_metadata(cut, 12)
