"""Topics and groups that a cluster does not show us are asked for by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import BrokerError
from sparkmirror.wire.access import Operation, answer_error, group_right, topic_right
from tests.connect.fakes import Connector
from tests.connect.group_fakes import Checkpoints

CLIENT = ClientConfig("a", ("h:1",))


def hidden(topic: str) -> BrokerError:
    needed = topic_right(Operation.DESCRIBE, topic)
    return answer_error(CLIENT, f"find topic '{topic}' on 'a'", 29, needed)


def test_a_named_topic_that_may_not_be_seen_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    connector = Connector(tmp_path, {"a->b.topics": "seen, hidden, absent, pattern.*"})
    connector.source.add("seen")
    connector.source.invisible["hidden"] = hidden("hidden")
    for _ in range(2):
        connector.refresh()
    (warning,) = [text for text in caplog.messages if "lacks" in text]
    assert warning == (
        "[a->b] find topic 'hidden' on 'a': TOPIC_AUTHORIZATION_FAILED: User:ANONYMOUS lacks READ "
        "on topic 'hidden' of cluster 'a'; it is not copied; the other topics are; to allow it: "
        "kafka-acls.sh --bootstrap-server h:1 --add --allow-principal User:ANONYMOUS --operation "
        "Read --topic hidden"
    )


def test_a_topic_that_was_copied_and_is_hidden_now(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    connector = Connector(tmp_path, {"a->b.topics": "t.*"})
    for topic in ("ta", "tb", "tc"):
        connector.source.add(topic)
    connector.refresh()
    for topic in ("ta", "tb"):
        del connector.source.topics[topic]
    connector.source.invisible["tb"] = hidden("tb")
    connector.refresh()
    gone, denied = sorted(caplog.messages, key=len)
    assert gone == "[a->b] not copied from 'a' any more: ta; deleted, or filtered out"
    assert "lacks READ on topic 'tb'" in denied


def test_nothing_to_copy_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    connector = Connector(tmp_path, {"a->b.topics": "t.*"})
    connector.refresh()
    (warning,) = caplog.messages
    assert "nothing to copy: of the topics of 'a' that User:ANONYMOUS may READ, none" in warning


def test_a_named_group_that_may_not_be_seen_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    connector = Checkpoints(tmp_path, {"a->b.groups": "hidden, g.*"})
    source = connector.source
    needed = group_right(Operation.DESCRIBE, "hidden")
    source.errors["hidden"] = answer_error(CLIENT, "find the coordinator", 30, needed)
    connector.refresh()
    (warning,) = [text for text in caplog.messages if "left out" in text]
    assert "1 groups are left out, hidden: find the coordinator: GROUP_AUTHORIZATION" in warning
    assert "; the group gets no checkpoints; the others do; to allow it: " in warning


def test_a_cluster_that_shows_no_group_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    connector = Checkpoints(tmp_path, {})
    for _ in range(2):
        connector.refresh()
    (text,) = [text for text in caplog.messages if "no groups" in text]
    assert "[a->b] no groups: 'a' shows User:ANONYMOUS none; to allow all: kafka-acls.sh" in text
