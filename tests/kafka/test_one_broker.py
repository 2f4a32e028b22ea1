"""The only broker of a side goes away and comes back: the copy waits for it and goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.embedded import KafkaCluster
from tests.clusters import create_topic, unique_name
from tests.kafka.broker_failures import FAILURES, SHORT_TIMEOUTS, crash, fail_all
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import (
    Feeder,
    assert_identical,
    fill,
    wait_for_end,
    wait_until_copied,
)

pytestmark = pytest.mark.kafka

PARTITIONS = 2


@pytest.mark.long
def test_nothing_is_missing_or_twice_when_the_broker_comes_back(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    source, target = source_cluster.brokers[0], target_cluster.brokers[0]
    prefix = unique_name("back")
    topic = create_topic(source_cluster, f"{prefix}-1", partitions=PARTITIONS)
    topics = f"{prefix}.*"
    with Mirror(tmp_path, source_cluster, target_cluster, topics, SHORT_TIMEOUTS) as mirror:
        with Feeder(source_cluster, topic, PARTITIONS, per_second=1000):
            wait_for_end(mirror, topic, 1)
            for failure in FAILURES:
                failure(target)
                wait_until_copied(mirror, topic, PARTITIONS)
            fail_all(crash, [source, target])
        wait_until_copied(mirror, topic, PARTITIONS)
        assert_identical(mirror, topic, PARTITIONS)
        # The connector has found back to both sides, too.
        later = create_topic(source_cluster, f"{prefix}-2")
        fill(source_cluster, later, 10)
        wait_for_end(mirror, later, 10)
        assert "FAILED" not in mirror.log()
