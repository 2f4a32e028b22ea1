"""A batch that is damaged on the source broker's disk, while the broker runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.embedded import KafkaCluster
from tests.kafka.log_files import damaged, stored_batches
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import (
    assert_identical,
    end_of,
    fill,
    new_topic,
    number,
    values,
    wait_for_end,
)

pytestmark = [pytest.mark.kafka, pytest.mark.long]

# All of one `fill` in one batch.
ONE_BATCH = {"linger.ms": 1000}
COUNT = 50


def write(cluster: KafkaCluster) -> str:
    """Four batches in partition 0, some records in partition 1."""
    topic = new_topic(cluster, partitions=2)
    for at in range(4):
        fill(cluster, topic, COUNT, first=COUNT * at, config=ONE_BATCH)
    fill(cluster, topic, COUNT, partition=1)
    assert [batch.records for batch in stored_batches(cluster, topic)] == [COUNT] * 4
    return topic


def test_the_partition_stands_still_until_the_batch_is_repaired_and_others_are_copied(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = write(source_cluster)
    with Mirror(tmp_path, source_cluster, target_cluster, topic).ending() as mirror:
        with damaged(source_cluster, topic, 2):
            mirror.start()
            line = mirror.wait_for_log(f"this partition waits at offset {2 * COUNT}")
            assert f"fetch {topic}-0 from {2 * COUNT} on" in line
            wait_for_end(mirror, topic, COUNT, partition=1)
            fill(source_cluster, topic, COUNT, partition=1, first=COUNT)
            wait_for_end(mirror, topic, 2 * COUNT, partition=1)
            copied = values(target_cluster, mirror.remote(topic))
            assert copied == [number(at) for at in range(2 * COUNT)]
        wait_for_end(mirror, topic, 4 * COUNT)
        mirror.stop()
        assert_identical(mirror, topic, 2)
        assert "starting it again" not in mirror.log()  # the task never failed


def test_the_batch_is_skipped_and_named_when_errors_are_tolerated(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = write(source_cluster)
    settings = {"SOURCE->target.errors.tolerance": "all"}
    with Mirror(tmp_path, source_cluster, target_cluster, topic, settings).ending() as mirror:
        with damaged(source_cluster, topic, 1):
            mirror.start()
            line = mirror.wait_for_log("skipped, because errors.tolerance=all")
            first, last = COUNT, 2 * COUNT - 1
            assert f"offsets {first} to {last} of {topic}-0" in line
            wait_for_end(mirror, topic, 3 * COUNT)
            wait_for_end(mirror, topic, COUNT, partition=1)
        fill(source_cluster, topic, 10, first=4 * COUNT)
        wait_for_end(mirror, topic, 3 * COUNT + 10)
        mirror.stop()
    kept = [*range(COUNT), *range(2 * COUNT, 4 * COUNT + 10)]
    assert values(target_cluster, mirror.remote(topic)) == [number(at) for at in kept]
    assert end_of(target_cluster, mirror.remote(topic), 1) == COUNT
