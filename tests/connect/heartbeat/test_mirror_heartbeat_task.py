"""Heartbeats into a fake broker; topics are created by a fake admin.

An interval of 0 seconds is the shortest that there is: a hundredth.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from sparkmirror.connect.heartbeat import mirror_heartbeat_task
from sparkmirror.connect.heartbeat.mirror_heartbeat_task import MirrorHeartbeatTask
from sparkmirror.connect.storage import record_producer
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.records import Heartbeat
from sparkmirror.wire.admin.admin import NewTopic
from sparkmirror.wire.protocol.error_codes import broker_error
from tests.clusters import wait_for
from tests.connect.fakes import FakeAdmin
from tests.flows import make_flow
from tests.wire.fake_broker import PRODUCE, Do, FakeCluster
from tests.wire.fake_log import FakeLog

INTERVAL = "emit.heartbeats.interval.seconds"
FLUSH = "b.offset.flush.interval.ms"
SETTINGS = {INTERVAL: "0", FLUSH: "600000", "offset.storage.partitions": "3"}
OFFSETS = "mm2-offsets.a.internal"
OFFSET_ROW = (
    b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"a","targetClusterAlias":"b"}]',
    b'{"offset":0}',
)
WAIT_SECONDS = 20.0


class Bench:
    """A target, its admin, and connectors that write to it."""

    def __init__(self, folder: Path, target: FakeCluster) -> None:
        self.target = target
        self.admin = FakeAdmin()
        self._folder = folder
        self._made: list[MirrorHeartbeatTask] = []

    def make(self, settings: dict[str, str] | None = None) -> MirrorHeartbeatTask:
        servers = self.target.bootstrap_servers
        flow = make_flow(self._folder, SETTINGS | (settings or {}), target=servers)
        connector = MirrorHeartbeatTask(flow.spec(flow.heartbeat))
        self._made.append(connector)
        return connector

    def start(self, settings: dict[str, str] | None = None) -> MirrorHeartbeatTask:
        connector = self.make(settings)
        connector.connect()
        connector.start()
        return connector

    @property
    def log(self) -> FakeLog:
        return self.target.log("heartbeats")

    def wait_for_beats(self, count: int) -> None:
        wait_for(
            lambda: self.log.end_offset >= count,
            within=WAIT_SECONDS,
            describe=lambda: f"{count} heartbeats; there are {self.log.end_offset}",
        )

    def offset_rows(self) -> list[tuple[bytes | None, bytes | None]]:
        logs = [self.target.log(OFFSETS, at) for at in range(3)]
        return [(record.key, record.value) for log in logs for record in log.records()]

    def close(self) -> None:
        for connector in self._made:
            connector.stop()
            connector.join(WAIT_SECONDS)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with FakeCluster() as target:
        target.create_topic("heartbeats")
        target.create_topic(OFFSETS, partitions=3)
        bench = Bench(tmp_path, target)
        monkeypatch.setattr(mirror_heartbeat_task, "Admin", lambda *_: bench.admin)
        monkeypatch.setattr(mirror_heartbeat_task, "CREATE_SECONDS", 0.05)
        yield bench
        bench.close()


def test_heartbeats_say_who_and_when(bench: Bench) -> None:
    began_ms = time.time_ns() // 1_000_000
    bench.start()
    bench.wait_for_beats(5)
    records = bench.log.records()
    beats = [Heartbeat.decode(record.key or b"", record.value or b"") for record in records]
    assert {(beat.source_alias, beat.target_alias) for beat in beats} == {("a", "b")}
    assert [beat.timestamp_ms for beat in beats] == [record.timestamp for record in records]
    assert all(before.timestamp_ms <= after.timestamp_ms for before, after in pairwise(beats))
    assert beats[0].timestamp_ms >= began_ms
    assert {record.key for record in records} == {bytes.fromhex("0001 61 0001 62")}


def test_the_topics_are_created_compacted(bench: Bench) -> None:
    bench.start({"heartbeats.topic.replication.factor": "2"})
    bench.wait_for_beats(1)
    compacted = {"cleanup.policy": "compact"}
    assert bench.admin.created == [
        NewTopic("heartbeats", 1, 2, compacted),
        NewTopic(OFFSETS, 3, 3, compacted),
    ]
    assert bench.admin.closed, "an idle connection is kept"


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"emit.heartbeats.enabled": "false"}, id="disabled"),
        pytest.param({INTERVAL: "-1"}, id="negative-interval"),
    ],
)
def test_a_disabled_connector_does_nothing(bench: Bench, settings: dict[str, str]) -> None:
    connector = bench.start(settings)
    connector.stop()
    assert connector.join(WAIT_SECONDS)
    assert bench.admin.created == []
    assert bench.target.requests == []
    assert connector.last_error == ""


def test_a_target_that_cannot_be_reached_is_told_at_once(
    tmp_path: Path,
) -> None:
    flow = make_flow(tmp_path)
    connector = MirrorHeartbeatTask(flow.spec(flow.heartbeat))
    with pytest.raises(KafkaError, match=r"cluster 'b' cannot be reached.*b\.bootstrap\.servers"):
        connector.connect()
    connector.stop()
    assert connector.join(WAIT_SECONDS)


def test_stop_ends_it_and_stores_the_offset(bench: Bench) -> None:
    connector = bench.start()
    bench.wait_for_beats(3)
    assert bench.offset_rows() == []
    connector.stop()
    assert connector.join(WAIT_SECONDS)
    assert bench.offset_rows() == [OFFSET_ROW]
    requests = len(bench.target.requests)
    time.sleep(0.1)
    assert len(bench.target.requests) == requests


def test_offsets_are_stored_at_their_own_rate(bench: Bench) -> None:
    bench.start({FLUSH: "1000"})
    wait_for(
        lambda: len(bench.offset_rows()) >= 2,
        within=WAIT_SECONDS,
        describe=lambda: f"two offsets after {bench.log.end_offset} heartbeats",
    )
    rows = bench.offset_rows()
    assert set(rows) == {OFFSET_ROW}
    assert len(rows) * 3 < bench.log.end_offset


def test_nothing_is_stored_for_heartbeats_that_were_refused(bench: Bench) -> None:
    bench.target.intercept(PRODUCE, lambda _: Do(code=29))
    connector = bench.start({FLUSH: "20"})
    wait_for(
        lambda: "TOPIC_AUTHORIZATION_FAILED" in connector.last_error,
        within=WAIT_SECONDS,
        describe="the refusal is told",
    )
    connector.stop()
    assert connector.join(WAIT_SECONDS)
    assert bench.offset_rows() == []


def test_a_topic_that_cannot_be_created_is_tried_again(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.admin.refuses["heartbeats"] = broker_error("create topic 'heartbeats' on 'b'", 38)
    connector = bench.start()
    wait_for(lambda: bool(connector.last_error), within=WAIT_SECONDS, describe="an error")
    assert "set heartbeats.topic.replication.factor to at most" in connector.last_error
    assert "[a->b|MirrorHeartbeatConnector] creating topics failed: create topic" in caplog.text
    assert bench.log.end_offset == 0
    bench.admin.refuses.clear()
    bench.wait_for_beats(1)
    wait_for(lambda: not connector.last_error, within=WAIT_SECONDS, describe="no error")


def test_heartbeats_go_on_without_the_offsets_topic(bench: Bench) -> None:
    bench.admin.refuses[OFFSETS] = broker_error(f"create topic '{OFFSETS}' on 'b'", 38)
    connector = bench.start({FLUSH: "20"})
    bench.wait_for_beats(5)
    assert "offset.storage.replication.factor" in connector.last_error
    connector.stop()
    assert connector.join(WAIT_SECONDS)
    assert bench.offset_rows() == []


def test_deleted_topics_are_created_again(
    bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_producer, "BLOCKED_SECONDS", 0.05)
    connector = bench.start({FLUSH: "20"})
    bench.wait_for_beats(1)
    wait_for(lambda: bench.admin.closed, within=WAIT_SECONDS, describe="both topics")
    bench.admin.created.clear()
    bench.admin.topics.clear()
    names = ("heartbeats", OFFSETS)
    for name in names:
        bench.target.delete_topic(name)
    wait_for(
        lambda: {topic.name for topic in bench.admin.created} == set(names),
        within=WAIT_SECONDS,
        describe=lambda: f"{names} created, not {bench.admin.created}",
    )
    bench.target.create_topic("heartbeats")
    bench.target.create_topic(OFFSETS, partitions=3)
    bench.wait_for_beats(5)
    wait_for(lambda: not connector.last_error, within=WAIT_SECONDS, describe="no error")
    complaint = f"[{connector.name}] 'heartbeats' is missing on 'b': creating it again"
    assert caplog.messages.count(complaint) == 1


def test_a_deleted_topic_that_may_not_be_created_is_an_error(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_producer, "BLOCKED_SECONDS", 0.05)
    connector = bench.start()
    bench.wait_for_beats(1)
    bench.admin.refuses["heartbeats"] = broker_error("create topic 'heartbeats' on 'b'", 29)
    bench.target.delete_topic("heartbeats")
    wait_for(
        lambda: "TOPIC_AUTHORIZATION_FAILED" in connector.last_error,
        within=WAIT_SECONDS,
        describe=lambda: f"a refusal, not {connector.last_error}",
    )
    bench.target.create_topic("heartbeats")
    bench.wait_for_beats(1)


def test_a_target_that_is_away_does_not_fill_the_memory(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_heartbeat_task, "MOST_WAITING", 5)
    connector = bench.start()
    bench.wait_for_beats(1)
    bench.target.stop_node(1)
    time.sleep(0.3)  # some thirty heartbeats
    wait_for(lambda: connector._writer.waiting, within=WAIT_SECONDS)
    stored = bench.log.end_offset
    connector.stop()
    bench.target.start_node(1)
    assert connector.join(WAIT_SECONDS)
    assert stored < bench.log.end_offset <= stored + 5


def test_join_does_not_wait_longer_than_it_may(bench: Bench) -> None:
    connector = bench.start()
    bench.wait_for_beats(1)
    bench.target.stop_node(1)
    time.sleep(0.05)
    connector.stop()
    began = time.monotonic()
    assert not connector.join(0.3)
    assert time.monotonic() - began < 5.0
    bench.target.start_node(1)
