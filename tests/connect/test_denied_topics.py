"""Topics and groups that a cluster does not show us are asked for by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import BrokerError
from sparkmirror.mirror.permissions import Operation, group_permission, topic_permission
from sparkmirror.types import TopicPartition
from sparkmirror.wire.access import response_error
from tests.connect.fakes import Connector
from tests.connect.group_fakes import Checkpoints

CLIENT = ClientConfig("a", ("h:1",))


def hidden(topic: str) -> BrokerError:
    needed = topic_permission(Operation.DESCRIBE, topic)
    return response_error(CLIENT, f"find topic '{topic}' on 'a'", 29, needed)


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


def test_nothing_to_copy_but_what_came_from_the_target_is_told_as_such(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    connector = Connector(tmp_path, {"a->b.topics": "b.orders"})
    connector.source.add("b.orders")
    for _ in range(2):
        connector.refresh()
    (nothing,) = [line for line in caplog.messages if "nothing to copy" in line]
    assert nothing.endswith("filter accepts only copies, which are not copied back: b.orders")


def test_nothing_to_copy_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    connector = Connector(tmp_path, {"a->b.topics": "t.*"})
    connector.refresh()
    connector.source.add("other")
    for _ in range(2):
        connector.refresh()
    at_first, then = caplog.messages
    assert at_first == "[a->b] nothing to copy: 'a' lists no topics for User:ANONYMOUS"
    assert then == (
        "[a->b] nothing to copy: of the topics that 'a' lists for User:ANONYMOUS, the topic "
        r"filter accepts none (topics=t.*; topics.exclude=mm2.*\.internal,.*\.replica,__.*)"
    )
    assert "kafka-acls" not in caplog.text


def test_a_named_group_that_may_not_be_seen_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    connector = Checkpoints(tmp_path, {"a->b.groups": "hidden, g.*"})
    source = connector.source
    needed = group_permission(Operation.DESCRIBE, "hidden")
    source.errors["hidden"] = response_error(CLIENT, "find the coordinator", 30, needed)
    connector.refresh()
    (warning,) = [text for text in caplog.messages if "left out" in text]
    assert "1 groups are left out, hidden: find the coordinator: GROUP_AUTHORIZATION" in warning
    assert "; the group gets no checkpoints; the others do; to allow it: " in warning


def test_why_no_group_is_followed_is_told_without_a_command(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    connector = Checkpoints(tmp_path, {"a->b.groups": "shop.*", "a->b.topics": "t"})
    connector.refresh()
    connector.source.set("other", {TopicPartition("t", 0): 1})
    connector.refresh()
    connector.source.set("shop-1", {TopicPartition("u", 0): 1})
    for _ in range(2):
        connector.refresh()
    none_listed, none_accepted, none_consuming = [
        text for text in caplog.messages if "no groups" in text
    ]
    assert none_listed == "[a->b] no groups to follow: 'a' lists no groups for User:ANONYMOUS"
    assert "for User:ANONYMOUS, the group filter accepts none (groups=shop.*; groups.exclude=" in (
        none_accepted
    )
    assert "none has committed an offset in a topic that the topic filter accepts (topics=t;" in (
        none_consuming
    )
    # A first ACL would take access away from everybody else.
    assert "kafka-acls" not in caplog.text
