"""kill -9 of the whole program while it copies: at least once, in order, nothing left behind.

SPARKMIRROR_KILLS: how often; 3 times without it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sparkmirror.embedded import KafkaCluster
from tests.kafka.mirror_process import Mirror, assert_gone
from tests.kafka.records import Feeder, count_seams, end_of, new_topic, wait_for_end, wait_for_last

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

KILLS = int(os.environ.get("SPARKMIRROR_KILLS", "3"))
PARTITIONS = 3
# Between the positions' commits, somewhere else every time.
COMMIT_SECONDS = 0.5
PAUSES = [COMMIT_SECONDS * at / KILLS * 2 for at in range(KILLS)]


def test_kills_lose_nothing_and_leave_nothing_running(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster, partitions=PARTITIONS)
    with Mirror(tmp_path, source_cluster, target_cluster, topic) as mirror:
        remote = mirror.remote(topic)
        with Feeder(source_cluster, topic, PARTITIONS, per_second=600):
            for at, pause in enumerate(PAUSES):
                before = end_of(target_cluster, remote)
                wait_for_end(mirror, topic, max(before, 0) + 1)
                time.sleep(pause)
                if at % 2:
                    # Only the worker: the JVM and the tasks have to notice by themselves.
                    assert_gone(mirror.kill_worker(), within=30)
                else:
                    processes = mirror.processes()
                    mirror.kill_tree()
                    assert_gone(processes)
                mirror.start()
        for partition in range(PARTITIONS):
            wait_for_last(mirror, topic, partition)
        mirror.stop()
        for partition in range(PARTITIONS):
            seams, twice = count_seams(mirror, topic, partition)
            print(f"{topic}-{partition}: {twice} records twice at {seams} seams")  # noqa: T201
            assert seams <= KILLS
