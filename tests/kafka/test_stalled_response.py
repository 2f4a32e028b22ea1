"""A line that falls silent in the middle of a response, and stays open."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.embedded import KafkaCluster
from tests.clusters import wait_for
from tests.kafka.broker_failures import SHORT_TIMEOUTS
from tests.kafka.cut_line import CutLine
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import assert_identical, fill, new_topic, wait_for_end, wait_until_copied
from tests.kafka.test_network import behind

pytestmark = [pytest.mark.kafka, pytest.mark.long]

PARTITIONS = 2
SIZE = 1000
COUNT = 4000
# Of a response of some megabytes.
HALF = 700_000


def test_a_response_that_stops_halfway_is_fetched_again(
    target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    with CutLine() as line, behind(line, "stalling") as source:
        topic = new_topic(source, partitions=PARTITIONS)
        with Mirror(tmp_path, source, target_cluster, topic, SHORT_TIMEOUTS) as mirror:
            for partition in range(PARTITIONS):
                fill(source, topic, 1, partition=partition, size=SIZE)
                wait_for_end(mirror, topic, 1, partition=partition)
            # What the test writes goes the other way; only the mirror is sent so much.
            line.stop_after(HALF)
            for partition in range(PARTITIONS):
                fill(source, topic, COUNT, partition=partition, first=1, size=SIZE)
            wait_for(line.has_stopped.is_set, within=60.0, describe="a response that stops")
            mirror.wait_for_log("in the middle of a response")
            wait_until_copied(mirror, topic, PARTITIONS)
            mirror.stop()
            assert_identical(mirror, topic, PARTITIONS)
            assert "FAILED" not in mirror.log()
