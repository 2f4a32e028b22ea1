"""Two processes with one file: one copies, the other waits to take over; never both."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from sparkmirror.config.files.properties import load_properties
from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.mirror_maker import GenuineMirrorMaker
from tests.kafka.mirror_process import START_SECONDS, STOP_SECONDS, Mirror, assert_gone
from tests.kafka.records import (
    Feeder,
    assert_identical,
    count_seams,
    end_of,
    fill,
    new_topic,
    wait_for_end,
    wait_for_last,
)

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

PARTITIONS = 2
STANDS_BY = "0 flows started, 1 standing by"
# Never by itself: what the next process goes on from was stored at an orderly end.
SETTINGS = {"target.offset.flush.interval.ms": "600000"}


def wait_for_more(mirror: Mirror, topic: str) -> None:
    """Until this process has copied a hundred records of each partition."""
    for partition in range(PARTITIONS):
        end = end_of(mirror.target, mirror.remote(topic), partition)
        wait_for_end(mirror, topic, end + 100, partition)


def test_of_two_one_copies_and_orderly_hand_overs_copy_nothing_twice(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster, partitions=PARTITIONS)
    one = Mirror(tmp_path, source_cluster, target_cluster, topic, SETTINGS)
    two = one.another("two")
    with one, two.ending():
        with Feeder(source_cluster, topic, PARTITIONS, per_second=300):
            leader, other = one, two
            for number in (signal.SIGTERM, signal.SIGINT):
                other.start(until=STANDS_BY)
                line = other.wait_for_log("stands by")
                assert f"[{one.alias}-mm2 on 'target'] stands by" in line
                assert f"/{leader.pid} copies this flow" in line
                wait_for_more(leader, topic)
                assert other.task_processes() == []
                # What `timeout` and Ctrl-C do: every process of the group hears of it.
                assert leader.stop(number, group=True) < STOP_SECONDS
                other.wait_for_log("leads, generation")
                wait_for_more(other, topic)
                leader, other = other, leader
        for partition in range(PARTITIONS):
            wait_for_last(leader, topic, partition)
        assert_identical(one, topic, PARTITIONS)


def test_the_stand_by_takes_over_from_one_that_was_killed(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster, partitions=PARTITIONS)
    one = Mirror(tmp_path, source_cluster, target_cluster, topic, SETTINGS)
    two = one.another("two")
    with one, two.ending():
        with Feeder(source_cluster, topic, PARTITIONS, per_second=300):
            two.start(until=STANDS_BY)
            wait_for_more(one, topic)
            assert_gone(one.kill_worker(), within=30)
            two.wait_for_log("leads, generation")
            wait_for_more(two, topic)
        for partition in range(PARTITIONS):
            wait_for_last(two, topic, partition)
            # The tasks of a killed process store their positions if they can: else one seam.
            seams, _ = count_seams(two, topic, partition)
            assert seams <= 1


def test_genuine_mirror_maker_in_the_group_is_waited_for(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster)
    fill(source_cluster, topic, 100)
    mirror = Mirror(tmp_path, source_cluster, target_cluster, topic)
    genuine = GenuineMirrorMaker(load_properties(mirror.file), tmp_path / "genuine", heap="512m")
    with genuine, mirror.ending():
        wait_for_end(mirror, topic, 100)
        mirror.start(until="another MirrorMaker 2")
        assert f"join group '{mirror.alias}-mm2' on 'target'" in mirror.log()
        fill(source_cluster, topic, 100, first=100)
        wait_for_end(mirror, topic, 200)
        assert mirror.task_processes() == []
        genuine.stop()
        mirror.wait_for_log("1 flows started", within=START_SECONDS)
        fill(source_cluster, topic, 100, first=200)
        wait_for_last(mirror, topic)
        assert_identical(mirror, topic)
