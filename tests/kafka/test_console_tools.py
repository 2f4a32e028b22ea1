"""What Kafka's own tools, and MirrorMaker 2's formatters, show of a mirror's work.

One flow is copied once, with a group, heartbeats and synced settings; each test runs one tool.
kafka-acls is tried in test_config_and_acl_sync.py, where clusters have authorizers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from sparkmirror.embedded import KafkaCluster
from sparkmirror.types import TopicPartition
from tests.clusters import create_topic, unique_name, wait_for
from tests.group_offsets import commit_offsets, committed_offsets
from tests.kafka.console_tools import consume, format_records, run_tool
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import end_of, fill, values, wait_until_copied

pytestmark = pytest.mark.kafka

SECONDS = 60.0
RETENTION_MS = "86400001"
SETTINGS = {
    "SOURCE->target.emit.heartbeats.enabled": "true",
    "SOURCE->target.emit.checkpoints.enabled": "true",
    "emit.checkpoints.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "sync.topic.configs.enabled": "true",
}


@dataclass(frozen=True, slots=True)
class Copied:
    """A topic of 100 and 50 records, and a group at 60 and 50, both on the target too."""

    mirror: Mirror
    topic: str
    group: str

    @property
    def remote(self) -> str:
        return self.mirror.remote(self.topic)


@pytest.fixture(scope="module")
def copied(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Copied]:
    topic = create_topic(source_cluster, partitions=2, config={"retention.ms": RETENTION_MS})
    group = unique_name("group")
    fill(source_cluster, topic, 100)
    fill(source_cluster, topic, 50, partition=1)
    places = {TopicPartition(topic, 0): 60, TopicPartition(topic, 1): 50}
    commit_offsets(source_cluster, group, places)
    folder = tmp_path_factory.mktemp("tools")
    settings = {**SETTINGS, "groups": group}
    with Mirror(folder, source_cluster, target_cluster, topic, settings) as mirror:
        wait_until_copied(mirror, topic, 2)
        remote = mirror.remote(topic)
        wanted = {TopicPartition(remote, 0): 60, TopicPartition(remote, 1): 50}
        wait_for(
            lambda: committed_offsets(target_cluster, group) == wanted,
            within=SECONDS,
            describe=lambda: f"{wanted}: {committed_offsets(target_cluster, group)}",
        )
        # Heartbeats, checkpoints and syncs end with it.
        mirror.stop()
        yield Copied(mirror, topic, group)


def test_get_offsets_shows_the_ends_of_the_source(copied: Copied) -> None:
    lines = run_tool(copied.mirror.target, "kafka-get-offsets", "--topic", copied.remote)
    assert sorted(lines) == [f"{copied.remote}:0:100", f"{copied.remote}:1:50"]


def test_consumer_groups_shows_where_the_group_continues(copied: Copied) -> None:
    words = ("--describe", "--group", copied.group)
    lines = run_tool(copied.mirror.target, "kafka-consumer-groups", *words)
    rows = [line.split()[:6] for line in lines if line.startswith(copied.group)]
    assert sorted(rows) == [
        [copied.group, copied.remote, "0", "60", "100", "40"],
        [copied.group, copied.remote, "1", "50", "50", "0"],
    ]


def test_topics_and_configs_show_the_source_s_partitions_and_settings(copied: Copied) -> None:
    target = copied.mirror.target
    described = run_tool(target, "kafka-topics", "--describe", "--topic", copied.remote)
    assert re.search(r"PartitionCount:\s*2\b", described[0])
    words = ("--describe", "--entity-type", "topics", "--entity-name", copied.remote)
    settings = " ".join(run_tool(target, "kafka-configs", *words))
    assert f" retention.ms={RETENTION_MS} " in settings


def test_console_consumer_reads_the_records_of_the_source(copied: Copied) -> None:
    mirror = copied.mirror
    wanted = [value.decode() for value in values(mirror.source, copied.topic)]
    assert consume(mirror.target, copied.remote, 100) == wanted


def test_heartbeat_formatter_reads_our_heartbeats(copied: Copied) -> None:
    target = copied.mirror.target
    lines = format_records(target, "heartbeats", end_of(target, "heartbeats"), "HeartbeatFormatter")
    ours = [line for line in lines if f"sourceClusterAlias={copied.mirror.alias}," in line]
    pattern = rf"Heartbeat\{{sourceClusterAlias={copied.mirror.alias}, targetClusterAlias=target, "
    assert ours
    assert all(re.fullmatch(pattern + r"timestamp=\d{13}\}", line) for line in ours), ours[0]


def test_checkpoint_formatter_reads_our_checkpoints(copied: Copied) -> None:
    topic = f"{copied.mirror.alias}.checkpoints.internal"
    target = copied.mirror.target
    lines = format_records(target, topic, end_of(target, topic), "CheckpointFormatter")
    newest = {line.split("upstreamOffset")[0]: line for line in lines}
    assert sorted(newest.values()) == [
        f"Checkpoint{{consumerGroupId={copied.group}, topicPartition={copied.remote}-{at}, "
        f"upstreamOffset={offset}, downstreamOffset={offset}, metadata=}}"
        for at, offset in ((0, 60), (1, 50))
    ]


def test_offset_sync_formatter_reads_our_offset_syncs(copied: Copied) -> None:
    topic, source = "mm2-offset-syncs.target.internal", copied.mirror.source
    lines = format_records(source, topic, end_of(source, topic), "OffsetSyncFormatter")
    ours = [line for line in lines if f"topicPartition={copied.topic}-" in line]
    pattern = r"OffsetSync\{topicPartition=\S+-[01], upstreamOffset=(\d+), downstreamOffset=(\d+)\}"
    found = [re.fullmatch(pattern, line) for line in ours]
    assert ours
    assert all(each and each[1] == each[2] for each in found), ours
