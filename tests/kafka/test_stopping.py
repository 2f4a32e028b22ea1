"""SIGTERM and Ctrl-C: everything copied is committed, and nothing is copied again."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from sparkmirror.embedded import KafkaCluster
from tests.kafka.mirror_process import STOP_SECONDS, Mirror, assert_gone
from tests.kafka.records import (
    Feeder,
    assert_identical,
    fill,
    new_topic,
    values,
    wait_for_end,
    wait_for_last,
    wait_until_copied,
)

pytestmark = pytest.mark.kafka

PARTITIONS = 2


def test_stopping_commits_and_the_next_start_copies_nothing_twice(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster, partitions=PARTITIONS)
    # Never by itself while the test runs: what is committed was committed at the end.
    settings = {"target.offset.flush.interval.ms": "600000"}
    with Mirror(tmp_path, source_cluster, target_cluster, topic, settings) as mirror:
        with Feeder(source_cluster, topic, PARTITIONS, per_second=400):
            for partition in range(PARTITIONS):
                wait_for_end(mirror, topic, 10, partition)
            processes = mirror.processes()
            assert mirror.stop(signal.SIGTERM) < STOP_SECONDS
            assert_gone(processes)
            mirror.start()
            wait_until_copied(mirror, topic, PARTITIONS)
            # What Ctrl-C in a terminal does.
            processes = mirror.processes()
            assert mirror.stop(signal.SIGINT, group=True) < STOP_SECONDS
            assert_gone(processes)
        mirror.start()
        wait_until_copied(mirror, topic, PARTITIONS)
        assert_identical(mirror, topic, PARTITIONS)

        # Also when the target does not answer; then the exit code tells it.
        target_cluster.brokers[0].pause()
        try:
            fill(source_cluster, topic, 10, first=1_000_000)
            processes = mirror.processes()
            assert mirror.stop(expected_code=1) < STOP_SECONDS
            assert_gone(processes)
        finally:
            target_cluster.brokers[0].resume()
        mirror.start()
        for partition in range(PARTITIONS):
            wait_for_last(mirror, topic, partition)
        # A new producer cannot know what the frozen broker still took from the old one.
        wanted = values(source_cluster, topic)
        found = values(target_cluster, mirror.remote(topic))
        assert list(dict.fromkeys(found)) == wanted
