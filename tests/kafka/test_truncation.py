"""An unclean leader election truncates the source, and its log grows past our position again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from sparkmirror.embedded import KafkaCluster
from tests.clusters import start_cluster, unique_name, wait_for
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import end_of, fill, number, values, wait_for_end

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(400)]

SECONDS = 60.0
CONFIG = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
# The third broker is a controller that is never down.
LEADER, FOLLOWER = 1, 2
COMMON, LOST, NEW = 50, 50, 80


@pytest.fixture(scope="module")
def three_brokers() -> Iterator[KafkaCluster]:
    with start_cluster("source-3", brokers=3) as cluster:
        yield cluster


def create(cluster: KafkaCluster) -> str:
    topic = unique_name()
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    wanted = NewTopic(topic, 1, replica_assignment=[[LEADER, FOLLOWER]], config=CONFIG)
    admin.create_topics([wanted])[topic].result(SECONDS)
    wait_for_state(cluster, topic, leader=LEADER, isr={LEADER, FOLLOWER})
    return topic


def wait_for_state(cluster: KafkaCluster, topic: str, *, leader: int, isr: set[int]) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    seen: list[tuple[int, set[int]]] = []

    def is_so() -> bool:
        partition = admin.list_topics(topic, timeout=SECONDS).topics[topic].partitions.get(0)
        if partition is not None:  # brokers learn of a new topic one after the other
            seen.append((partition.leader, set(partition.isrs)))
        return seen[-1:] == [(leader, isr)]

    wait_for(is_so, within=SECONDS, describe=lambda: f"{leader} leads with {isr}: {seen[-1:]}")


@pytest.mark.parametrize("is_running", [True, False], ids=["running", "stopped"])
def test_what_the_source_lost_is_named_and_what_it_has_instead_is_copied(
    three_brokers: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path, is_running: bool
) -> None:
    source = three_brokers
    first, second = (source.brokers[at - 1] for at in (LEADER, FOLLOWER))
    topic = create(source)
    with Mirror(tmp_path, source, target_cluster, topic) as mirror:
        fill(source, topic, COMMON)
        wait_for_end(mirror, topic, COMMON)
        second.kill()
        wait_for_state(source, topic, leader=LEADER, isr={LEADER})
        fill(source, topic, LOST, first=COMMON)
        wait_for_end(mirror, topic, COMMON + LOST)
        if not is_running:
            mirror.stop()
        first.kill()
        second.start()
        second.wait_ready()
        wait_for_state(source, topic, leader=FOLLOWER, isr={FOLLOWER})
        fill(source, topic, NEW, first=1000)
        assert end_of(source, topic) == COMMON + NEW > COMMON + LOST
        if not is_running:
            mirror.start()
        wait_for_end(mirror, topic, COMMON + LOST + NEW)
        line = mirror.wait_for_log("was truncated by an unclean leader election")
        assert "source offsets 50 to 99, which were copied, are gone there" in line
        assert f"only on the target, within offsets 50 to 99 of {mirror.remote(topic)}-0" in line
        # The old leader comes back, and follows.
        first.start()
        first.wait_ready()
        wait_for_state(source, topic, leader=FOLLOWER, isr={LEADER, FOLLOWER})
        fill(source, topic, 10, first=2000)
        wait_for_end(mirror, topic, COMMON + LOST + NEW + 10)
        mirror.stop()
        kept = [*range(COMMON), *range(1000, 1000 + NEW), *range(2000, 2010)]
        assert values(source, topic) == [number(at) for at in kept]
        copied = [*range(COMMON + LOST), *range(1000, 1000 + NEW), *range(2000, 2010)]
        assert values(target_cluster, mirror.remote(topic)) == [number(at) for at in copied]
        assert mirror.log().count("was truncated") == 1
        assert "FAILED" not in mirror.log()
