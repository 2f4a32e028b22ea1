"""Rounds of a checkpoint connector, over fakes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.batches.records import Record, encode
from sparkmirror.connect.checkpoint import mirror_checkpoint_task
from sparkmirror.errors import KafkaError, TransportError
from sparkmirror.mirror.group_offsets import NotWritten
from sparkmirror.mirror.records import Checkpoint
from sparkmirror.mirror.translation.offset_map_chunks import Chunk, ChunkKey, ChunkStart, OffsetRun
from sparkmirror.mirror.translation.offsets import OffsetPair
from sparkmirror.types import TopicPartition
from tests.connect.group_fakes import Checkpoints
from tests.connect.local_checkpoints import LocalCheckpoints
from tests.flows import make_flow
from tests.wire.fake_broker import METADATA, Do, FakeCluster

T0, T1, OTHER = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("other", 0)
REMOTE0 = TopicPartition("a.t", 0)
TOPIC = "a.checkpoints.internal"
OFFSETS = "mm2-offsets.a.internal"
SETTINGS = {"a->b.topics": "t", "a->b.sync.group.offsets.enabled": "true"}


@pytest.fixture
def connector(tmp_path: Path) -> Checkpoints:
    connector = Checkpoints(tmp_path, SETTINGS)
    connector.make_ready()
    return connector


def checkpoint(upstream: int, downstream: int, group: str = "g") -> Checkpoint:
    return Checkpoint(group, *REMOTE0, upstream, downstream)


# -- which groups ---------------------------------------------------------------------------------


def test_groups_with_offsets_in_topics_of_the_flow_are_followed(connector: Checkpoints) -> None:
    connector.source.set("g", {T0: 1, OTHER: 3})
    connector.source.set("busy", {T1: 0}, state="Stable")
    connector.source.set("elsewhere", {OTHER: 3})
    connector.source.set("nothing", {})
    connector.source.set("console-consumer-1", {T0: 1})
    connector.refresh()
    assert connector.groups == ("g", "busy")


def test_new_and_vanished_groups_are_named(
    connector: Checkpoints, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    connector.source.set("g", {T0: 1})
    connector.refresh()
    connector.source.remove("g")
    connector.source.set("h", {T0: 1})
    connector.refresh()
    connector.refresh()
    assert connector.groups == ("h",)
    assert caplog.messages == [
        "[a->b] follows 1 more groups: g",
        "[a->b] follows 1 more groups: h",
        "[a->b] 1 groups are gone: g",
    ]


def test_a_group_that_cannot_be_asked_now_is_still_followed(
    connector: Checkpoints, caplog: pytest.LogCaptureFixture
) -> None:
    connector.source.set("g", {T0: 1})
    connector.refresh()
    connector.source.errors["g"] = TransportError("its coordinator is away")
    connector.refresh()
    connector.refresh()
    assert connector.groups == ("g",)
    left_out = [line for line in caplog.messages if "left out" in line]
    assert left_out == ["[a->b] 1 groups are left out, g: its coordinator is away"]


# -- checkpoints ----------------------------------------------------------------------------------


def test_a_checkpoint_when_something_changed(connector: Checkpoints) -> None:
    connector.source.set("g", {T0: 10, OTHER: 5}, metadata="m")
    connector.refresh()
    connector.add_sync(T0, 10, 110)
    connector.emit()
    connector.emit()
    assert connector.writer.checkpoints == [Checkpoint("g", *REMOTE0, 10, 110, "m")]


def test_a_checkpoint_goes_back_only_with_its_group(connector: Checkpoints) -> None:
    connector.add_sync(T0, 0, 100)
    connector.add_sync(T0, 10, 110)
    for upstream in (5, 12, 3, 4):
        connector.source.set("g", {T0: upstream})
        connector.refresh()
        connector.emit()
    assert connector.writer.checkpoints == [
        checkpoint(5, 101),
        checkpoint(12, 111),
        checkpoint(3, 101),
    ]


def test_groups_that_cannot_be_translated_are_named_once(
    connector: Checkpoints, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    connector.source.set("late", {T0: 3})
    connector.source.set("early", {T1: 3})
    connector.refresh()
    connector.add_sync(T0, 10, 110)
    connector.emit()
    connector.emit()
    assert connector.writer.checkpoints == []
    (line,) = [line for line in caplog.messages if "without a checkpoint" in line]
    assert "behind all known translations of the partition (late)" in line
    assert "no sync was read (early)" in line


def test_the_offsets_of_many_groups_are_asked_for_at_once(connector: Checkpoints) -> None:
    for at in range(2000):
        connector.source.set(f"g{at}", {T0: at})
    connector.refresh()
    connector.add_sync(T0, 0, 0)
    connector.source.asked.clear()
    connector.emit()
    assert [what for what, _ in connector.source.asked] == ["offsets"]
    assert len(connector.writer.checkpoints) == 2000


def test_nothing_is_emitted_before_earlier_checkpoints_were_read(tmp_path: Path) -> None:
    connector = Checkpoints(tmp_path, SETTINGS)
    connector.source.set("g", {T0: 10})
    connector.refresh()
    connector.add_sync(T0, 10, 110)
    connector.emit()
    assert connector.writer.batches == []


def test_a_topic_that_cannot_be_read_makes_it_coarser_and_is_said(
    connector: Checkpoints, caplog: pytest.LogCaptureFixture
) -> None:
    connector.source.set("g", {T0: 10})
    connector.refresh()
    connector.add_sync(T0, 10, 110)
    connector.map.error = TransportError("read topic 'map': cut")
    connector.emit()
    connector.emit()
    assert connector.writer.checkpoints == [checkpoint(10, 110)]
    assert connector.last_error == "read topic 'map': cut"
    assert caplog.messages == ["[a->b] may degrade offset translation: read topic 'map': cut"]
    connector.map.error = None
    connector.emit()
    assert connector.last_error == ""


def test_no_further_checkpoints_while_the_target_does_not_take_them(
    connector: Checkpoints,
) -> None:
    connector.source.set("g", {T0: 10})
    connector.refresh()
    connector.writer.waiting = 100
    connector.writer.last_error = "b is away"
    with pytest.raises(KafkaError, match="not stored yet: b is away"):
        connector.emit()


def test_offsets_topic_gets_what_connect_would_write(connector: Checkpoints) -> None:
    connector._prepare_offsets()
    connector.source.set("g", {T0: 10})
    connector.refresh()
    connector.add_sync(T0, 10, 110)
    connector.emit()
    connector._commit()
    topic, _, rows = connector.writer.batches[-1]
    assert topic == "mm2-offsets.a.internal"
    assert [row[:2] for row in rows] == [
        (
            b'["MirrorCheckpointConnector",{"partition":0,"topic":"a.t","group":"g"}]',
            b'{"offset":0}',
        )
    ]


def test_the_map_forgets_what_the_source_has_deleted(connector: Checkpoints) -> None:
    connector.source.set("g", {T0: 150})
    connector.refresh()
    for at, start in ((0, ChunkStart.SESSION), (100, ChunkStart.CONTINUES)):
        for tp in (T0, T1):
            connector.add_chunk(tp, Chunk(start, (OffsetRun(at, at, 100),)))
    connector.emit()
    connector.source.starts = {T0: 120, T1: TransportError("its leader is away")}
    connector.prune()
    topic, partition, rows = connector.writer.batches[-1]
    assert (topic, partition) == ("map", 0)
    assert [row[:2] for row in rows] == [(ChunkKey(*T0, OffsetPair(0, 0)).encode(), None)]


# -- group offsets --------------------------------------------------------------------------------


def test_groups_get_the_offsets_of_their_last_checkpoints(connector: Checkpoints) -> None:
    connector.source.set("g", {T0: 10})
    connector.source.set("busy", {T0: 10})
    connector.target.set("busy", {REMOTE0: 3}, state="Stable")
    connector.refresh()
    connector.add_sync(T0, 10, 110)
    connector.emit()
    report = connector.sync()
    assert connector.target.altered == [("g", {REMOTE0: (110, "")})]
    assert report.reasons == {"busy": NotWritten.ACTIVE}


def test_a_group_that_vanished_is_left_alone(connector: Checkpoints) -> None:
    connector.source.set("g", {T0: 10})
    connector.refresh()
    connector.add_sync(T0, 10, 110)
    connector.emit()
    connector.source.remove("g")
    connector.refresh()
    assert connector.sync().written == {}
    assert connector.target.altered == []


# -- getting ready --------------------------------------------------------------------------------


@pytest.fixture
def target() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        cluster.create_topic(TOPIC)
        yield cluster


def store(target: FakeCluster, *checkpoints: Checkpoint) -> None:
    rows = [Record(at, 0, c.encode_key(), c.encode_value()) for at, c in enumerate(checkpoints)]
    assert target.log(TOPIC).append(bytes(encode(rows))).code == 0


def test_earlier_checkpoints_are_not_emitted_again(tmp_path: Path, target: FakeCluster) -> None:
    store(target, checkpoint(10, 110), checkpoint(20, 120, "other"))
    connector = Checkpoints(tmp_path, SETTINGS, target.bootstrap_servers)
    connector._prepare()
    connector.make_ready()
    connector.source.set("g", {T0: 10})
    connector.refresh()
    connector.add_sync(T0, 10, 110)
    connector.emit()
    assert connector.writer.batches == []
    assert [topic.name for topic in connector.target.created] == [TOPIC, "mm2-offsets.a.internal"]


def test_checkpoints_that_cannot_be_read_are_done_without(
    tmp_path: Path, target: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    target.intercept(METADATA, lambda _: Do(code=29))
    connector = Checkpoints(tmp_path, SETTINGS, target.bootstrap_servers)
    connector._prepare()
    assert "may degrade offset translation: read topic" in caplog.messages[0]
    assert connector._translator is not None
    assert connector._translator._must_read_to_end
    connector._translator.close()


def test_refused_checkpoints_are_emitted_again(tmp_path: Path, target: FakeCluster) -> None:
    store(target, checkpoint(5, 105))
    connector = Checkpoints(tmp_path, SETTINGS, target.bootstrap_servers)
    connector.make_ready()
    connector.source.set("g", {T0: 10})
    connector.refresh()
    connector.add_sync(T0, 10, 110)
    connector.writer.refuses = KafkaError("too large")
    connector.emit()
    connector.writer.refuses = None
    connector.emit()
    assert connector.writer.checkpoints == []
    connector._prepare()
    connector.emit()
    assert connector.writer.checkpoints == [checkpoint(10, 110)]


def test_a_load_that_failed_is_tried_again(
    tmp_path: Path, target: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_checkpoint_task, "READ_SECONDS", 0.1)
    connector = Checkpoints(tmp_path, SETTINGS, ("127.0.0.1:1",))
    connector.make_ready()
    connector.writer.refuses = KafkaError("too large")
    connector._log.append([checkpoint(10, 110)], 0)
    with pytest.raises(TransportError, match=TOPIC):
        connector._prepare()
    assert connector._log.has_lost_some


def test_a_deleted_topic_is_created_again_and_filled(
    connector: Checkpoints, caplog: pytest.LogCaptureFixture
) -> None:
    connector.source.set("g", {T0: 10})
    connector.refresh()
    connector.add_sync(T0, 10, 110)
    connector.emit()
    connector._prepare()
    assert connector.target.created == []
    connector.writer.missing = frozenset({TOPIC, OFFSETS})
    connector._prepare()
    connector._prepare()
    created = {topic.name: topic.partitions for topic in connector.target.created}
    assert created == {TOPIC: 1, OFFSETS: 25}
    connector.writer.missing = frozenset()
    connector._prepare()
    connector.emit()
    connector.emit()
    assert connector.writer.checkpoints == [checkpoint(10, 110)] * 2
    assert (
        caplog.messages.count(f"[{connector.name}] '{TOPIC}' is missing on 'b': creating it again")
        == 1
    )


@pytest.mark.parametrize("key", ["emit.checkpoints.enabled", "emit.offset-syncs.enabled"])
def test_a_flow_without_checkpoints_does_nothing(tmp_path: Path, key: str) -> None:
    flow = make_flow(tmp_path, {f"a->b.{key}": "false"})
    connector = LocalCheckpoints(flow)
    connector.connect()
    connector.start()
    connector.stop()
    assert connector.join(1.0)
    assert connector.last_error == ""


def test_all_clusters_that_cannot_be_reached_are_named(tmp_path: Path) -> None:
    connector = LocalCheckpoints(make_flow(tmp_path))
    with pytest.raises(KafkaError, match=r"(?s)cluster 'a' cannot be.*cluster 'b' cannot be"):
        connector.connect()
    connector.join(0.1)
