"""Genuine MirrorMaker 2 copies, and Kafka's own tools run."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.embedded import GenuineMirrorMaker, KafkaCluster, run_java_tool
from sparkmirror.embedded.java import QUICK_JVM_ARGS
from sparkmirror.embedded.process import log_tail
from tests.clusters import create_topic, end_offset, produce, read_partition, wait_for

pytestmark = pytest.mark.kafka


def test_mirror_maker_copies_ten_records(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = create_topic(source_cluster)
    written = [b"%d" % number for number in range(10)]
    produce(source_cluster, topic, written)
    properties = {
        "clusters": "a,b",
        "a.bootstrap.servers": source_cluster.bootstrap_servers,
        "b.bootstrap.servers": target_cluster.bootstrap_servers,
        "a->b.enabled": "true",
        "a->b.topics": topic,
        "b->a.enabled": "false",
        "emit.checkpoints.enabled": "false",
        "emit.heartbeats.enabled": "false",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "config.storage.replication.factor": "1",
    }
    create_topic(target_cluster, f"a.{topic}")
    with GenuineMirrorMaker(
        properties, tmp_path, heap="512m", jvm_args=QUICK_JVM_ARGS
    ) as mirror_maker:
        wait_for(
            lambda: end_offset(target_cluster, f"a.{topic}") == 10,
            within=60,
            describe=lambda: f"10 records copied; {log_tail(mirror_maker.log_path)}",
        )
        assert mirror_maker.is_running
        mirror_maker.kill()
    assert not mirror_maker.is_running
    assert [record.value for record in read_partition(target_cluster, f"a.{topic}")] == written


def test_java_tool_prints_and_returns_its_exit_code(source_cluster: KafkaCluster) -> None:
    topic = create_topic(source_cluster)
    server = ["--bootstrap-server", source_cluster.bootstrap_servers]
    listed = run_java_tool("org.apache.kafka.tools.TopicCommand", [*server, "--list"])
    assert listed.returncode == 0
    assert topic in listed.stdout.split()
