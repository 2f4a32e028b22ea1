"""Our bytes against kafka-python's schemas, which follow Apache's."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.protocol.consumer import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse
from kafka.protocol.producer import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
)

from sparkmirror.errors import RemoteProtocolError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.protocol import api_versions
from sparkmirror.wire.protocol import group_messages as ours
from sparkmirror.wire.protocol.api_versions import Api

TP = TopicPartition("t", 3)


def decode(kind: Any, api: Api, body: bytes) -> dict[str, Any]:
    """The same in every version that we speak."""
    assert api.key == kind.API_KEY
    versions = range(api.oldest, api.newest + 1)
    found = [dict(kind.decode(body, version=version).to_dict()) for version in versions]
    assert all(each == found[0] for each in found)
    return found[0]


REQUESTS = [
    (
        FindCoordinatorRequest,
        api_versions.FIND_COORDINATOR,
        ours.encode_find_coordinator("g", ours.TRANSACTION),
        {"key": "g", "key_type": 1},
    ),
    (
        HeartbeatRequest,
        api_versions.HEARTBEAT,
        ours.encode_heartbeat("g", 7, "m"),
        {"group_id": "g", "generation_id": 7, "member_id": "m"},
    ),
    (
        LeaveGroupRequest,
        api_versions.LEAVE_GROUP,
        ours.encode_leave("g", "m"),
        {"group_id": "g", "member_id": "m"},
    ),
    (
        InitProducerIdRequest,
        api_versions.INIT_PRODUCER_ID,
        ours.encode_init_transactions("x", 9000),
        {"transactional_id": "x", "transaction_timeout_ms": 9000},
    ),
    (
        EndTxnRequest,
        api_versions.END_TXN,
        ours.encode_end_transaction("x", 5, 2, commit=True),
        {"transactional_id": "x", "producer_id": 5, "producer_epoch": 2, "committed": True},
    ),
]


@pytest.mark.parametrize(
    ("kind", "api", "body", "fields"), REQUESTS, ids=[row[0].__name__ for row in REQUESTS]
)
def test_requests(kind: Any, api: Api, body: bytes, fields: dict[str, Any]) -> None:
    found = decode(kind, api, body)
    assert {name: found[name] for name in fields} == fields


def test_a_join_brings_one_protocol() -> None:
    body = ours.encode_join("g", "", ("connect", "ours", b"me"), 6000, 60000)
    found = decode(JoinGroupRequest, api_versions.JOIN_GROUP, body)
    assert found["session_timeout_ms"] == 6000
    assert found["rebalance_timeout_ms"] == 60000
    assert (found["member_id"], found["protocol_type"]) == ("", "connect")
    assert found["protocols"] == [{"name": "ours", "metadata": "me"}]


def test_a_sync_carries_the_assignments_of_all() -> None:
    found = decode(
        SyncGroupRequest, api_versions.SYNC_GROUP, ours.encode_sync("g", 1, "m", {"n": b"!"})
    )
    assert found["assignments"] == [{"member_id": "n", "assignment": "!"}]


def test_partitions_of_a_transaction() -> None:
    body = ours.encode_add_partition("x", 5, 2, TP)
    version = api_versions.ADD_PARTITIONS_TO_TXN.newest
    found = AddPartitionsToTxnRequest.decode(body, version=version)
    (topic,) = found.v3_and_below_topics
    assert (found.v3_and_below_transactional_id, found.v3_and_below_producer_id) == ("x", 5)
    assert (topic.name, topic.partitions) == ("t", [3])


def test_produce_in_a_transaction() -> None:
    body = b"".join(ours.encode_transactional_produce("x", TP, b"batch", 1000))
    found = decode(ProduceRequest, api_versions.PRODUCE, body)
    assert (found["transactional_id"], found["acks"], found["timeout_ms"]) == ("x", -1, 1000)
    assert found["topic_data"] == [
        {"name": "t", "partition_data": [{"index": 3, "records": "batch"}]}
    ]


# -- responses -------------------------------------------------------------------------------------


def encode(kind: Any, api: Api, **fields: Any) -> memoryview:
    """The same in every version that we speak."""
    versions = range(api.oldest, api.newest + 1)
    found = {bytes(kind(throttle_time_ms=0, version=at, **fields).encode()) for at in versions}
    (response,) = found
    return memoryview(response)


def test_a_coordinator() -> None:
    response = encode(
        FindCoordinatorResponse,
        api_versions.FIND_COORDINATOR,
        error_code=0,
        error_message=None,
        node_id=4,
        host="h",
        port=9,
    )
    assert ours.decode_find_coordinator(response) == ours.Coordinator(0, 4, "h", 9)


def test_the_leader_gets_the_members() -> None:
    row = JoinGroupResponse.JoinGroupResponseMember
    response = encode(
        JoinGroupResponse,
        api_versions.JOIN_GROUP,
        error_code=0,
        generation_id=3,
        protocol_name="ours",
        leader="m",
        member_id="m",
        members=[row(member_id="m", metadata=b"me")],
    )
    assert ours.decode_join(response) == ours.Joined(0, 3, "m", "m", {"m": b"me"})


def test_an_assignment() -> None:
    response = encode(SyncGroupResponse, api_versions.SYNC_GROUP, error_code=0, assignment=b"all")
    assert ours.decode_sync(response) == (0, b"all")


@pytest.mark.parametrize(
    "decoder",
    [
        ours.decode_find_coordinator,
        ours.decode_join,
        ours.decode_sync,
        ours.decode_code,
        ours.decode_add_partition,
    ],
)
def test_what_ends_too_early_is_the_brokers_fault(decoder: Any) -> None:
    with pytest.raises(RemoteProtocolError):
        decoder(memoryview(b"\0\0\0\0\0"))
