"""Creation of internal topics, and which refusals are survived."""

from __future__ import annotations

from typing import cast

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.connect.internal_topics import (
    InternalTopic,
    ensure_internal_topic,
    ensure_internal_topics,
)
from sparkmirror.errors import KafkaError
from sparkmirror.wire.access import Operation, answer_error, topic_right
from sparkmirror.wire.admin import Admin, NewTopic, TopicSetting
from sparkmirror.wire.error_codes import broker_error
from tests.connect.fakes import FakeAdmin

KEY = "heartbeats.topic.replication.factor"
DENIED = answer_error(
    ClientConfig("b", ("h:1",)),
    "create topic 'heartbeats' on 'b'",
    29,
    topic_right(Operation.CREATE, "heartbeats"),
)


def ensure(admin: FakeAdmin) -> None:
    ensure_internal_topic(cast(Admin, admin), "heartbeats", 3, KEY)


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
    assert admin.topics_asked == ["heartbeats"]


def test_a_topic_that_is_known_to_be_missing_must_be_created() -> None:
    admin = FakeAdmin()
    admin.refuses["heartbeats"] = broker_error("create topic 'heartbeats' on 'b'", 29)
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
        ensure_internal_topic(cast(Admin, admin), "heartbeats", 3, KEY, is_missing=True)


@pytest.mark.parametrize(
    ("policy", "is_said"), [("delete", True), ("compact,delete", True), ("compact", False)]
)
def test_a_topic_that_loses_records_in_time_is_named(
    policy: str, is_said: bool, caplog: pytest.LogCaptureFixture
) -> None:
    admin = FakeAdmin()
    setting = TopicSetting("cleanup.policy", policy, 1, read_only=False, sensitive=False)
    admin.settings["heartbeats"] = [setting]
    ensure(admin)
    said = f"'heartbeats' has cleanup.policy={policy}, so what it holds is deleted" in caplog.text
    assert said is is_said


def test_a_topic_whose_settings_are_hidden_is_taken_as_it_is() -> None:
    admin = FakeAdmin()
    admin.hidden["heartbeats"] = broker_error("describe configs of 'heartbeats'", 29)
    ensure(admin)
    assert [topic.name for topic in admin.created] == ["heartbeats"]


def test_one_refusal_does_not_keep_the_others_from_being_created() -> None:
    admin = FakeAdmin()
    admin.refuses["first"] = broker_error("create topic 'first' on 'b'", 38)
    topics = [InternalTopic(cast(Admin, admin), name, 3, KEY) for name in ("first", "second")]
    with pytest.raises(KafkaError, match="create topic 'first'"):
        ensure_internal_topics(topics)
    assert [topic.name for topic in admin.created] == ["second"]
