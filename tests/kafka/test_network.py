"""Lines that are cut and stall, many times, at any byte: nothing missing, twice or out of order."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sparkmirror.embedded import KafkaCluster
from tests.clusters import start_cluster
from tests.kafka.broker_failures import SHORT_TIMEOUT_MS, SHORT_TIMEOUTS
from tests.kafka.cut_line import CutLine
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import (
    Feeder,
    assert_identical,
    new_topic,
    wait_for_end,
    wait_until_copied,
)

pytestmark = pytest.mark.kafka

PARTITIONS = 4
CUTS = 30
SEED = 20261115


@contextmanager
def behind(line: CutLine, name: str) -> Iterator[KafkaCluster]:
    """A cluster that tells everybody to come over the line."""
    listener = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{line.port}"}
    with start_cluster(name, properties=listener) as cluster:
        line.target_port = cluster.brokers[0].port
        yield cluster


@pytest.mark.long
def test_lines_of_both_sides_are_cut_many_times_and_stall_once(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    with (
        CutLine() as source_line,
        CutLine() as target_line,
        behind(source_line, "cut-source") as source,
        behind(target_line, "cut-target") as target,
    ):
        topic = new_topic(source, partitions=PARTITIONS)
        with Mirror(tmp_path, source, target, topic, SHORT_TIMEOUTS) as mirror:
            with Feeder(source, topic, PARTITIONS, per_second=2000):
                wait_for_end(mirror, topic, 1)
                for _ in range(CUTS):
                    time.sleep(chance.uniform(0.02, 0.4))
                    chance.choice((source_line, target_line)).cut()
                for line in (target_line, source_line):
                    line.stall()
                    time.sleep(SHORT_TIMEOUT_MS / 1000 + 3.0)
                    line.resume()
            wait_until_copied(mirror, topic, PARTITIONS)
            assert target_line.cuts > CUTS / 4
            assert_identical(mirror, topic, PARTITIONS)
            assert "FAILED" not in mirror.log()
