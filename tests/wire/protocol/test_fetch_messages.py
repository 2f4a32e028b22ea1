"""Fetch: what kafka-python reads in our requests, and what we read in its responses."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchRequest, FetchResponse

from sparkmirror.errors import RemoteProtocolError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.protocol import fetch_messages as fetch
from sparkmirror.wire.protocol.api_versions import FETCH
from tests.wire.nonsense import read

LIMITS = fetch.Limits(
    max_wait_ms=500,
    min_bytes=1,
    max_bytes=1 << 24,
    partition_max_bytes=1 << 20,
    read_committed=True,
    rack="r",
)
A0, A1, B7 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("bb", 7)
IDS = {"a": uuid.UUID(int=10).bytes, "bb": uuid.UUID(int=11).bytes}
WANTED = [
    fetch.FetchRequestPartition(A0, 5, 2),
    fetch.FetchRequestPartition(B7, 1 << 40, -1),
    fetch.FetchRequestPartition(A1, 0, 3),
]

VERSIONS = range(FETCH.oldest, FETCH.newest + 1)

Topic = FetchResponse.FetchableTopicResponse
Row = Topic.PartitionData


# -- varints --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "end"),
    [
        pytest.param(b"\0", 1, id="none"),
        pytest.param(b"\1\0\2ab", 5, id="one"),
        pytest.param(b"\2\0\0\5\1x", 6, id="two"),
    ],
)
def test_tagged_fields_are_skipped(data: bytes, end: int) -> None:
    assert fetch.skip_tags(memoryview(data + b"rest"), 0) == end


# -- requests -------------------------------------------------------------------------------------


def test_request_golden_by_name() -> None:
    body = fetch.encode_fetch(12, (7, 3), WANTED[:1], [B7], topic_ids={}, limits=LIMITS)
    assert body == bytes.fromhex(
        "ffffffff 000001f4 00000001 01000000 01 00000007 00000003"
        "02 02 61 02 00000000 00000002 0000000000000005 ffffffff ffffffffffffffff 00100000 00 00"
        "02 03 6262 02 00000007 00"
        "02 72 00"
    )


def test_request_golden_by_id() -> None:
    body = fetch.encode_fetch(13, (0, 0), WANTED[:1], [], topic_ids=IDS, limits=LIMITS)
    assert body == bytes.fromhex(
        "ffffffff 000001f4 00000001 01000000 01 00000000 00000000"
        "02 0000000000000000000000000000000a"
        "02 00000000 00000002 0000000000000005 ffffffff ffffffffffffffff 00100000 00 00"
        "01"
        "02 72 00"
    )


def test_request_golden_of_old_brokers() -> None:
    body = fetch.encode_fetch(11, (7, 3), WANTED[:1], [B7], topic_ids={}, limits=LIMITS)
    assert body == bytes.fromhex(
        "ffffffff 000001f4 00000001 01000000 01 00000007 00000003"
        "00000001 0001 61 00000001 00000000 00000002 0000000000000005 ffffffffffffffff 00100000"
        "00000001 0002 6262 00000001 00000007"
        "0001 72"
    )
    assert (
        fetch.encode_fetch(10, (7, 3), WANTED[:1], [B7], topic_ids={}, limits=LIMITS) == body[:-3]
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_request_as_kafka_python_reads_it(version: int) -> None:
    by_id = version == fetch.BY_ID
    body = fetch.encode_fetch(version, (7, 3), WANTED, [A1, B7], topic_ids=IDS, limits=LIMITS)
    request = FetchRequest.decode(body, version=version)
    names = {uuid.UUID(bytes=value): name for name, value in IDS.items()}

    def name_of(topic: Any) -> str:
        return names[topic.topic_id] if by_id else str(topic.topic)

    wanted = {
        fetch.FetchRequestPartition(
            TopicPartition(name_of(topic), row.partition),
            row.fetch_offset,
            row.current_leader_epoch,
        )
        for topic in request.topics
        for row in topic.partitions
    }
    forgotten = {
        TopicPartition(name_of(topic), at)
        for topic in request.forgotten_topics_data
        for at in topic.partitions
    }
    assert wanted == set(WANTED)
    assert forgotten == {A1, B7}
    assert (request.session_id, request.session_epoch) == (7, 3)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 1 << 24)
    assert (request.isolation_level, request.replica_id) == (1, -1)
    assert request.rack_id == ("r" if version >= fetch.WITH_RACK else "")
    assert {row.partition_max_bytes for t in request.topics for row in t.partitions} == {1 << 20}


def test_request_with_many_partitions_and_a_long_name() -> None:
    name = "t" * 249
    wanted = [fetch.FetchRequestPartition(TopicPartition(name, at), at, at) for at in range(300)]
    body = fetch.encode_fetch(12, (0, 0), wanted, [], topic_ids={}, limits=LIMITS)
    (topic,) = FetchRequest.decode(body, version=12).topics
    assert topic.topic == name
    assert [row.fetch_offset for row in topic.partitions] == list(range(300))


# -- responses ------------------------------------------------------------------------------------


def row(partition: int, records: bytes | None = b"", **fields: Any) -> Any:
    known = {
        "error_code": 0,
        "high_watermark": 9,
        "last_stable_offset": 8,
        "log_start_offset": 1,
        "aborted_transactions": None,
        "preferred_read_replica": -1,
    }
    return Row(partition_index=partition, records=records, **(known | fields))


def response(version: int, topics: dict[str, list[Any]], code: int = 0, tags: bytes = b"") -> bytes:
    rows = [
        Topic(topic=name, topic_id=uuid.UUID(bytes=IDS[name]), partitions=found)
        for name, found in topics.items()
    ]
    message = FetchResponse(throttle_time_ms=0, error_code=code, session_id=77, responses=rows)
    head = (tags or b"\0") if version >= FETCH.first_flexible else b""
    return head + bytes(message.encode(version=version))


@pytest.mark.parametrize("version", VERSIONS)
def test_response_with_several_topics(version: int) -> None:
    aborted = [
        Row.AbortedTransaction(producer_id=4, first_offset=2),
        Row.AbortedTransaction(producer_id=5, first_offset=3),
    ]
    data = response(
        version,
        {
            "a": [row(0, b"first"), row(1, None, error_code=6)],
            "bb": [row(7, b"x" * 1000, aborted_transactions=aborted), row(8, b"")],
        },
    )
    found = fetch.decode_fetch(memoryview(data), version)
    a, bb = (IDS["a"], IDS["bb"]) if version == fetch.BY_ID else ("a", "bb")
    assert (found.code, found.session_id) == (0, 77)
    assert [(each.topic, each.partition, each.code) for each in found.rows] == [
        (a, 0, 0),
        (a, 1, 6),
        (bb, 7, 0),
        (bb, 8, 0),
    ]
    assert [bytes(each.records) for each in found.rows] == [b"first", b"", b"x" * 1000, b""]
    assert [list(each.aborted) for each in found.rows] == [[], [], [(4, 2), (5, 3)], []]
    assert found.rows[0][3:6] == (9, 8, 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_response_that_names_a_preferred_replica(version: int) -> None:
    data = response(version, {"a": [row(0, b"", preferred_read_replica=3)]})
    (found,) = fetch.decode_fetch(memoryview(data), version).rows
    assert found.preferred_replica == (3 if version >= fetch.WITH_RACK else -1)
    assert len(found.records) == 0


def test_request_names_the_epoch_that_was_read_last() -> None:
    wanted = [fetch.FetchRequestPartition(A0, 5, 2, 1), fetch.FetchRequestPartition(A1, 0, 3)]
    body = fetch.encode_fetch(12, (0, 0), wanted, [], topic_ids={}, limits=LIMITS)
    request = FetchRequest.decode(body, version=fetch.BY_NAME)
    rows = request.topics[0].partitions
    assert [row.last_fetched_epoch for row in rows] == [1, -1]


@pytest.mark.parametrize("end", [(3, 1 << 40), (-1, -1), None])
def test_response_of_a_log_that_differs(end: tuple[int, int] | None) -> None:
    row = Row(
        partition_index=0,
        error_code=0,
        high_watermark=9,
        last_stable_offset=9,
        log_start_offset=0,
        diverging_epoch=end and Row.EpochEndOffset(epoch=end[0], end_offset=end[1]),
        current_leader=Row.LeaderIdAndEpoch(leader_id=2, leader_epoch=7),
        aborted_transactions=None,
        preferred_read_replica=-1,
        records=b"",
    )
    topic = Topic(topic="a", partitions=[row, row])
    response = FetchResponse(throttle_time_ms=0, error_code=0, session_id=1, responses=[topic])
    data = b"\0" + bytes(response.encode(version=fetch.BY_NAME))
    found = fetch.decode_fetch(memoryview(data), fetch.BY_NAME)
    assert [each.diverging for each in found.rows] == [end if end and end[0] >= 0 else None] * 2


def test_response_with_tagged_fields_everywhere() -> None:
    tagged = row(
        0,
        b"records",
        diverging_epoch=Row.EpochEndOffset(epoch=1, end_offset=2),
        current_leader=Row.LeaderIdAndEpoch(leader_id=3, leader_epoch=4),
        snapshot_id=Row.SnapshotId(end_offset=5, epoch=6),
        aborted_transactions=[Row.AbortedTransaction(producer_id=4, first_offset=2)],
    )
    data = response(13, {"a": [tagged, row(1, b"more")]}, tags=b"\1\0\3abc")
    rows = fetch.decode_fetch(memoryview(data), 13).rows
    assert [bytes(each.records) for each in rows] == [b"records", b"more"]


def test_response_with_tags_in_an_aborted_transaction() -> None:
    aborted = [Row.AbortedTransaction(producer_id=4, first_offset=2)]
    data = response(13, {"a": [row(0, b"r", aborted_transactions=aborted)]})
    at = data.index((4).to_bytes(8, "big")) + 16
    assert data[at] == 0
    tagged = data[:at] + b"\1\0\2zz" + data[at + 1 :]
    (found,) = fetch.decode_fetch(memoryview(tagged), 13).rows
    assert list(found.aborted) == [(4, 2)]
    assert bytes(found.records) == b"r"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("code", [70, 71, 106])
def test_response_of_a_failed_session(code: int, version: int) -> None:
    found = fetch.decode_fetch(memoryview(response(version, {}, code=code)), version)
    assert found == fetch.FetchResponse(code, 77, [])


def test_records_lie_in_the_responses_own_bytes() -> None:
    data = bytearray(response(13, {"a": [row(0, b"records")]}))
    (found,) = fetch.decode_fetch(memoryview(data), 13).rows
    data[data.index(b"records")] = ord("R")
    assert bytes(found.records) == b"Records"


# -- nonsense -------------------------------------------------------------------------------------

WHOLE_TOPICS = {
    "a": [row(0, b"records"), row(1, error_code=6)],
    "bb": [
        row(
            7,
            b"x" * 20,
            aborted_transactions=[Row.AbortedTransaction(producer_id=4, first_offset=2)],
        )
    ],
}
WHOLE = response(13, WHOLE_TOPICS)
CLASSIC = response(11, WHOLE_TOPICS)


@pytest.mark.parametrize("size", range(len(WHOLE) - 1))
def test_a_response_that_is_cut_is_the_brokers_fault(size: int) -> None:
    with pytest.raises(RemoteProtocolError, match="a fetch response that cannot be read"):
        fetch.decode_fetch(memoryview(WHOLE[:size]), 13)


@pytest.mark.parametrize("size", range(len(CLASSIC)))
def test_an_old_brokers_response_that_is_cut_is_its_fault(size: int) -> None:
    with pytest.raises(RemoteProtocolError, match="a fetch response that cannot be read"):
        fetch.decode_fetch(memoryview(CLASSIC[:size]), 11)


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.binary(max_size=120))
@example(data=b"\0" * 11 + b"\xff" * 40)
@example(data=b"\0" * 11 + b"\2\0\0")
def test_nonsense_is_the_brokers_fault(version: int, data: bytes) -> None:
    found = read(lambda view: fetch.decode_fetch(view, version), data)
    if isinstance(found, fetch.FetchResponse):
        assert sum(len(each.records) for each in found.rows) <= len(data)
    else:
        assert isinstance(found, RemoteProtocolError)


@given(data=st.data())
def test_one_wrong_byte_is_harmless(data: st.DataObject) -> None:
    damaged = bytearray(WHOLE)
    damaged[data.draw(st.integers(0, len(WHOLE) - 1))] ^= data.draw(st.integers(1, 255))
    found = read(lambda view: fetch.decode_fetch(view, 13), damaged)
    if isinstance(found, fetch.FetchResponse):
        assert all(len(each.records) <= len(WHOLE) for each in found.rows)
    else:
        assert isinstance(found, RemoteProtocolError)
