"""Topics and partitions that come later: the tasks that run do not notice."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from sparkmirror.embedded import KafkaCluster
from tests.clusters import create_topic, unique_name, wait_for
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import (
    Feeder,
    assert_identical,
    end_of,
    fill,
    wait_for_end,
    wait_until_copied,
)

pytestmark = pytest.mark.kafka


def test_new_topics_and_partitions_are_copied_without_restarting_tasks(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    prefix = unique_name("growing")
    first = create_topic(source_cluster, f"{prefix}-1", partitions=2)
    settings = {"tasks.max": "2"}
    with Mirror(tmp_path, source_cluster, target_cluster, f"{prefix}.*", settings) as mirror:
        with Feeder(source_cluster, first, 2, per_second=500):
            for partition in range(2):
                wait_for_end(mirror, first, 10, partition)
            tasks = {process.pid for process in mirror.task_processes()}

            second = create_topic(source_cluster, f"{prefix}-2")
            fill(source_cluster, second, 100)
            wait_until_copied(mirror, second)

            admin = AdminClient({"bootstrap.servers": source_cluster.bootstrap_servers})
            admin.create_partitions([NewPartitions(first, 4)])[first].result(30)
            for partition in (2, 3):
                wait_for(
                    lambda at=partition: end_of(source_cluster, first, at) >= 0,  # type: ignore[misc]
                    within=30,
                    describe=f"somebody leads {first}-{partition}",
                )
                fill(source_cluster, first, 100, partition=partition)
            wait_until_copied(mirror, first, 4)
        wait_until_copied(mirror, first, 4)
        assert len(tasks) == 2
        assert tasks == {process.pid for process in mirror.task_processes()}
        assert "starting it again" not in mirror.log()
        assert "missing" not in mirror.log()
        assert_identical(mirror, first, 4)
        assert_identical(mirror, second)
