"""A backlog far larger than memory may be, and a target that does not take it."""

from __future__ import annotations

import re
import time
from pathlib import Path

import psutil
import pytest

from sparkmirror.embedded import KafkaCluster
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import end_of, fill, new_topic, wait_for_end, wait_until_copied

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

PARTITIONS = 8
RECORD_BYTES = 50_000
RECORDS = 1250  # per partition: 500 MB in all
MOST_BYTES = 300 << 20
PAUSED_SECONDS = 6.0


def peak_bytes(process: psutil.Process) -> int:
    """The most memory that the process has had."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found.group(1)) * 1024


@pytest.mark.long
def test_a_backlog_and_a_paused_target_stay_within_the_memory_of_a_task(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster, partitions=PARTITIONS)
    fill(source_cluster, topic, 1, size=RECORD_BYTES)
    settings = {"target.producer.request.timeout.ms": "3000"}
    with Mirror(tmp_path, source_cluster, target_cluster, topic, settings) as mirror:
        wait_for_end(mirror, topic, 1)
        target = target_cluster.brokers[0]
        target.pause()
        try:
            for partition in range(PARTITIONS):
                fill(source_cluster, topic, RECORDS, partition=partition, size=RECORD_BYTES)
            time.sleep(PAUSED_SECONDS)
            (task,) = mirror.task_processes()
            paused = peak_bytes(task)
        finally:
            target.resume()
        wait_until_copied(mirror, topic, PARTITIONS)
        peak = peak_bytes(task)
        print(f"peak: {paused >> 20} MB while paused, {peak >> 20} MB in all")  # noqa: T201
        assert peak < MOST_BYTES
        assert end_of(target_cluster, mirror.remote(topic)) == RECORDS + 1
