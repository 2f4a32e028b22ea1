"""One of three brokers fails on both sides at the same time; leadership moves and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from sparkmirror.embedded import KafkaCluster
from tests.clusters import start_cluster
from tests.kafka.broker_failures import FAILURES, SHORT_TIMEOUTS, fail_all
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import (
    Feeder,
    assert_identical,
    new_topic,
    wait_for_end,
    wait_until_copied,
)

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(400)]

PARTITIONS = 6


def leaders(cluster: KafkaCluster, topic: str) -> tuple[int, ...]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    found = admin.list_topics(topic, timeout=30).topics[topic].partitions
    return tuple(found[at].leader for at in sorted(found))


def test_brokers_of_both_sides_restart_crash_and_freeze(tmp_path: Path) -> None:
    with (
        start_cluster("source-3", brokers=3) as source,
        start_cluster("target-3", brokers=3) as target,
    ):
        topic = new_topic(source, partitions=PARTITIONS)
        settings = {"tasks.max": "2", **SHORT_TIMEOUTS}
        with Mirror(tmp_path, source, target, topic, settings) as mirror:
            topics = {source: topic, target: mirror.remote(topic)}
            led: dict[KafkaCluster, set[tuple[int, ...]]] = {source: set(), target: set()}
            with Feeder(source, topic, PARTITIONS, per_second=600):
                wait_for_end(mirror, topic, 1)
                for at, failure in enumerate(FAILURES):
                    fail_all(failure, [cluster.brokers[at] for cluster in topics])
                    # It goes on, with what is written from now on too.
                    wait_until_copied(mirror, topic, PARTITIONS)
                    for cluster, name in topics.items():
                        led[cluster].add(leaders(cluster, name))
            wait_until_copied(mirror, topic, PARTITIONS)
            assert_identical(mirror, topic, PARTITIONS)
            assert all(len(each) > 1 for each in led.values()), f"no leader has moved: {led}"
            assert "FAILED" not in mirror.log()
