"""`sparkmirror run` reports where partitions begin; `--resume-only` refuses to begin afresh."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from sparkmirror.embedded import KafkaCluster
from tests.clusters import create_topic
from tests.kafka.mirror_process import START_SECONDS, Mirror
from tests.kafka.records import fill, new_topic, number, values, wait_until_copied
from tests.kafka.topics import delete_topic

pytestmark = pytest.mark.kafka


def run_resume_only(mirror: Mirror) -> tuple[int, str]:
    """Exit code and log of a start that is expected to be refused."""
    ended = subprocess.run(
        [sys.executable, "-m", "sparkmirror.cli.main", "run", mirror.file, "--resume-only"],
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    return ended.returncode, ended.stderr


def topics_of(cluster: KafkaCluster) -> set[str]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    return set(admin.list_topics(timeout=30).topics)


def test_only_what_has_a_position_is_resumed(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    # The second partition stays empty: like MirrorMaker 2 we store no position for it.
    topic, later = new_topic(source_cluster, partitions=2), new_topic(source_cluster)
    fill(source_cluster, topic, 50)
    fill(source_cluster, later, 5)
    mirror = Mirror(tmp_path, source_cluster, target_cluster, topic)

    before = topics_of(target_cluster)
    code, text = run_resume_only(mirror)
    assert code == 1
    assert f"{mirror.alias}->target: {topic}, partition 0: no stored position\n" in text
    assert topics_of(target_cluster) == before

    with mirror:
        line = mirror.wait_for_log("start afresh")
        assert "2 partitions: 0 resume at their stored positions, 1 are empty" in line
        assert (
            f"1 start afresh (auto.offset.reset=earliest): 1 have no stored position: {topic}-0"
            in line
        )
        wait_until_copied(mirror, topic)
        mirror.stop()
        fill(source_cluster, topic, 50, first=50)

        mirror.start("--resume-only")
        line = mirror.wait_for_log("start afresh")
        assert "2 partitions: 1 resume at their stored positions" in line
        assert "0 start afresh" in line
        wait_until_copied(mirror, topic)
        assert values(target_cluster, mirror.remote(topic)) == [number(at) for at in range(100)]
        mirror.stop()

        mirror.configure({"SOURCE->target.topics": f"{topic},{later}"})
        code, text = run_resume_only(mirror)
        assert code == 1
        assert f"{later}, partition 0: no stored position\n" in text
        assert f"{topic}, partition" not in text
        assert mirror.remote(later) not in topics_of(target_cluster)


def test_a_position_of_another_topic_of_the_same_name_is_refused_and_reported(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster)
    fill(source_cluster, topic, 50)
    with Mirror(tmp_path, source_cluster, target_cluster, topic) as mirror:
        wait_until_copied(mirror, topic)
        mirror.stop()
        delete_topic(source_cluster, topic)
        create_topic(source_cluster, topic)
        fill(source_cluster, topic, 10, first=1000)
        code, text = run_resume_only(mirror)
        assert code == 1
        assert f"{topic}, partition 0: stored position of a topic that was recreated\n" in text
        mirror.start()
        line = mirror.wait_for_log("start afresh")
        assert f"of a topic that was deleted and recreated: {topic}-0" in line
