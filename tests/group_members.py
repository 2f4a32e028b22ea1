"""Consumers that are members of a group while a test looks at it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer

from sparkmirror.embedded import KafkaCluster
from tests.clusters import wait_for


@contextmanager
def member(
    cluster: KafkaCluster, topic: str, group: str, protocol: str = "classic"
) -> Iterator[Consumer]:
    """A member of `group` that has its partitions, and commits nothing by itself."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
            "enable.auto.commit": False,
        }
    )

    def has_partitions() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    try:
        consumer.subscribe([topic])
        wait_for(has_partitions, within=30, describe=f"{group} has partitions")
        yield consumer
    finally:
        consumer.close()
