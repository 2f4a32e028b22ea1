"""Remote topics that cannot be created at once, or not as they should be."""

from __future__ import annotations

import pytest

from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.admin import ConfigChange, TopicSetting
from sparkmirror.wire.protocol.error_codes import broker_error
from tests.connect.fakes import Connector

T0 = TopicPartition("t", 0)


def assigned(connector: Connector) -> list[list[TopicPartition]]:
    """Of each task, as its orders would say now."""
    rows = [connector.orders(at)["assigned"] for at in range(len(connector.tasks))]
    return [[TopicPartition(topic, at) for topic, _, at, _ in each] for each in rows]


def test_a_remote_that_cannot_be_created_is_said_once_and_tried_again(
    connector: Connector, caplog: pytest.LogCaptureFixture
) -> None:
    connector.source.add("t")
    connector.target.refuses["a.t"] = broker_error("create topic 'a.t'", 38)
    for _ in range(2):
        connector.refresh()
    assert connector.tasks == []
    assert caplog.text.count("INVALID_REPLICATION_FACTOR") == 1
    assert connector.degraded.startswith("a topic is not copied: create topic 'a.t'")
    connector.target.refuses.clear()
    connector.refresh()
    assert assigned(connector) == [[T0]]
    assert connector.degraded == ""


COMPACTED = [TopicSetting("cleanup.policy", "compact", 1, read_only=False, sensitive=False)]


COMPACT = ConfigChange("cleanup.policy", 0, "compact")


def test_a_remote_with_too_many_replicas_is_left_to_brokers_that_create_topics(
    connector: Connector, caplog: pytest.LogCaptureFixture
) -> None:
    connector.source.add("t", 2)
    connector.source.settings["t"] = COMPACTED
    connector.target.refuses_creation["a.t"] = broker_error("create topic 'a.t'", 38)
    connector.target.auto_creates = 1
    for _ in range(2):
        connector.refresh()
    # As the source topic is, before anything is copied.
    assert connector.target.topics["a.t"].partitions == 2
    assert connector.target.config_changes == [("a.t", COMPACT)]
    assert assigned(connector) == [[T0], [TopicPartition("t", 1)]]
    (warning,) = [text for text in caplog.messages if "created by the brokers of 'b'" in text]
    assert "set replication.factor to at most the number of brokers" in warning


def test_a_remote_that_brokers_create_late_is_looked_for_soon_and_has_its_settings(
    connector: Connector, caplog: pytest.LogCaptureFixture
) -> None:
    connector.source.add("t", 2)
    connector.source.settings["t"] = COMPACTED
    connector.target.refuses_creation["a.t"] = broker_error("create topic 'a.t'", 38)
    connector.refresh()
    assert connector._misses_topics.is_set()
    connector.target.add("a.t", 1)
    connector._refresh_for_task()
    assert connector.target.config_changes == [("a.t", COMPACT)]
    assert connector.target.topics["a.t"].partitions == 2
    assert assigned(connector) == [[T0], [TopicPartition("t", 1)]]
    assert not connector._misses_topics.is_set()
    assert "'a.t' was created by the brokers of 'b'" in caplog.text


def test_brokers_that_create_no_topics_are_not_asked_again_and_again(connector: Connector) -> None:
    connector.source.add("t")
    connector.target.refuses_creation["a.t"] = broker_error("create topic 'a.t'", 38)
    connector.refresh()
    soon = 0
    while connector._misses_topics.is_set():
        soon += 1
        connector._refresh_for_task()
    assert 1 <= soon <= 5


def test_a_remote_whose_settings_cannot_be_put_right_is_not_used(
    connector: Connector, caplog: pytest.LogCaptureFixture
) -> None:
    connector.source.add("t")
    connector.source.settings["t"] = COMPACTED
    connector.target.refuses_creation["a.t"] = broker_error("create topic 'a.t'", 38)
    connector.target.refuses["a.t"] = broker_error("alter configs of topic 'a.t'", 44)
    connector.target.auto_creates = 1
    for _ in range(2):
        connector.refresh()
    assert connector.tasks == []
    assert caplog.text.count("brokers created 'a.t', but it is not used yet: alter configs") == 1
    assert "not used yet" in connector._remote_topics.refused
    connector.target.refuses.clear()
    connector.refresh()
    assert connector.target.config_changes == [("a.t", COMPACT)]
    assert assigned(connector) == [[T0]]


def test_a_topic_whose_settings_are_not_told_is_named_and_not_created(
    connector: Connector, caplog: pytest.LogCaptureFixture
) -> None:
    connector.source.add("t")
    connector.source.add("tt")
    connector.source.hidden["t"] = broker_error("describe configs of topic 't' on 'a'", 29)
    for _ in range(2):
        connector.refresh()
    assert [topic.name for topic in connector.target.created] == ["a.tt"]
    assert caplog.text.count("topic 't' on 'a': TOPIC_AUTHORIZATION_FAILED") == 1
    connector.source.hidden.clear()
    connector.refresh()
    assert [topic.name for topic in connector.target.created] == ["a.tt", "a.t"]


def test_a_remote_is_created_without_the_settings_that_the_target_refuses(
    connector: Connector, caplog: pytest.LogCaptureFixture
) -> None:
    rows = {
        "message.downconversion.enable": "false",
        "segment.bytes": "1000",
        "cleanup.policy": "compact",
    }
    connector.source.add("t")
    connector.source.settings["t"] = [
        TopicSetting(name, value, 1, read_only=False, sensitive=False)
        for name, value in rows.items()
    ]
    connector.target.unknown_settings.add("message.downconversion.enable")
    connector.target.least_settings["segment.bytes"] = 1048576
    connector.refresh()
    (created,) = connector.target.created
    assert created.configs == {"segment.bytes": "1048576", "cleanup.policy": "compact"}
    assert assigned(connector) == [[T0]]
    assert connector.degraded == ""
    assert len([text for text in caplog.messages if "does not accept" in text]) == 2


def test_a_remote_is_not_created_without_a_setting_that_protects_its_records(
    connector: Connector,
) -> None:
    connector.source.add("t")
    connector.source.settings["t"] = COMPACTED
    connector.target.unknown_settings.add("cleanup.policy")
    connector.refresh()
    assert connector.target.created == []
    assert "Unknown topic config name: cleanup.policy" in connector.degraded


def test_a_setting_that_the_target_does_not_know_is_warned_of_once_whatever_its_values(
    connector: Connector, caplog: pytest.LogCaptureFixture
) -> None:
    for topic, value in {"t": "false", "tt": "true"}.items():
        connector.source.add(topic)
        connector.source.settings[topic] = [
            TopicSetting(
                "message.downconversion.enable", value, 1, read_only=False, sensitive=False
            )
        ]
    connector.target.unknown_settings.add("message.downconversion.enable")
    connector.refresh()
    assert {topic.name: topic.configs for topic in connector.target.created} == {
        "a.t": {},
        "a.tt": {},
    }
    assert len([text for text in caplog.messages if "does not accept" in text]) == 1
