"""Places on the target that checkpoints point to: missing ones, and ones that lost records."""

from __future__ import annotations

import logging

import pytest

from sparkmirror.errors import BrokerError, KafkaError
from sparkmirror.mirror.group_offsets import NotWritten
from sparkmirror.mirror.offset_map_chunks import Chunk, ChunkStart, Run
from sparkmirror.types import TopicPartition
from sparkmirror.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from tests.connect import test_checkpoint_connector
from tests.connect.group_fakes import Checkpoints
from tests.connect.test_checkpoint_connector import REMOTE0, T0, T1, checkpoint

connector = test_checkpoint_connector.connector

# -- checkpoints that would lead nowhere ----------------------------------------------------------


def copy_to_a_topic_that_is_missing(
    connector: Checkpoints, committed: dict[TopicPartition, int] | None = None
) -> None:
    connector.source.set("g", committed or {T0: 10})
    connector.refresh()
    connector.add_sync(T0, 10, 110)
    text, code = "find the leader of a.t-0 on 'b'", UNKNOWN_TOPIC_OR_PARTITION
    connector.target.ends[REMOTE0] = BrokerError(text, code, retriable=True)
    connector.emit()


def test_a_topic_that_the_target_lacks_gets_no_checkpoint_and_the_task_is_not_running(
    connector: Checkpoints, caplog: pytest.LogCaptureFixture
) -> None:
    copy_to_a_topic_that_is_missing(connector)
    connector.emit()
    assert connector.writer.checkpoints == []
    assert connector.blocked.startswith("no checkpoints: 'b' has no topic a.t, though records were")
    assert "the same policy and separator" in connector.blocked
    assert [text for text in caplog.messages if connector.blocked in text] != []
    # It is there, or is created after all.
    connector.target.ends[REMOTE0] = 200
    connector.emit()
    assert connector.writer.checkpoints == [checkpoint(10, 110)]
    assert connector.blocked == ""


def test_one_topic_that_is_missing_among_others_blocks_nothing(connector: Checkpoints) -> None:
    connector.add_sync(T1, 5, 5)
    copy_to_a_topic_that_is_missing(connector, {T0: 10, T1: 5})
    assert connector.blocked == ""


def test_a_checkpoints_topic_that_is_refused_blocks_the_connector(connector: Checkpoints) -> None:
    refused = BrokerError("create topic 'a.checkpoints.internal' on 'b'", 38, retriable=False)
    connector._translator = None
    connector.target.refuses["a.checkpoints.internal"] = refused
    with pytest.raises(KafkaError):
        connector._prepare()
    assert "set checkpoints.topic.replication.factor to at most the number" in connector.blocked
    connector.target.refuses.clear()
    connector._prepare()
    assert connector.blocked == ""


# -- a remote topic that lost its records ---------------------------------------------------------


def copy_before_and_after(connector: Checkpoints, recopied: int) -> None:
    """1,000 records, then the remote topic is recreated, and `recopied` more follow from 1000."""
    connector.source.set("g", {T0: 1000})
    connector.refresh()
    connector.add_chunk(T0, Chunk(ChunkStart.SESSION, (Run(0, 0, 1000),)))
    connector.target.ends[REMOTE0] = 1000
    connector.emit()
    connector.sync()
    connector.target.remove("g")  # the broker deletes offsets with their topic
    connector.target.ends[REMOTE0] = recopied
    if recopied:
        connector.add_chunk(T0, Chunk(ChunkStart.CONTINUES, (Run(1000, 0, recopied),)))
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
