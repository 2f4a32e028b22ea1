"""Hundreds of partitions in one task: every leader moves at once, and a topic appears later."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.end_offsets import EndOffsets
from bench.starting import drop_copied
from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.ports import HOST
from sparkmirror.retry import wait_for
from sparkmirror.types import TopicPartition
from tests.clusters import start_cluster
from tests.kafka.mirror_process import Mirror

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(600)]

TOPICS = [f"many-{number}" for number in range(40)]
EACH = 10
SECONDS = 180.0
# The first replica leads, as long as it is there.
FIRST, SECOND = 1, 2


def create(cluster: KafkaCluster, topics: Sequence[str], replicas: Sequence[int]) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    wanted = [NewTopic(each, EACH, replica_assignment=[list(replicas)] * EACH) for each in topics]
    for future in admin.create_topics(wanted).values():
        future.result(SECONDS)


def write(cluster: KafkaCluster, topics: Sequence[str], value: bytes) -> None:
    """One record to each partition; returns when all are stored."""
    failed: list[object] = []
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, "linger.ms": 50}
    producer = Producer(settings)
    for topic in topics:
        for at in range(EACH):
            producer.produce(
                topic, value, partition=at, on_delivery=lambda error, _: failed.append(error)
            )
    assert producer.flush(SECONDS) == 0
    assert set(failed) == {None}


def wait_until_copied(mirror: Mirror, topics: Sequence[str], each: int) -> None:
    """Until every partition has so many records on the target."""
    missing = [TopicPartition(mirror.remote(topic), at) for topic in topics for at in range(EACH)]
    ports = [broker.port for broker in mirror.target.brokers]
    with EndOffsets(HOST, *ports) as target:
        wait_for(
            lambda: drop_copied(missing, target, each),
            within=SECONDS,
            describe=lambda: f"all but {len(missing)} partitions; {mirror.log_end()}",
        )


def leaders(cluster: KafkaCluster) -> set[int]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    found = admin.list_topics(timeout=30).topics
    return {row.leader for topic in TOPICS for row in found[topic].partitions.values()}


def test_all_leaders_move_at_once_and_a_topic_appears(tmp_path: Path) -> None:
    with (
        start_cluster("source-many", brokers=3) as source,
        start_cluster("target-many") as target,
    ):
        create(source, TOPICS, [FIRST, SECOND])
        write(source, TOPICS, b"first")
        settings = {"refresh.topics.interval.seconds": "1"}
        with Mirror(tmp_path, source, target, "many-.*", settings) as mirror:
            wait_until_copied(mirror, TOPICS, 1)
            assert leaders(source) == {FIRST}
            source.brokers[FIRST - 1].stop()
            wait_for(lambda: leaders(source) == {SECOND}, within=SECONDS, describe="they moved")
            write(source, TOPICS, b"second")
            wait_until_copied(mirror, TOPICS, 2)
            create(source, ["many-new"], [SECOND])
            write(source, ["many-new"], b"new")
            wait_until_copied(mirror, ["many-new"], 1)
            assert "FAILED" not in mirror.log()
            assert "truncated" not in mirror.log()
            mirror.stop()
