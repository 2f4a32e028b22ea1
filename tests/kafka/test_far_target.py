"""A target behind a long line: what waits is joined, and is stored as if it had not been."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.batches.merging.joining import JOIN_INTO_BYTES
from sparkmirror.embedded import KafkaCluster
from tests.kafka.log_files import stored_batches
from tests.kafka.long_lines import far_cluster, over_lines
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import assert_identical, fill, new_topic, wait_until_copied

pytestmark = [pytest.mark.kafka, pytest.mark.long]

PARTITIONS = 2
COUNT = 20_000
SIZE = 1000
# So small that five of them per round trip take seconds for all.
SMALL_BATCHES = {"batch.size": 32 << 10, "linger.ms": 100}
WITHIN_SECONDS = 120.0


def test_a_backlog_goes_to_a_far_target_in_fewer_batches(
    source_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster, partitions=PARTITIONS)
    for partition in range(PARTITIONS):
        fill(source_cluster, topic, COUNT, partition=partition, size=SIZE, config=SMALL_BATCHES)
    with far_cluster("far-target", tmp_path) as far:
        far.line.stretch(delay_seconds=0.04, window_bytes=4 << 20)
        settings = over_lines(target=far.line)
        with Mirror(tmp_path, source_cluster, far.cluster, topic, settings) as mirror:
            wait_until_copied(mirror, topic, PARTITIONS, within=WITHIN_SECONDS)
            assert_identical(mirror, topic, PARTITIONS)
            assert "FAILED" not in mirror.log()
        stored = stored_batches(far.cluster, mirror.remote(topic))
        assert len(stored) < len(stored_batches(source_cluster, topic)) / 2
        assert max(batch.size for batch in stored) <= JOIN_INTO_BYTES
