"""Long lines that are cut and stall, at any byte: nothing missing, twice or out of order."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.kafka.broker_failures import SHORT_TIMEOUTS
from tests.kafka.long_lines import Far, far_cluster, over_lines
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import (
    Feeder,
    assert_identical,
    end_of,
    new_topic,
    wait_for_end,
    wait_until_copied,
)

pytestmark = pytest.mark.kafka

PARTITIONS = 4
CUTS = 30
SEED = 20261115
DELAY_SECONDS = 0.02
WINDOW_BYTES = 1 << 20
# Ten times what a client waits for an answer.
FAULT_SECONDS = 20.0
WITHIN_SECONDS = 120.0


def wait_until_it_moves(mirror: Mirror, topic: str) -> None:
    """Records that are written from now on arrive."""
    for partition in range(PARTITIONS):
        wanted = end_of(mirror.source, topic, partition) + 1
        wait_for_end(mirror, topic, wanted, partition, within=WITHIN_SECONDS)


@pytest.mark.long
def test_lines_of_both_sides_are_cut_many_times_and_stall(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    with (
        far_cluster("cut-source", tmp_path) as source,
        far_cluster("cut-target", tmp_path) as target,
    ):
        lines = [source.line, target.line]
        for line in lines:
            line.stretch(delay_seconds=DELAY_SECONDS, window_bytes=WINDOW_BYTES)
        topic = new_topic(source.cluster, partitions=PARTITIONS)
        settings = SHORT_TIMEOUTS | over_lines(source=source.line, target=target.line)
        with Mirror(tmp_path, source.cluster, target.cluster, topic, settings) as mirror:
            with Feeder(source.cluster, topic, PARTITIONS, per_second=1000):
                wait_for_end(mirror, topic, 1)
                before = target.line.stats().accepted
                for _ in range(CUTS):
                    time.sleep(chance.uniform(0.02, 0.4))
                    line = chance.choice(lines)
                    line.cut()
                    line.mend()
                wait_until_it_moves(mirror, topic)
                assert target.line.stats().accepted > before + CUTS / 4
                for far in (target, source):
                    fail_for_long(far)
                    wait_until_it_moves(mirror, topic)
            wait_until_copied(mirror, topic, PARTITIONS, within=WITHIN_SECONDS)
            assert_identical(mirror, topic, PARTITIONS)
            assert "FAILED" not in mirror.log()


def fail_for_long(far: Far) -> None:
    """A stall, and a cut right after it, each for so long that every client gives up."""
    far.line.stall()
    time.sleep(FAULT_SECONDS)
    far.line.resume()
    far.line.cut()
    time.sleep(FAULT_SECONDS)
    far.line.mend()
