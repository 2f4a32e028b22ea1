"""Two processes with one file share the tasks of each flow; one partition never has two writers."""

from __future__ import annotations

import re
import signal
from collections import Counter
from pathlib import Path

import httpx
import pytest

from sparkmirror.config.files.properties import load_properties
from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.mirror_maker import GenuineMirrorMaker
from tests.clusters import wait_for
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

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(400)]

PARTITIONS = 4
FOLLOWS = "0 flows started, 1 led by other nodes"
SETTINGS = {
    "tasks.max": str(PARTITIONS),
    # Never by itself: what the next process resumes at was stored at an orderly end.
    "target.offset.flush.interval.ms": "600000",
    "dedicated.mode.enable.internal.rest": "true",
    "listeners": "http://127.0.0.1:0",
}
SOURCE = "MirrorSourceConnector"


def api_of(mirror: Mirror) -> str:
    """Where a node says how its flow is."""
    found = re.findall(r"REST API at (\S+)<source>/<target>/", mirror.log())
    return f"{found[-1]}{mirror.alias}/target"


def owners(mirror: Mirror) -> Counter[str]:
    """How many tasks of the source connector run on each node."""
    status = httpx.get(f"{api_of(mirror)}/connectors/{SOURCE}/status")
    if status.status_code == 404:  # it has none yet
        return Counter()
    tasks = [task for task in status.json()["tasks"] if task["state"] == "RUNNING"]
    return Counter(task["worker_id"] for task in tasks)


def wait_for_shares(mirror: Mirror, *shares: int) -> None:
    """Until the tasks are shared like this, among as many nodes."""
    wait_for(
        lambda: sorted(owners(mirror).values()) == sorted(shares),
        within=START_SECONDS,
        describe=lambda: f"{owners(mirror)}, not {shares}; {mirror.log_end()}",
    )


def wait_for_more(mirror: Mirror, topic: str) -> None:
    """Until a hundred more records of each partition are there."""
    for partition in range(PARTITIONS):
        end = end_of(mirror.target, mirror.remote(topic), partition)
        wait_for_end(mirror, topic, end + 100, partition)


def test_two_share_the_tasks_and_orderly_hand_overs_copy_nothing_twice(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster, partitions=PARTITIONS)
    one = Mirror(tmp_path, source_cluster, target_cluster, topic, SETTINGS)
    two = one.another("two")
    with one, two.ending():
        with Feeder(source_cluster, topic, PARTITIONS, per_second=300):
            wait_for_shares(one, PARTITIONS)
            leader, other = one, two
            for number in (signal.SIGTERM, signal.SIGINT):
                other.start(until=FOLLOWS)
                line = other.wait_for_log("leads this flow")
                assert f"{one.alias}->target: {api_of(leader).partition(one.alias)[0]}" in line
                wait_for_shares(other, PARTITIONS // 2, PARTITIONS // 2)
                wait_for_more(leader, topic)
                # What `timeout` and Ctrl-C do: every process of the group hears of it.
                assert leader.stop(number, group=True) < STOP_SECONDS
                other.wait_for_log("leads, generation")
                wait_for_shares(other, PARTITIONS)
                wait_for_more(other, topic)
                leader, other = other, leader
        for partition in range(PARTITIONS):
            wait_for_last(leader, topic, partition)
        assert_identical(one, topic, PARTITIONS)


@pytest.mark.parametrize("is_leader", [True, False], ids=["leader", "follower"])
def test_the_other_takes_over_from_one_that_was_killed(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path, is_leader: bool
) -> None:
    topic = new_topic(source_cluster, partitions=PARTITIONS)
    one = Mirror(tmp_path, source_cluster, target_cluster, topic, SETTINGS)
    two = one.another("two")
    with one, two.ending():
        with Feeder(source_cluster, topic, PARTITIONS, per_second=300):
            two.start(until=FOLLOWS)
            wait_for_shares(two, PARTITIONS // 2, PARTITIONS // 2)
            wait_for_more(one, topic)
            killed, left = (one, two) if is_leader else (two, one)
            assert_gone(killed.kill_worker(), within=30)
            wait_for_shares(left, PARTITIONS)
            wait_for_more(left, topic)
        for partition in range(PARTITIONS):
            wait_for_last(left, topic, partition)
            # The tasks of a killed process store their positions if they can: else one seam.
            seams, _ = count_seams(left, topic, partition)
            assert seams <= 1


def test_requests_reach_the_node_that_runs_the_task(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster, partitions=PARTITIONS)
    fill(source_cluster, topic, 100)
    one = Mirror(tmp_path, source_cluster, target_cluster, topic, SETTINGS)
    two = one.another("two")
    with one, two.ending():
        two.start(until=FOLLOWS)
        wait_for_shares(two, PARTITIONS // 2, PARTITIONS // 2)
        root = httpx.get(f"{api_of(two).partition(one.alias)[0]}").json()
        assert root["flows"] == [f"{one.alias}->target"]
        for task in range(PARTITIONS):
            path = f"{api_of(two)}/connectors/{SOURCE}/tasks/{task}/restart"
            assert httpx.post(path).status_code == 204
        logs = [mirror.log().count("RUNNING again, after 1 restarts") for mirror in (one, two)]
        wait_for(
            lambda: (
                [m.log().count("RUNNING again, after 1 restarts") for m in (one, two)]
                == [PARTITIONS // 2] * 2
            ),
            within=START_SECONDS,
            describe=lambda: f"{logs}; {one.log_end()}; {two.log_end()}",
        )
        refused = httpx.delete(f"{api_of(two)}/connectors/{SOURCE}")
        assert refused.status_code == 405
        assert str(one.file) in refused.json()["message"]
        assert httpx.get(f"{api_of(two).partition(one.alias)[0]}connectors").status_code == 404
        assert httpx.put(f"{api_of(two)}/connectors/{SOURCE}/pause").status_code == 202
        wait_for_shares(two)
        fill(source_cluster, topic, 100, first=100)
        assert httpx.put(f"{api_of(one)}/connectors/{SOURCE}/resume").status_code == 202
        wait_for_last(one, topic)
        assert_identical(one, topic)


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
