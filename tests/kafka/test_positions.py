"""The bytes of the positions: exactly those of MirrorMaker 2, in the partition it would choose."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from sparkmirror.embedded import KafkaCluster
from tests.clusters import create_topic, read_partition, wait_for
from tests.kafka.mirror_process import OFFSETS_PARTITIONS, Mirror
from tests.kafka.records import (
    fill,
    new_topic,
    number,
    stored_positions,
    values,
    wait_for_last,
    wait_until_copied,
)

pytestmark = pytest.mark.kafka

PARTITIONS = 4


def java_partition(cluster: KafkaCluster, scratch_topic: str, key: bytes) -> int:
    """Where Java's producer puts a key, as librdkafka does it (murmur2)."""
    servers = cluster.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "partitioner": "murmur2"})
    found: list[int] = []
    producer.produce(
        scratch_topic,
        b"",
        key=key,
        on_delivery=lambda _, message: found.append(message.partition()),
    )
    assert producer.flush(30) == 0
    return found[0]


def test_positions_are_byte_for_byte_those_of_mirror_maker_2(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster, partitions=PARTITIONS)
    counts = [3, 70, 1, 12]
    for partition, count in enumerate(counts):
        fill(source_cluster, topic, count, partition=partition)
    with Mirror(tmp_path, source_cluster, target_cluster, topic) as mirror:
        wait_until_copied(mirror, topic, PARTITIONS)
        mirror.stop()
        scratch = create_topic(target_cluster, partitions=OFFSETS_PARTITIONS)
        wanted = set()
        for partition, count in enumerate(counts):
            key = (
                f'["MirrorSourceConnector",'
                f'{{"cluster":"{mirror.alias}","partition":{partition},"topic":"{topic}"}}]'
            ).encode()
            at = java_partition(target_cluster, scratch, key)
            wanted.add((at, key, b'{"offset":%d}' % (count - 1)))
        newest = {
            (at, record.key): record.value
            for at in range(OFFSETS_PARTITIONS)
            for record in read_partition(target_cluster, mirror.offsets_topic, at)
        }
        assert {(at, key, value) for (at, key), value in newest.items()} == wanted


@pytest.mark.long
def test_the_end_that_auto_offset_reset_latest_chose_outlives_a_kill(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster)
    fill(source_cluster, topic, 10)
    settings = {
        "SOURCE.consumer.auto.offset.reset": "latest",
        "target.offset.flush.interval.ms": "600000",
    }
    with Mirror(tmp_path, source_cluster, target_cluster, topic, settings) as mirror:
        wait_for(
            lambda: b'{"offset":9}' in stored_positions(mirror),
            within=30,
            describe="the end is stored as the position",
        )
        mirror.kill_tree()
        fill(source_cluster, topic, 5, first=10)
        mirror.start()
        wait_for_last(mirror, topic)
        found = values(target_cluster, mirror.remote(topic))
        assert found == [number(at) for at in range(10, 15)]


@pytest.mark.long
def test_a_copy_by_duration_begins_where_the_broker_finds_records_young_enough(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster, partitions=2)
    producer = Producer({"bootstrap.servers": source_cluster.bootstrap_servers})
    now_ms = int(time.time() * 1000)
    for hours in (9, 7, 5, 1):
        stamp = now_ms - hours * 3_600_000
        producer.produce(topic, b"%d h" % hours, partition=0, timestamp=stamp)
    producer.produce(topic, b"old", partition=1, timestamp=now_ms - 9 * 3_600_000)
    assert producer.flush(30) == 0
    settings = {"SOURCE.consumer.auto.offset.reset": "by_duration:PT6H"}
    with Mirror(tmp_path, source_cluster, target_cluster, topic, settings) as mirror:
        wait_for_last(mirror, topic)
        producer.produce(topic, b"new", partition=1)
        assert producer.flush(30) == 0
        wait_for_last(mirror, topic, partition=1)
        assert values(target_cluster, mirror.remote(topic)) == [b"5 h", b"1 h"]
        assert values(target_cluster, mirror.remote(topic), 1) == [b"new"]


@pytest.mark.long
def test_a_connectors_own_offsets_topic_takes_over_from_the_workers(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster)
    fill(source_cluster, topic, 10)
    with Mirror(tmp_path, source_cluster, target_cluster, topic) as mirror:
        wait_until_copied(mirror, topic)
        mirror.stop()
        before = stored_positions(mirror)
        own = f"{mirror.alias}-own-offsets"
        mirror.configure({"SOURCE->target.offsets.storage.topic": own})
        for first in (10, 15):
            fill(source_cluster, topic, 5, first=first)
            mirror.start()
            wait_until_copied(mirror, topic)
            mirror.stop()
        found = values(target_cluster, mirror.remote(topic))
        assert found == [number(at) for at in range(20)]
        rows = [
            record.value
            for at in range(OFFSETS_PARTITIONS)
            for record in read_partition(target_cluster, own, at)
            if b"MirrorSourceConnector" in (record.key or b"")
        ]
        assert rows[-1] == b'{"offset":19}'
        assert stored_positions(mirror) == before
