"""Places on the target that checkpoints point to: missing ones, and ones that lost records."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.connect.checkpoint import mirror_checkpoint_task
from sparkmirror.errors import BrokerError, KafkaError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.protocol.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from tests.connect.checkpoint import test_mirror_checkpoint_task
from tests.connect.checkpoint.test_mirror_checkpoint_task import (
    REMOTE0,
    SETTINGS,
    T0,
    T1,
    checkpoint,
)
from tests.connect.group_fakes import Checkpoints

connector = test_mirror_checkpoint_task.connector

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


def test_topics_that_an_earlier_flow_left_do_not_hide_that_the_partner_has_another_policy(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    problem = ["topic 'orders' is 'a.orders', but 'orders' for connector source"]
    connector = Checkpoints(tmp_path, SETTINGS, partner_problem=lambda: problem[0])
    connector.make_ready()
    connector.source.set("g", {T0: 10})
    connector.refresh()
    connector.add_sync(T0, 10, 110)
    connector.target.ends[REMOTE0] = 200
    connector.emit()
    connector.emit()
    assert connector.writer.checkpoints == []
    assert connector.blocked.startswith("no checkpoints: replication.policy.class: topic 'orders'")
    assert len([text for text in caplog.messages if connector.blocked in text]) == 1
    problem[0] = ""
    connector.emit()
    assert connector.writer.checkpoints == [checkpoint(10, 110)]
    assert connector.blocked == ""


def test_a_checkpoints_topic_that_is_refused_blocks_the_connector(
    connector: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_checkpoint_task, "READ_SECONDS", 0.1)
    refused = BrokerError("create topic 'a.checkpoints.internal' on 'b'", 38, retriable=False)
    connector._translator = None
    connector.target.refuses["a.checkpoints.internal"] = refused
    with pytest.raises(KafkaError):
        connector._prepare()
    assert "set checkpoints.topic.replication.factor to at most the number" in connector.blocked
    connector.target.refuses.clear()
    connector._prepare()
    assert connector.blocked == ""
