"""What groups have committed, by an independent client that is not a member of them.

A cluster that never had a group makes its topic for them when it is first asked about one. Until
that topic is led and loaded, brokers say that they are not the group's coordinator, and librdkafka
hands that on instead of asking again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ClientPartition

from sparkmirror.demo.client import RESPONSE_SECONDS, client_settings
from sparkmirror.embedded import KafkaCluster
from sparkmirror.types import TopicPartition
from tests.clusters import patiently

_COORDINATOR_COMES = (
    "NOT_COORDINATOR",
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "_WAIT_COORD",
)


def group_client(cluster: KafkaCluster, group: str) -> Consumer:
    """Asks and commits for the group; never a member of it. To be closed."""
    settings = client_settings(cluster.bootstrap_servers, group_id=group, enable_auto_commit=False)
    return Consumer(settings)


def commit_offsets(
    cluster: KafkaCluster,
    group: str,
    offsets: Mapping[TopicPartition, int],
    metadata: str | None = None,
) -> None:
    """Commit for a group that nobody is a member of."""
    rows = [
        ClientPartition(*where, offset, *(() if metadata is None else (metadata,)))
        for where, offset in offsets.items()
    ]
    with closing(group_client(cluster, group)) as client:
        done = patiently(
            lambda: client.commit(offsets=rows, asynchronous=False), _COORDINATOR_COMES
        )
    assert [row.error for row in done] == [None] * len(rows)


def committed_offsets(cluster: KafkaCluster, group: str) -> dict[TopicPartition, int]:
    """Where the group stands, in all partitions in which it has committed.

    Not by an admin client: librdkafka's crashes when a coordinator has just been elected.
    """
    with closing(group_client(cluster, group)) as client:
        topics = client.list_topics(timeout=RESPONSE_SECONDS).topics
        partitions = [TopicPartition(name, at) for name in topics for at in topics[name].partitions]
        return ask_offsets(client, partitions)


def ask_offsets(
    client: Consumer, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The same of some partitions, by a client that goes on."""
    asked = [ClientPartition(*where) for where in partitions]
    rows = patiently(lambda: client.committed(asked, RESPONSE_SECONDS), _COORDINATOR_COMES)
    found = {TopicPartition(row.topic, row.partition): row.offset for row in rows}
    return {where: offset for where, offset in found.items() if offset >= 0}
