"""What the internal topics of a target hold: the newest record of each key, and its bytes."""

from __future__ import annotations

from typing import NamedTuple

from sparkmirror.demo.reading import partition_counts, read_topic
from sparkmirror.embedded import KafkaCluster


class Keyed(NamedTuple):
    """The internal topics of the flow src->tgt, all of them on the target."""

    heartbeats: str = "heartbeats"
    checkpoints: str = "src.checkpoints.internal"
    offset_syncs: str = "mm2-offset-syncs.src.internal"
    positions: str = "mm2-offsets.src.internal"


KEYED = Keyed()


class Found(NamedTuple):
    """The newest record of a key."""

    partition: int
    value: bytes
    timestamp_ms: int


def newest_records(cluster: KafkaCluster, topic: str) -> dict[bytes, Found]:
    """By key; empty while there is no such topic."""
    servers = cluster.bootstrap_servers
    if topic not in partition_counts(servers, [topic]):
        return {}
    return {
        record.content.key or b"": Found(
            at, record.content.value or b"", record.content.timestamp_ms
        )
        for at, records in read_topic(servers, topic, read_committed=True).items()
        for record in records
    }


def last_by_key(cluster: KafkaCluster, topic: str) -> dict[bytes, bytes]:
    """Key to newest value."""
    return {key: found.value for key, found in newest_records(cluster, topic).items()}
