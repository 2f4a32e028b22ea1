"""Checkpoints and offsets of groups when a remote topic lost its records: deleted and recreated."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from sparkmirror.errors import KafkaError
from sparkmirror.mirror.group_offsets import NotWritten
from sparkmirror.mirror.records import Checkpoint
from sparkmirror.mirror.translation.offset_map_chunks import Chunk, ChunkStart, OffsetRun
from sparkmirror.types import TopicPartition
from tests.connect.group_fakes import Checkpoints

T0, REMOTE0 = TopicPartition("t", 0), TopicPartition("a.t", 0)
SETTINGS = {"a->b.topics": "t", "a->b.sync.group.offsets.enabled": "true"}


@pytest.fixture
def connector(tmp_path: Path) -> Checkpoints:
    connector = Checkpoints(tmp_path, SETTINGS)
    connector.make_ready()
    return connector


def checkpoint(upstream: int, downstream: int) -> Checkpoint:
    return Checkpoint("g", *REMOTE0, upstream, downstream)


def copy_before_and_after(connector: Checkpoints, recopied: int) -> None:
    """1,000 records, then the remote topic is recreated, and `recopied` more follow from 1000."""
    connector.source.set("g", {T0: 1000})
    connector.refresh()
    connector.add_chunk(T0, Chunk(ChunkStart.SESSION, (OffsetRun(0, 0, 1000),)))
    connector.target.ends[REMOTE0] = 1000
    connector.emit()
    connector.sync()
    connector.target.remove("g")  # the broker deletes offsets with their topic
    connector.target.ends[REMOTE0] = recopied
    if recopied:
        connector.add_chunk(T0, Chunk(ChunkStart.CONTINUES, (OffsetRun(1000, 0, recopied),)))
    connector.source.set("g", {T0: 1100})


@pytest.mark.parametrize("recopied", [500, 1500], ids=["shorter", "grown past the old end"])
def test_a_checkpoint_goes_back_with_a_remote_topic_that_was_recreated(
    connector: Checkpoints, recopied: int
) -> None:
    copy_before_and_after(connector, recopied)
    connector.emit()
    connector.sync()
    assert connector.writer.checkpoints == [checkpoint(1000, 1000), checkpoint(1100, 100)]
    assert connector.target.altered[-1] == ("g", {REMOTE0: (100, "")})


def test_a_checkpoint_beyond_the_targets_end_is_none(
    connector: Checkpoints, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    copy_before_and_after(connector, 0)
    connector.emit()
    report = connector.sync()
    assert connector.writer.checkpoints == [checkpoint(1000, 1000)]
    assert len(connector.target.altered) == 1
    assert report.reasons == {"g": NotWritten.BEYOND_END}
    assert any("lost records" in line and "(g)" in line for line in caplog.messages)


def test_without_a_map_a_checkpoint_goes_back_as_soon_as_the_last_is_beyond_the_end(
    connector: Checkpoints,
) -> None:
    connector.source.set("g", {T0: 1000})
    connector.refresh()
    connector.add_sync(T0, 1000, 1000)
    connector.emit()
    connector.target.ends[REMOTE0] = 500
    connector.source.set("g", {T0: 1100})
    connector.add_sync(T0, 1100, 100)
    connector.emit()
    assert connector.writer.checkpoints == [checkpoint(1000, 1000), checkpoint(1100, 100)]


def test_an_end_that_is_not_known_changes_nothing(connector: Checkpoints) -> None:
    connector.source.set("g", {T0: 10})
    connector.refresh()
    connector.add_sync(T0, 10, 110)
    connector.target.ends[REMOTE0] = KafkaError("its leader is away")
    connector.emit()
    connector.sync()
    assert connector.writer.checkpoints == [checkpoint(10, 110)]
    assert connector.target.altered == [("g", {REMOTE0: (110, "")})]


def test_an_offset_on_the_target_beyond_its_end_is_replaced(connector: Checkpoints) -> None:
    connector.source.set("g", {T0: 10})
    connector.refresh()
    connector.add_sync(T0, 10, 10)
    connector.target.set("g", {REMOTE0: 900})
    connector.target.ends[REMOTE0] = 20
    connector.emit()
    connector.sync()
    assert connector.target.altered == [("g", {REMOTE0: (10, "")})]


def test_a_partition_that_a_task_has_only_begun_gets_no_checkpoint(connector: Checkpoints) -> None:
    connector.source.set("g", {T0: 0})
    connector.refresh()
    connector.add_chunk(T0, Chunk(ChunkStart.SESSION, (OffsetRun(0, 0, 0),)))
    connector.emit()
    assert connector.writer.checkpoints == []
    connector.add_chunk(T0, Chunk(ChunkStart.SESSION, (OffsetRun(0, 0, 5),)))
    connector.source.set("g", {T0: 5})
    connector.emit()
    assert connector.writer.checkpoints == [checkpoint(5, 5)]
