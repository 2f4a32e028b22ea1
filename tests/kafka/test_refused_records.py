"""Batches and records that are too large for the target: split, skipped or refused, as is set."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sparkmirror.embedded import KafkaCluster
from tests.clusters import create_topic, produce
from tests.kafka.log_files import stored_batches
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import fill, new_topic, number, values, wait_for_end, wait_for_last

pytestmark = pytest.mark.kafka

LIMIT_BYTES = 20_000
# Batches of some 200 KB, each a hundred records of 2 KB.
LARGE_BATCHES = {"linger.ms": 200, "batch.size": 200_000, "batch.num.messages": 100}
RECORD_BYTES = 2000


def limited(mirror: Mirror, topic: str) -> None:
    """The remote topic is there before the mirror, with a limit of its own."""
    limit = {"max.message.bytes": str(LIMIT_BYTES)}
    create_topic(mirror.target, mirror.remote(topic), config=limit)


def test_batches_larger_than_the_target_takes_are_split(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster)
    fill(source_cluster, topic, 1000, size=RECORD_BYTES, config=LARGE_BATCHES)
    assert max(batch.size for batch in stored_batches(source_cluster, topic)) > LIMIT_BYTES
    mirror = Mirror(tmp_path, source_cluster, target_cluster, topic)
    limited(mirror, topic)
    with mirror:
        wait_for_end(mirror, topic, 1000)
        wanted = [number(at, RECORD_BYTES) for at in range(1000)]
        assert values(target_cluster, mirror.remote(topic)) == wanted
        assert "FAILED" not in mirror.log()


def test_a_record_too_large_fails_the_task_and_is_skipped_when_errors_are_tolerated(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster)
    bad = b"x" * (LIMIT_BYTES + 1)
    records = [*map(number, range(30)), bad, *map(number, range(30, 60))]
    produce(source_cluster, topic, records, config=LARGE_BATCHES)
    # Committed when it fails, and at no other time.
    settings = {"target.offset.flush.interval.ms": "600000"}
    mirror = Mirror(tmp_path, source_cluster, target_cluster, topic, settings)
    limited(mirror, topic)
    with mirror:
        line = mirror.wait_for_log("FAILED")
        assert "MESSAGE_TOO_LARGE" in line
        assert f"offsets 30 to 30 of {topic}-0" in line
        assert re.search(r"\(1 records, 200\d\d bytes\)", line)
        assert "errors.tolerance=all" in line
        mirror.wait_for_log("starting it again in 2 s")
        mirror.kill_tree()
        # Two attempts, and still once each.
        wanted = [number(at) for at in range(60)]
        assert values(target_cluster, mirror.remote(topic)) == wanted[:30]

        mirror.configure({"errors.tolerance": "all"})
        mirror.start()
        wait_for_last(mirror, topic)
        assert values(target_cluster, mirror.remote(topic)) == wanted
        line = mirror.wait_for_log("skipped")
        assert f"offsets 30 to 30 of {topic}-0" in line
