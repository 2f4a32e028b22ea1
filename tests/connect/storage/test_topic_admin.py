"""Creation of internal topics, and which refusals are survived."""

from __future__ import annotations

from typing import cast

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.connect.storage.topic_admin import (
    InternalTopic,
    ensure_internal_topic,
    ensure_internal_topics,
)
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.permissions import Operation, topic_permission
from sparkmirror.types import TopicPartition
from sparkmirror.wire.access import response_error
from sparkmirror.wire.admin.admin import Admin, ConfigChange, NewTopic, TopicSetting
from sparkmirror.wire.fetch.offset_fetcher import Range
from sparkmirror.wire.protocol.error_codes import broker_error
from tests.connect.fakes import FakeAdmin

KEY = "heartbeats.topic.replication.factor"
DENIED = response_error(
    ClientConfig("b", ("h:1",)),
    "create topic 'heartbeats' on 'b'",
    29,
    topic_permission(Operation.CREATE, "heartbeats"),
)


def ensure(admin: FakeAdmin) -> None:
    ensure_internal_topic(cast("Admin", admin), "heartbeats", 3, KEY)


def test_one_partition_compacted() -> None:
    admin = FakeAdmin()
    ensure(admin)
    assert admin.created == [NewTopic("heartbeats", 1, 3, {"cleanup.policy": "compact"})]


def test_a_cluster_that_cannot_create_may_have_it(caplog: pytest.LogCaptureFixture) -> None:
    admin = FakeAdmin()
    admin.refuses["heartbeats"] = broker_error("create topic 'heartbeats' on 'b'", 35)
    with caplog.at_level("INFO"):
        ensure(admin)
    assert "create topic 'heartbeats' on 'b'" in caplog.text


def test_whoever_may_not_create_goes_on_if_it_is_there(caplog: pytest.LogCaptureFixture) -> None:
    admin = FakeAdmin()
    admin.add("heartbeats")
    admin.refuses["heartbeats"] = DENIED
    ensure(admin)
    assert caplog.messages == []


def test_whoever_may_not_create_is_told_what_to_allow_if_it_is_not_there() -> None:
    admin = FakeAdmin()
    admin.refuses["heartbeats"] = DENIED
    with pytest.raises(KafkaError) as raised:
        ensure(admin)
    assert str(raised.value) == (
        "create topic 'heartbeats' on 'b': TOPIC_AUTHORIZATION_FAILED: User:ANONYMOUS lacks CREATE "
        "on topic 'heartbeats' of cluster 'b'; an administrator may create it too: 1 partition, "
        "cleanup.policy=compact; to allow it: kafka-acls.sh --bootstrap-server h:1 --add "
        "--allow-principal User:ANONYMOUS --operation Create --topic heartbeats"
    )


@pytest.mark.parametrize(
    ("code", "text"),
    [
        pytest.param(38, f"set {KEY} to at most the number of brokers", id="replication-factor"),
        pytest.param(44, f"POLICY_VIOLATION.*3 replicas were asked for, see {KEY}", id="policy"),
    ],
)
def test_other_refusals_name_the_key(code: int, text: str) -> None:
    admin = FakeAdmin()
    admin.refuses["heartbeats"] = broker_error("create topic 'heartbeats' on 'b'", code)
    with pytest.raises(KafkaError, match=text):
        ensure(admin)
    assert admin.topics_asked == []  # or the broker would create it, to delete records in time


def test_with_too_few_brokers_there_are_as_many_replicas_as_brokers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    admin = FakeAdmin()
    admin.brokers = 2
    ensure(admin)
    assert admin.created == [NewTopic("heartbeats", 1, 2, {"cleanup.policy": "compact"})]
    (text,) = caplog.messages
    assert text.startswith("'heartbeats' on 'b' has 2 instead of 3 replicas")
    assert f"set {KEY} to at most" in text


def test_a_topic_that_is_known_to_be_missing_must_be_created() -> None:
    admin = FakeAdmin()
    admin.refuses["heartbeats"] = broker_error("create topic 'heartbeats' on 'b'", 29)
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
        ensure_internal_topic(cast("Admin", admin), "heartbeats", 3, KEY, is_missing=True)


def with_policy(policy: str, topic: str, records: int = 5) -> FakeAdmin:
    """A cluster on which somebody created the topic, and wrote to it."""
    admin = FakeAdmin()
    admin.add(topic)
    admin.ranges[TopicPartition(topic, 0)] = Range(0, records)
    setting = TopicSetting("cleanup.policy", policy, 5, read_only=False, sensitive=False)
    admin.settings[topic] = [setting]
    return admin


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
@pytest.mark.parametrize(
    ("topic", "records"),
    [
        ("a.checkpoints.internal", 5),
        ("mm2-offset-syncs.b.internal", 5),
        ("mm2-offset-map.a.internal", 5),
        ("heartbeats", 0),
    ],
)
def test_a_topic_of_ours_that_a_broker_created_is_compacted(
    topic: str, records: int, policy: str, caplog: pytest.LogCaptureFixture
) -> None:
    admin = with_policy(policy, topic, records)
    ensure_internal_topic(cast("Admin", admin), topic, 3, KEY)
    assert admin.config_changes == [(topic, ConfigChange("cleanup.policy", 0, "compact"))]
    named = f"'{topic}' on 'b' has cleanup.policy={policy}"
    assert caplog.messages == [f"{named}, so what it holds is deleted in time: set to compact"]
    caplog.clear()
    ensure_internal_topic(cast("Admin", admin), topic, 3, KEY)
    assert caplog.messages == []


def test_a_topic_that_may_be_somebody_elses_is_left_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    admin = with_policy("delete", "heartbeats")
    ensure(admin)
    assert admin.config_changes == []
    (text,) = caplog.messages
    assert text.startswith("'heartbeats' on 'b' has cleanup.policy=delete, so what it holds is")
    assert text.endswith("--add-config cleanup.policy=compact --entity-name heartbeats")


def test_a_log_that_cannot_be_looked_at_is_not_taken_for_empty() -> None:
    admin = with_policy("delete", "heartbeats")
    admin.ranges[TopicPartition("heartbeats", 0)] = KafkaError("no leader")
    ensure(admin)
    assert admin.config_changes == []


def test_a_repair_that_is_refused_is_told(caplog: pytest.LogCaptureFixture) -> None:
    topic = "a.checkpoints.internal"
    admin = with_policy("delete", topic)
    admin.refuses_altering[topic] = broker_error(f"alter configs of topic '{topic}' on 'b'", 44)
    ensure_internal_topic(cast("Admin", admin), topic, 3, KEY)
    (text,) = caplog.messages
    assert "POLICY_VIOLATION" in text


def test_a_compacted_topic_is_not_touched(caplog: pytest.LogCaptureFixture) -> None:
    admin = with_policy("compact", "a.checkpoints.internal")
    ensure_internal_topic(cast("Admin", admin), "a.checkpoints.internal", 3, KEY)
    assert (admin.config_changes, caplog.messages) == ([], [])


def test_a_topic_whose_settings_are_hidden_is_taken_as_it_is() -> None:
    admin = FakeAdmin()
    admin.hidden["heartbeats"] = broker_error("describe configs of 'heartbeats'", 29)
    ensure(admin)
    assert [topic.name for topic in admin.created] == ["heartbeats"]


def test_one_refusal_does_not_keep_the_others_from_being_created() -> None:
    admin = FakeAdmin()
    admin.refuses["first"] = broker_error("create topic 'first' on 'b'", 38)
    topics = [InternalTopic(cast("Admin", admin), name, 3, KEY) for name in ("first", "second")]
    with pytest.raises(KafkaError, match="create topic 'first'"):
        ensure_internal_topics(topics)
    assert [topic.name for topic in admin.created] == ["second"]
