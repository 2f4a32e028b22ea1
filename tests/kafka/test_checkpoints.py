"""Checkpoints and group offsets between real clusters, without Spark.

The syncs and the map that a copy task would write are written by hand, so that every position is
known; groups are those of an independent client.
"""

from __future__ import annotations

import logging
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from sparkmirror.config.mm2 import FlowConfig, load_mm2
from sparkmirror.connect.checkpoint import mirror_checkpoint_task
from sparkmirror.connect.storage import record_producer
from sparkmirror.embedded import KafkaCluster
from sparkmirror.mirror.records import Checkpoint, OffsetSync
from sparkmirror.mirror.translation.offset_map_chunks import Chunk, ChunkKey, ChunkStart, OffsetRun
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.group_admin import GroupAdmin
from tests.clusters import Record, create_topic, produce, read_partition, unique_name, wait_for
from tests.connect.local_checkpoints import LocalCheckpoints
from tests.group_offsets import commit_offsets, committed_offsets
from tests.kafka.topics import delete_topic, topic_shape

pytestmark = pytest.mark.kafka

SECONDS = 30.0
OFFSETS_PARTITIONS = 3
REMOTE_RECORDS = 1100
COMPACT = {"cleanup.policy": "compact"}


class Flow:
    """Two clusters under names of their own, and a topic with two partitions on both of them."""

    def __init__(self, folder: Path, source: KafkaCluster, target: KafkaCluster) -> None:
        self.source, self.target = source, target
        self.alias, self.target_alias = unique_name("s"), unique_name("t")
        self.topic = create_topic(source, partitions=2)
        self.remote = create_topic(target, f"{self.alias}.{self.topic}", partitions=2)
        # A checkpoint beyond the end of the remote topic would be none.
        for partition in range(2):
            produce(target, self.remote, [b"copied"] * REMOTE_RECORDS, partition=partition)
        self.checkpoints_topic = f"{self.alias}.checkpoints.internal"
        self.syncs_topic = create_topic(
            source, f"mm2-offset-syncs.{self.target_alias}.internal", config=COMPACT
        )
        self.map_topic = create_topic(
            target, f"mm2-offset-map.{self.alias}.internal", config=COMPACT
        )
        self.config = self._load(folder / "mm2.properties")

    def _load(self, path: Path) -> FlowConfig:
        servers = {self.alias: self.source, self.target_alias: self.target}
        factors = ("checkpoints.topic", "offset.storage", "heartbeats.topic", "offset-syncs.topic")
        lines = {
            "clusters": ", ".join(servers),
            **{f"{name}.bootstrap.servers": c.bootstrap_servers for name, c in servers.items()},
            f"{self.alias}->{self.target_alias}.enabled": "true",
            f"{self.alias}->{self.target_alias}.topics": self.topic,
            "groups": f"{self.alias}.*",
            "refresh.groups.interval.seconds": "1",
            "emit.checkpoints.interval.seconds": "1",
            "sync.group.offsets.enabled": "true",
            "sync.group.offsets.interval.seconds": "1",
            "offset.storage.partitions": str(OFFSETS_PARTITIONS),
            "offset.flush.interval.ms": "500",
            **{f"{prefix}.replication.factor": "1" for prefix in factors},
        }
        path.write_text("\n".join(f"{key} = {value}" for key, value in lines.items()))
        (flow,) = load_mm2(path).flows
        return flow

    def group(self) -> str:
        """A name that this flow follows."""
        return unique_name(self.alias)

    def sync(self, partition: int, upstream: int, downstream: int) -> None:
        sync = OffsetSync(self.topic, partition, upstream, downstream)
        record = Record(sync.encode_value(), sync.encode_key())
        produce(self.source, self.syncs_topic, [record])

    def chunk(self, partition: int, *runs: OffsetRun) -> None:
        chunk = Chunk(ChunkStart.SESSION, runs)
        key = ChunkKey(self.topic, partition, chunk.first).encode()
        produce(self.target, self.map_topic, [Record(chunk.encode(), key)])

    def checkpoints(self) -> list[Record]:
        names = AdminClient({"bootstrap.servers": self.target.bootstrap_servers}).list_topics()
        if self.checkpoints_topic not in names.topics:
            return []
        return read_partition(self.target, self.checkpoints_topic)

    def decoded(self) -> list[Checkpoint]:
        return [Checkpoint.decode(r.key or b"", r.value or b"") for r in self.checkpoints()]

    def wait_for_checkpoints(self, count: int) -> list[Record]:
        found: list[Record] = []

        def are_there() -> bool:
            found[:] = self.checkpoints()
            return len(found) >= count

        wait_for(are_there, within=SECONDS, describe=lambda: f"{count} checkpoints, not {found}")
        return found

    def wait_for_offsets(self, group: str, offsets: Mapping[int, int]) -> None:
        """On the target, by partition."""
        wait_for(
            lambda: committed(self.target, group, self.remote) == offsets,
            within=SECONDS,
            describe=lambda: f"{offsets}, not {committed(self.target, group, self.remote)}",
        )


@pytest.fixture
def flow(tmp_path: Path, source_cluster: KafkaCluster, target_cluster: KafkaCluster) -> Flow:
    return Flow(tmp_path, source_cluster, target_cluster)


@contextmanager
def running(flow: Flow) -> Iterator[LocalCheckpoints]:
    connector = LocalCheckpoints(flow.config)
    connector.connect()
    connector.start()
    try:
        yield connector
    finally:
        connector.stop()
        assert connector.join(10.0)


def consumer(cluster: KafkaCluster, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )


def commit(cluster: KafkaCluster, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """As a consumer that has left."""
    commit_offsets(cluster, group, {TopicPartition(topic, at): to for at, to in offsets.items()})


def committed(cluster: KafkaCluster, group: str, topic: str) -> dict[int, int]:
    found = committed_offsets(cluster, group)
    return {where.partition: offset for where, offset in found.items() if where.topic == topic}


def test_checkpoints_are_exact_with_a_map_and_mirror_maker_2s_without(flow: Flow) -> None:
    group = flow.group()
    flow.sync(0, 0, 1000)
    flow.chunk(0, OffsetRun(0, 1000, 30), OffsetRun(35, 1030, 20))
    flow.sync(1, 10, 510)
    # confluent-kafka would add a NUL to the metadata.
    admin = GroupAdmin(flow.config.checkpoint.source_client, 10_000)
    offsets = {
        TopicPartition(flow.topic, 0): (37, "note"),
        TopicPartition(flow.topic, 1): (99, "note"),
    }
    assert set(admin.alter_offsets(group, offsets).values()) == {None}
    admin.close()
    began_ms = time.time() * 1000
    with running(flow) as connector:
        rows = flow.wait_for_checkpoints(2)
        flow.wait_for_offsets(group, {0: 1032, 1: 511})
        assert connector.last_error == ""
    assert len(rows) == 2
    name, remote = group.encode(), flow.remote.encode()
    for partition, upstream, downstream in ((0, 37, 1032), (1, 99, 511)):
        key = struct.pack(">h", len(name)) + name + struct.pack(">h", len(remote)) + remote
        value = struct.pack(">hqqh", 0, upstream, downstream, 4) + b"note"
        (row,) = [row for row in rows if row.key == key + struct.pack(">i", partition)]
        assert row.value == value
        assert began_ms <= row.timestamp_ms <= time.time() * 1000
    stored = {
        (record.key, record.value)
        for at in range(OFFSETS_PARTITIONS)
        for record in read_partition(flow.target, f"mm2-offsets.{flow.alias}.internal", at)
    }
    assert stored == {
        (
            f'["MirrorCheckpointConnector",{{"partition":{at},"topic":"{flow.remote}",'
            f'"group":"{group}"}}]'.encode(),
            b'{"offset":0}',
        )
        for at in range(2)
    }


def test_offsets_on_the_target_go_forward_with_the_group_and_never_back(flow: Flow) -> None:
    group, ahead = flow.group(), flow.group()
    flow.chunk(0, OffsetRun(0, 0, 100))
    commit(flow.source, group, flow.topic, {0: 10})
    commit(flow.source, ahead, flow.topic, {0: 20})
    commit(flow.target, ahead, flow.remote, {0: 50})
    with running(flow):
        flow.wait_for_offsets(group, {0: 10})
        commit(flow.source, group, flow.topic, {0: 60})
        flow.wait_for_offsets(group, {0: 60})
        # The group itself goes back: a checkpoint says so, its offset on the target stays.
        commit(flow.source, group, flow.topic, {0: 30})
        rows = flow.wait_for_checkpoints(4)
        time.sleep(1.5)  # a round in which it could be written
    found = [Checkpoint.decode(row.key or b"", row.value or b"") for row in rows]
    assert [c.downstream_offset for c in found if c.group == group] == [10, 60, 30]
    assert committed(flow.target, group, flow.remote) == {0: 60}
    assert committed(flow.target, ahead, flow.remote) == {0: 50}


def test_a_group_in_use_on_the_target_is_left_alone_and_named_until_it_is_free(
    flow: Flow, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    group, gone = flow.group(), flow.group()
    flow.chunk(0, OffsetRun(0, 0, 100))
    commit(flow.source, group, flow.topic, {0: 10})
    commit(flow.source, gone, flow.topic, {0: 10})
    member = consumer(flow.target, group)
    member.subscribe([flow.remote])

    def has_joined() -> bool:
        member.poll(0.2)
        return len(member.assignment()) == 2

    wait_for(has_joined, within=SECONDS, describe="a member of the group")
    with running(flow) as connector:
        flow.wait_for_offsets(gone, {0: 10})
        why = f"'{group}' on the target: not written: the group has members on the target"
        wait_for(
            lambda: any(why in line for line in caplog.messages),
            within=SECONDS,
            describe=lambda: f"{why}: {caplog.messages}",
        )
        assert committed(flow.target, group, flow.remote) == {}
        admin = AdminClient({"bootstrap.servers": flow.source.bootstrap_servers})
        admin.delete_consumer_groups([gone])[gone].result(SECONDS)
        wait_for(
            lambda: connector.groups == (group,),
            within=SECONDS,
            describe=lambda: f"only {group}, not {connector.groups}",
        )
        member.close()
        flow.wait_for_offsets(group, {0: 10})
        assert connector.last_error == ""
    assert sum(why in line for line in caplog.messages) == 1
    found = f"[{flow.alias}->{flow.target_alias}] 1 groups are gone: {gone}"
    assert caplog.messages.count(found) == 1
    assert committed(flow.target, gone, flow.remote) == {0: 10}
    assert [c.group for c in flow.decoded()].count(gone) == 1


def test_a_restart_reads_its_checkpoints_past_malformed_ones_and_repeats_nothing(
    flow: Flow, caplog: pytest.LogCaptureFixture
) -> None:
    group = flow.group()
    flow.chunk(0, OffsetRun(0, 0, 100))
    commit(flow.source, group, flow.topic, {0: 10})
    with running(flow):
        flow.wait_for_checkpoints(1)
    produce(flow.target, flow.checkpoints_topic, [Record(b"\x00", b"nonsense")])
    produce(flow.source, flow.syncs_topic, [Record(b"nonsense", b"\x00")])
    with running(flow) as connector:
        wait_for(lambda: connector.groups == (group,), within=SECONDS, describe="the group")
        time.sleep(1.5)  # a round in which it could come again
        commit(flow.source, group, flow.topic, {0: 20})
        rows = flow.wait_for_checkpoints(3)
        flow.wait_for_offsets(group, {0: 20})
        assert connector.last_error == ""
    ours = [Checkpoint.decode(r.key or b"", r.value or b"") for r in (rows[0], *rows[2:])]
    assert [c.upstream_offset for c in ours] == [10, 20]
    skipped = [line for line in caplog.messages if "cannot be read and is skipped" in line]
    assert [line.partition(" cannot")[0] for line in skipped] == [
        f"offset 1 of '{flow.checkpoints_topic}'",
        f"offset 0 of '{flow.syncs_topic}'",
    ]


def test_a_deleted_checkpoints_topic_is_created_and_filled_again(
    flow: Flow, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_checkpoint_task, "PREPARE_SECONDS", 0.5)
    monkeypatch.setattr(record_producer, "BLOCKED_SECONDS", 1.0)
    resting, moving = flow.group(), flow.group()
    flow.chunk(0, OffsetRun(0, 0, 100))
    for group in (resting, moving):
        commit(flow.source, group, flow.topic, {0: 10})
    with running(flow) as connector:
        flow.wait_for_checkpoints(2)
        delete_topic(flow.target, flow.checkpoints_topic)
        commit(flow.source, moving, flow.topic, {0: 20})

        def are_all_there() -> bool:
            last = {c.group: c.upstream_offset for c in flow.decoded()}
            return last == {resting: 10, moving: 20}

        wait_for(
            are_all_there,
            within=SECONDS,
            describe=lambda: f"both groups: {flow.decoded()}, {connector.last_error}",
        )
        wait_for(lambda: not connector.last_error, within=SECONDS, describe="no error")
    alias, topic = flow.target_alias, flow.checkpoints_topic
    assert f"'{topic}' is missing on '{alias}': creating it again" in caplog.text
    assert topic_shape(flow.target, topic) == (1, "compact")
