"""DedicatedMirrorIntegrationTest.testMultiNodeCluster: three nodes with internal REST (KIP-710)."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.embedded import KafkaCluster
from tests.clusters import create_topic
from tests.kafka.mirror_process import Mirror, assert_gone
from tests.kafka.records import Feeder, count_seams, fill, new_topic, wait_for_last
from tests.kafka.test_two_processes import FOLLOWS, SETTINGS, wait_for_more, wait_for_shares

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

PARTITIONS = 4


def test_multi_node_cluster(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    """Three nodes with one file; one is killed, and nothing is missing, also of a new topic."""
    topic = new_topic(source_cluster, partitions=PARTITIONS)
    later = f"{topic}-later"
    settings = {**SETTINGS, "refresh.topics.interval.seconds": "1"}
    one = Mirror(tmp_path, source_cluster, target_cluster, f"{topic}.*", settings)
    two, three = one.another("two"), one.another("three")
    with one, two.ending(), three.ending():
        with Feeder(source_cluster, topic, PARTITIONS, per_second=300):
            for node in (two, three):
                node.start(until=FOLLOWS)
            wait_for_shares(three, 1, 1, 2)
            wait_for_more(three, topic)
            assert_gone(one.kill_worker(), within=30)
            wait_for_shares(three, 2, 2)
            wait_for_more(three, topic)
            # A leader that is new finds new topics, too.
            create_topic(source_cluster, later)
            fill(source_cluster, later, 100)
        for partition in range(PARTITIONS):
            wait_for_last(three, topic, partition)
            seams, _ = count_seams(three, topic, partition)
            assert seams <= 1
        wait_for_last(three, later)
