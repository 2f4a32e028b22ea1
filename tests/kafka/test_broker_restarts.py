"""Brokers of either side stop, crash, freeze, and lose leadership while records are copied.

Nothing may be missing, twice, or out of order: the mirror itself goes on all the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from sparkmirror.embedded import Broker, KafkaCluster
from tests.clusters import create_topic, start_cluster, unique_name
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import (
    Feeder,
    assert_identical,
    fill,
    new_topic,
    wait_for_end,
    wait_until_copied,
)

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

PARTITIONS = 6
PER_SECOND = 600
SHORT_TIMEOUT_MS = 3000
# Longer than the producer waits for an answer (and the two seconds on top), and than it takes the
# controller to miss a broker.
FROZEN_SECONDS = 8.0

Failure = Callable[[Broker], None]


@pytest.fixture(scope="module")
def source_of_three() -> Iterator[KafkaCluster]:
    with start_cluster("source-3", brokers=3) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def target_of_three() -> Iterator[KafkaCluster]:
    with start_cluster("target-3", brokers=3) as cluster:
        yield cluster


def restart(broker: Broker) -> None:
    broker.stop()
    broker.start()
    broker.wait_ready()


def crash(broker: Broker) -> None:
    broker.kill()
    broker.start()
    broker.wait_ready()


def freeze(broker: Broker) -> None:
    broker.pause()
    time.sleep(FROZEN_SECONDS)
    broker.resume()


def leaders(cluster: KafkaCluster, topic: str) -> tuple[int, ...]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    found = admin.list_topics(topic, timeout=30).topics[topic].partitions
    return tuple(found[at].leader for at in sorted(found))


def test_brokers_of_both_sides_restart_crash_and_freeze(
    source_of_three: KafkaCluster, target_of_three: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_of_three, partitions=PARTITIONS)
    settings = {
        "target.producer.request.timeout.ms": str(SHORT_TIMEOUT_MS),
        "SOURCE.consumer.request.timeout.ms": str(SHORT_TIMEOUT_MS),
    }
    with Mirror(tmp_path, source_of_three, target_of_three, topic, settings) as mirror:
        topics = {source_of_three: topic, target_of_three: mirror.remote(topic)}
        led: dict[KafkaCluster, set[tuple[int, ...]]] = {cluster: set() for cluster in topics}
        with Feeder(source_of_three, topic, PARTITIONS, per_second=PER_SECOND):
            wait_for_end(mirror, topic, 1, within=90)
            for at, failure in enumerate((restart, crash, freeze)):
                with ThreadPoolExecutor() as pool:
                    list(pool.map(failure, [cluster.brokers[at] for cluster in topics]))
                # It goes on, with what is written from now on too.
                wait_until_copied(mirror, topic, PARTITIONS)
                for cluster, name in topics.items():
                    led[cluster].add(leaders(cluster, name))
        assert all(len(each) > 1 for each in led.values()), f"no leader has moved: {led}"
        wait_until_copied(mirror, topic, PARTITIONS)
        assert_identical(mirror, topic, PARTITIONS)
        assert "FAILED" not in mirror.log()


@pytest.mark.parametrize(
    "failure", [pytest.param(restart, id="restart"), pytest.param(crash, id="crash")]
)
def test_the_only_broker_of_each_side_comes_back(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    tmp_path: Path,
    failure: Failure,
) -> None:
    prefix = unique_name("back")
    topic = create_topic(source_cluster, f"{prefix}-1", partitions=2)
    with Mirror(tmp_path, source_cluster, target_cluster, f"{prefix}.*") as mirror:
        with Feeder(source_cluster, topic, 2, per_second=1000):
            wait_for_end(mirror, topic, 1, within=90)
            for cluster in (target_cluster, source_cluster):
                failure(cluster.brokers[0])
                wait_until_copied(mirror, topic, 2)
        wait_until_copied(mirror, topic, 2)
        assert_identical(mirror, topic, 2)
        # The connector found back to both sides, too.
        later = create_topic(source_cluster, f"{prefix}-2")
        fill(source_cluster, later, 10)
        wait_for_end(mirror, later, 10)


def test_a_frozen_target_of_one_broker_gets_nothing_twice(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster)
    settings = {"target.producer.request.timeout.ms": str(SHORT_TIMEOUT_MS)}
    with Mirror(tmp_path, source_cluster, target_cluster, topic, settings) as mirror:
        with Feeder(source_cluster, topic, 1, per_second=2000):
            wait_for_end(mirror, topic, 1, within=90)
            freeze(target_cluster.brokers[0])
            wait_until_copied(mirror, topic)
        wait_until_copied(mirror, topic)
        assert_identical(mirror, topic)
