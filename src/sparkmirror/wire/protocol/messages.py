"""Small requests and responses: versions, metadata, offsets, producer ids. Bytes in, values out.

Metadata goes through kafka-python's protocol classes, which follow Apache's schemas; the others are
a few fixed fields.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from sparkmirror.errors import RemoteProtocolError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.protocol.api_versions import METADATA, ApiVersions
from sparkmirror.wire.protocol.error_codes import broker_error

# The request that negotiates versions cannot negotiate its own: every broker speaks this one.
# Version 0, which brokers of every release understand: which versions they speak is only known
# afterwards (KIP-35). Later ones name the client (KIP-511), which decides nothing.
API_VERSIONS = (18, 0)
# The first version of Metadata with topic ids.
WITH_TOPIC_IDS = 10

EARLIEST = -2
LATEST = -1


# What bytes raise that end too early or make no sense.
UNREADABLE = (struct.error, IndexError, ValueError, OverflowError)


def unreadable(what: str, error: Exception) -> RemoteProtocolError:
    """The error of such a response, which is the broker's fault."""
    return RemoteProtocolError(f"a {what} that cannot be read: {error}")


@contextmanager
def parsing(what: str) -> Iterator[None]:
    """Turn what is UNREADABLE into a RemoteProtocolError. Not for hot paths: it takes 3 us."""
    try:
        yield
    except UNREADABLE as error:
        raise unreadable(what, error) from error


def encode_string(value: str | None) -> bytes:
    """STRING of the classic encoding: length, then UTF-8; -1 for none."""
    if value is None:
        return b"\xff\xff"
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def decode_api_versions(response: memoryview) -> ApiVersions:
    """What the broker speaks."""
    with parsing("list of API versions"):
        code, count = struct.unpack_from(">hi", response)
        if code:
            raise broker_error("ask for API versions", code)
        rows = (struct.unpack_from(">hhh", response, 6 + 6 * at) for at in range(count))
        found = ApiVersions({key: (oldest, newest) for key, oldest, newest in rows})
        if METADATA.key not in found:
            raise ValueError("it does not serve metadata requests; is it a controller's port?")
        return found


@dataclass(slots=True)
class MetadataView:
    """A metadata response, reduced to what a copy needs."""

    nodes: dict[int, tuple[str, int]] = field(default_factory=dict)
    leaders: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    topic_ids: dict[str, bytes] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    # Topics with a partition that has no leader now.
    leaderless: set[str] = field(default_factory=set)


def encode_metadata(topics: Sequence[str], version: int) -> bytes:
    """Ask for these topics and never create one."""
    rows = [MetadataRequest.MetadataRequestTopic(topic_id=None, name=name) for name in topics]
    request = MetadataRequest(topics=rows, allow_auto_topic_creation=False, version=version)
    return bytes(request.encode())


def decode_metadata(response: memoryview, version: int) -> MetadataView:
    """Brokers, leaders, topic ids; topics and partitions without a leader are left out."""
    view = MetadataView()
    with parsing("metadata response"):
        # The header of a version with tagged fields has an (empty) set of its own.
        start = 1 if version >= METADATA.first_flexible else 0
        decoded = MetadataResponse.decode(response[start:], version=version)
        _check_metadata(decoded)
    for broker in decoded.brokers or ():
        view.nodes[broker.node_id] = (broker.host, broker.port)
    for topic in decoded.topics or ():
        if topic.error_code:
            view.errors[topic.name] = topic.error_code
            continue
        # Brokers that have no ids yet (inter.broker.protocol.version below 2.8) send zeros.
        if version >= WITH_TOPIC_IDS and topic.topic_id is not None and topic.topic_id.int:
            view.topic_ids[topic.name] = topic.topic_id.bytes
        for row in topic.partitions or ():
            if row.leader_id >= 0:
                tp = TopicPartition(topic.name, row.partition_index)
                view.leaders[tp] = (row.leader_id, row.leader_epoch)
            else:
                view.leaderless.add(topic.name)
    return view


def _check_metadata(decoded: Any) -> None:
    """Values that kafka-python does not check."""
    for broker in decoded.brokers or ():
        if not broker.host or not 0 < broker.port < 1 << 16:
            raise ValueError(f"broker {broker.node_id} has the address {broker.host}:{broker.port}")
    for topic in decoded.topics or ():
        if not topic.name:
            raise ValueError("a topic without a name")
        if any(row.partition_index < 0 for row in topic.partitions or ()):
            raise ValueError(f"a partition of '{topic.name}' with a negative number")


def encode_list_offsets(wanted: Mapping[TopicPartition, int], read_committed: bool) -> bytes:
    """Ask for the offset at a timestamp (EARLIEST, LATEST or milliseconds) of each partition."""
    topics: dict[str, list[tuple[int, int]]] = {}
    for tp, timestamp in wanted.items():
        topics.setdefault(tp.topic, []).append((tp.partition, timestamp))
    out = [struct.pack(">ibi", -1, int(read_committed), len(topics))]
    for topic, rows in topics.items():
        out.append(encode_string(topic) + struct.pack(">i", len(rows)))
        out += [struct.pack(">iiq", partition, -1, timestamp) for partition, timestamp in rows]
    return b"".join(out)


def decode_list_offsets(response: memoryview) -> dict[TopicPartition, tuple[int, int]]:
    """{partition: (error code, offset)}."""
    found: dict[TopicPartition, tuple[int, int]] = {}
    with parsing("list-offsets response"):
        for topic, row in read_topic_rows(response, struct.Struct(">ihqqi")):
            partition, code, _, offset, _ = row
            found[TopicPartition(topic, partition)] = (code, offset)
    return found


def read_topic_rows(
    response: memoryview, layout: struct.Struct
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Rows of numbers by topic, which follow the correlation id and the throttle time.

    Nothing is done about the throttle time, here and elsewhere: a broker responds at once and
    then reads nothing more from the connection until it is over (KIP-219).

    Raises:
        ValueError, struct.error: for `parsing` to convert.
    """
    (topics,) = struct.unpack_from(">i", response, 4)
    at = 8
    for _ in range(topics):
        (size,) = struct.unpack_from(">h", response, at)
        if size < 0:
            raise ValueError("a topic without a name")
        topic = str(response[at + 2 : at + 2 + size], "utf-8")
        (rows,) = struct.unpack_from(">i", response, at + 2 + size)
        at += 6 + size
        for _ in range(rows):
            yield topic, layout.unpack_from(response, at)
            at += layout.size


def encode_init_producer_id() -> bytes:
    """Ask for a producer id of our own, without transactions."""
    return encode_string(None) + struct.pack(">i", 60_000)


def decode_init_producer_id(response: memoryview) -> tuple[int, int, int]:
    """(error code, producer id, epoch)."""
    with parsing("producer id"):
        _, code, producer_id, epoch = struct.unpack_from(">ihqh", response)
    return code, producer_id, epoch
