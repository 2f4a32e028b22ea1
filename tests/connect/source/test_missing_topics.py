"""A list of topics that is suddenly empty: not believed at once."""

from __future__ import annotations

import pytest

from sparkmirror.connect.source.missing_topics import BELIEVE_SECONDS, MissingTopics
from sparkmirror.wire.admin.admin import TopicView
from tests.connect.fakes import Connector

TOPICS = {"t": TopicView(1, b"t"), "u": TopicView(2, b"u")}


class Clock:
    """Stands still until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_empty_list_is_believed_after_a_while() -> None:
    clock = Clock()
    topics = MissingTopics(clock)
    assert topics.complete(TOPICS) == TOPICS
    assert topics.complete({}) == TOPICS
    assert topics.is_waiting
    clock.now += BELIEVE_SECONDS
    assert topics.complete({}) == {}
    assert not topics.is_waiting


def test_a_list_that_comes_back_ends_the_doubt() -> None:
    clock = Clock()
    topics = MissingTopics(clock)
    topics.complete(TOPICS)
    topics.complete({})
    clock.now += BELIEVE_SECONDS / 2
    assert topics.complete(TOPICS) == TOPICS
    assert not topics.is_waiting
    clock.now += BELIEVE_SECONDS
    assert topics.complete({}) == TOPICS


def test_one_topic_of_several_is_believed_at_once() -> None:
    topics = MissingTopics(Clock())
    topics.complete(TOPICS)
    assert topics.complete({"t": TOPICS["t"]}) == {"t": TOPICS["t"]}


def test_tasks_keep_their_partitions_while_a_restarted_broker_lists_nothing(
    connector: Connector, caplog: pytest.LogCaptureFixture
) -> None:
    connector.source.add("t")
    connector.refresh()
    listed = dict(connector.source.topics)
    connector.source.topics.clear()
    connector.refresh()
    assert connector.assignment == [[("t", 0)]]
    assert all(not task.sent for task in connector.fake_tasks)
    assert "not copied from" not in caplog.text
    assert "nothing to copy" not in caplog.text
    # And the connector looks again soon.
    connector.source.topics.update(listed)
    connector._refresh_for_task()
    assert connector.assignment == [[("t", 0)]]
