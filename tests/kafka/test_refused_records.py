"""Batches and records that are too large for the target: split, skipped or refused, as is set."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sparkmirror.embedded import KafkaCluster
from tests.clusters import create_topic, produce
from tests.kafka.log_files import stored_batches
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import new_topic, number, values, wait_for_last

pytestmark = pytest.mark.kafka

LIMIT_BYTES = 20_000
# Batches of some 200 KB, each a hundred records of 2 KB.
LARGE_BATCHES = {"linger.ms": 200, "batch.size": 200_000, "batch.num.messages": 100}
RECORD_BYTES = 2000


def test_batches_too_large_are_split_and_a_record_too_large_is_refused_or_skipped(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster)
    good = [number(at, RECORD_BYTES) for at in range(600)]
    bad = b"x" * (LIMIT_BYTES + 1)
    produce(source_cluster, topic, [*good[:330], bad, *good[330:]], config=LARGE_BATCHES)
    assert max(batch.size for batch in stored_batches(source_cluster, topic)) > 5 * LIMIT_BYTES
    # Committed when it fails, and at no other time.
    settings = {"target.offset.flush.interval.ms": "600000"}
    mirror = Mirror(tmp_path, source_cluster, target_cluster, topic, settings)
    limit = {"max.message.bytes": str(LIMIT_BYTES)}
    create_topic(target_cluster, mirror.remote(topic), config=limit)
    with mirror:
        line = mirror.wait_for_log("FAILED")
        assert "MESSAGE_TOO_LARGE" in line
        assert f"offsets 330 to 330 of {topic}-0" in line
        assert re.search(r"\(1 records, 200\d\d bytes\)", line)
        assert "errors.tolerance=all" in line
        mirror.wait_for_log("starting it again in 2 s")
        mirror.kill_tree()
        # Two attempts, and still once each.
        assert values(target_cluster, mirror.remote(topic)) == good[:330]

        mirror.configure({"errors.tolerance": "all"})
        mirror.start()
        wait_for_last(mirror, topic)
        assert values(target_cluster, mirror.remote(topic)) == good
        line = mirror.wait_for_log("skipped")
        assert f"offsets 330 to 330 of {topic}-0" in line
