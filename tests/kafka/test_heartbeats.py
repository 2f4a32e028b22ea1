"""Heartbeats on a real broker, without Spark: their bytes, their rate, and brokers that fail."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

from sparkmirror.config.mm2 import HeartbeatSpec, load_mm2
from sparkmirror.connect.heartbeat import mirror_heartbeat_task
from sparkmirror.connect.heartbeat.mirror_heartbeat_task import MirrorHeartbeatTask
from sparkmirror.connect.storage import record_producer
from sparkmirror.embedded import KafkaCluster
from sparkmirror.mirror.positions.partitioner import partition_for_key
from tests.clusters import Record, read_partition, unique_name, wait_for
from tests.kafka.broker_failures import restart
from tests.kafka.records import end_of
from tests.kafka.topics import delete_topic, topic_shape

pytestmark = pytest.mark.kafka

OFFSETS_PARTITIONS = 3
WAIT_SECONDS = 60.0


class Beating:
    """The heartbeat connector of `source`->b at work; the alias is this test's own."""

    def __init__(self, folder: Path, target: KafkaCluster) -> None:
        self.target = target
        self.source = unique_name("s")
        self.connector = MirrorHeartbeatTask(self._pair(folder))
        self.connector.connect()
        self.connector.start()

    def _pair(self, folder: Path) -> HeartbeatSpec:
        settings = {
            "clusters": f"{self.source}, b",
            f"{self.source}.bootstrap.servers": "127.0.0.1:1",
            "b.bootstrap.servers": self.target.bootstrap_servers,
            f"{self.source}->b.enabled": "true",
            f"b->{self.source}.emit.heartbeats.enabled": "false",
            "heartbeats.topic.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "offset.storage.partitions": str(OFFSETS_PARTITIONS),
            "b.offset.flush.interval.ms": "1000",
        }
        file = folder / "mm2.properties"
        file.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        (pair,) = load_mm2(file).heartbeats
        return pair

    @property
    def key(self) -> bytes:
        alias = self.source.encode()
        return struct.pack(">h", len(alias)) + alias + bytes.fromhex("0001 62")

    def records(self) -> list[Record]:
        """Those of this flow: the topic is everybody's."""
        if end_of(self.target, "heartbeats") <= 0:
            return []
        found = read_partition(self.target, "heartbeats")
        return [record for record in found if record.key == self.key]

    def wait_for_more(self, count: int) -> None:
        wanted = len(self.records()) + count
        wait_for(
            lambda: len(self.records()) >= wanted,
            within=WAIT_SECONDS,
            describe=lambda: (
                f"{wanted} heartbeats; there are {len(self.records())}; {self.connector.last_error}"
            ),
        )

    def offsets(self) -> list[tuple[int, bytes | None, bytes | None]]:
        topic = f"mm2-offsets.{self.source}.internal"
        return [
            (at, record.key, record.value)
            for at in range(OFFSETS_PARTITIONS)
            for record in read_partition(self.target, topic, at)
        ]


@pytest.fixture
def beating(tmp_path: Path, target_cluster: KafkaCluster) -> Iterator[Beating]:
    beating = Beating(tmp_path, target_cluster)
    yield beating
    beating.connector.stop()
    beating.connector.join(10.0)


def test_heartbeats_are_byte_for_byte_those_of_mirror_maker_2(beating: Beating) -> None:
    beating.wait_for_more(5)
    beating.connector.stop()
    assert beating.connector.join(10.0)
    records = beating.records()
    for record in records:
        assert record.value == bytes.fromhex("0000") + struct.pack(">q", record.timestamp_ms)
        assert record.headers == ()
    gaps = [after.timestamp_ms - before.timestamp_ms for before, after in pairwise(records)]
    assert 0.5 < median(gaps) / 1000 < 5
    key = (
        f'["MirrorHeartbeatConnector",'
        f'{{"sourceClusterAlias":"{beating.source}","targetClusterAlias":"b"}}]'
    ).encode()
    row = (partition_for_key(key, OFFSETS_PARTITIONS), key, b'{"offset":0}')
    stored = beating.offsets()
    assert set(stored) == {row}
    assert len(stored) <= len(records)
    assert topic_shape(beating.target, "heartbeats") == (1, "compact")
    time.sleep(1.5)
    assert len(beating.records()) == len(records), "it goes on after stop"


def test_heartbeats_go_on_when_the_broker_comes_back(beating: Beating) -> None:
    (broker,) = beating.target.brokers
    beating.wait_for_more(1)
    restart(broker)
    beating.wait_for_more(3)
    times = [record.timestamp_ms for record in beating.records()]
    assert times == sorted(set(times)), "out of order, or twice"
    # The positions have partitions of their own, whose leader may take longer.
    wait_for(
        lambda: beating.connector.last_error == "",
        within=WAIT_SECONDS,
        describe=lambda: f"no error; there is {beating.connector.last_error}",
    )
    beating.connector.stop()
    assert beating.connector.join(10.0)


def test_a_deleted_topic_is_created_again_and_heartbeats_go_on(
    tmp_path: Path,
    target_cluster: KafkaCluster,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mirror_heartbeat_task, "CREATE_SECONDS", 0.5)
    monkeypatch.setattr(record_producer, "BLOCKED_SECONDS", 1.0)
    beating = Beating(tmp_path, target_cluster)
    beating.wait_for_more(1)
    delete_topic(target_cluster, "heartbeats")
    beating.wait_for_more(3)
    connector = beating.connector
    wait_for(lambda: not connector.last_error, within=WAIT_SECONDS, describe="no error")
    connector.stop()
    assert connector.join(10.0)
    message = f"[{connector.name}] 'heartbeats' is missing on 'b': creating it again"
    assert caplog.messages.count(message) == 1
    assert topic_shape(target_cluster, "heartbeats") == (1, "compact")
    times = [record.timestamp_ms for record in beating.records()]
    assert times == sorted(set(times)), "out of order, or twice"
