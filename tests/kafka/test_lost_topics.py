"""Topics that are deleted, recreated or truncated: logged, and copying continues."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from sparkmirror.embedded import KafkaCluster
from tests.clusters import create_topic, wait_for
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import (
    Feeder,
    assert_identical,
    fill,
    new_topic,
    number,
    stored_positions,
    values,
    wait_for_end,
    wait_for_last,
    wait_until_copied,
)
from tests.kafka.topics import delete_topic

pytestmark = pytest.mark.kafka

NEVER = "100000"


def delete_records(cluster: KafkaCluster, topic: str, before_offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    where = TopicPartition(topic, 0, before_offset)
    admin.delete_records([where])[where].result(30)


def test_a_topic_created_anew_is_copied_from_its_start_also_after_a_kill(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster)
    fill(source_cluster, topic, 50)
    # The connector does not look, so the task has to notice.
    settings = {"refresh.topics.interval.seconds": NEVER}
    with Mirror(tmp_path, source_cluster, target_cluster, topic, settings) as mirror:
        wait_until_copied(mirror, topic)
        delete_topic(source_cluster, topic)
        create_topic(source_cluster, topic)
        mirror.wait_for_log("was deleted and recreated")
        wait_for(lambda: None in stored_positions(mirror), within=10, describe="a tombstone")
        mirror.kill_tree()
        # More than the old topic had: its position would be inside the new one.
        fill(source_cluster, topic, 80, first=1000)
        mirror.start()
        wait_for_last(mirror, topic)
        found = values(target_cluster, mirror.remote(topic))
        assert found == [number(at) for at in (*range(50), *range(1000, 1080))]


def test_a_topic_that_comes_back_later_is_copied_from_its_start(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster)
    fill(source_cluster, topic, 50)
    with Mirror(tmp_path, source_cluster, target_cluster, topic) as mirror:
        wait_until_copied(mirror, topic)
        delete_topic(source_cluster, topic)
        mirror.wait_for_log("0 partitions in")
        create_topic(source_cluster, topic)
        fill(source_cluster, topic, 80, first=1000)
        wait_for_end(mirror, topic, 130)
        mirror.wait_for_log("was deleted and recreated")
        found = values(target_cluster, mirror.remote(topic))
        assert found == [number(at) for at in (*range(50), *range(1000, 1080))]


@pytest.mark.long
def test_a_topic_created_anew_while_nothing_ran_is_copied_once_and_from_its_start(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster)
    fill(source_cluster, topic, 50)
    with Mirror(tmp_path, source_cluster, target_cluster, topic) as mirror:
        wait_until_copied(mirror, topic)
        mirror.stop()
        delete_topic(source_cluster, topic)
        create_topic(source_cluster, topic)
        # More than the old topic had: its position lies inside the new one.
        fill(source_cluster, topic, 80, first=1000)
        mirror.start()
        wait_for_end(mirror, topic, 130)
        mirror.wait_for_log("was deleted and recreated")
        # Both the task and, every second, the worker have seen the new topic: it is not new again.
        mirror.stop()
        mirror.start()
        fill(source_cluster, topic, 10, first=2000)
        wait_for_last(mirror, topic)
        found = values(target_cluster, mirror.remote(topic))
        wanted = (*range(50), *range(1000, 1080), *range(2000, 2010))
        assert found == [number(at) for at in wanted]
        assert "recreated" not in mirror.log()


@pytest.mark.long
def test_records_that_retention_deleted_are_said_and_counted(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster)
    fill(source_cluster, topic, 100)
    with Mirror(tmp_path, source_cluster, target_cluster, topic) as mirror:
        wait_until_copied(mirror, topic)
        mirror.stop()
        fill(source_cluster, topic, 100, first=100)
        delete_records(source_cluster, topic, 150)

        mirror.configure({"SOURCE.consumer.auto.offset.reset": "none"})
        mirror.start()
        failure = mirror.wait_for_log("FAILED")
        assert f"{topic}-0: position 100 is outside the log (150 to 200)" in failure
        assert "auto.offset.reset=none" in failure
        mirror.kill_tree()

        mirror.configure({"SOURCE.consumer.auto.offset.reset": "earliest"})
        mirror.start()
        line = mirror.wait_for_log("deleted by retention")
        assert "offsets 100 to 149 were deleted" in line
        assert "50 offsets lost" in line
        wait_for_end(mirror, topic, 150)
        wanted = [number(at) for at in (*range(100), *range(150, 200))]
        assert values(target_cluster, mirror.remote(topic)) == wanted


def test_a_deleted_target_topic_is_created_again(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic, other = new_topic(source_cluster), new_topic(source_cluster)
    settings = {"refresh.topics.interval.seconds": NEVER}
    topics = f"{topic},{other}"
    with Mirror(tmp_path, source_cluster, target_cluster, topics, settings) as mirror:
        with Feeder(source_cluster, other, 1, per_second=200):
            with Feeder(source_cluster, topic, 1, per_second=200):
                wait_for_end(mirror, topic, 10)
                delete_topic(target_cluster, mirror.remote(topic))
                wait_for_end(mirror, topic, 10)
            wait_for_last(mirror, topic)
        wait_until_copied(mirror, other)
        found = [int(value[:10]) for value in values(target_cluster, mirror.remote(topic))]
        assert found[0] > 0
        assert found == list(range(found[0], found[0] + len(found)))
        assert_identical(mirror, other)
        assert "FAILED" not in mirror.log()
