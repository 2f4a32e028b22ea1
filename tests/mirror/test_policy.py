"""Naming rules, with the cases of Kafka's ReplicationPolicyTest and MirrorClientTest."""

from __future__ import annotations

import pickle
from typing import Self

import pytest

from sparkmirror.errors import ConfigError
from sparkmirror.mirror.policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    make_policy,
)

JAVA = "org.apache.kafka.connect.mirror."


@pytest.mark.parametrize(
    ("separator", "topic", "source", "upstream"),
    [
        (".", "topic1", None, None),
        (".", "source1.topic4", "source1", "topic4"),
        (".", "source1.source2.topic5", "source1", "source2.topic5"),
        (".", "orders.created", "orders", "created"),
        (".", "us-west_1.topic", "us-west_1", "topic"),
        # Java's split: trailing empty pieces vanish, leading ones do not.
        (".", "a.", None, None),
        (".", "a..", None, None),
        (".", ".", None, None),
        (".", "..", None, None),
        (".", "", None, None),
        (".", ".a", "", "a"),
        (".", "..a", "", ".a"),
        (".", "a..b", "a", ".b"),
        (".", "a.b.", "a", "b."),
        ("__", "topic1", None, None),
        ("__", "source1.topic4", None, None),
        ("__", "source1_topic4", None, None),
        ("__", "source1__topic4", "source1", "topic4"),
        ("__", "source3__source4__topic6", "source3", "source4__topic6"),
        ("__", "a___b", "a", "_b"),
        ("", "abc", "a", "bc"),
        ("", "a", None, None),
        ("", "", None, None),
    ],
)
def test_default_policy_reads_remote_names(
    separator: str, topic: str, source: str | None, upstream: str | None
) -> None:
    policy = DefaultReplicationPolicy(separator)
    assert (policy.topic_source(topic), policy.upstream_topic(topic)) == (source, upstream)


@pytest.mark.parametrize(
    ("separator", "remote"), [(".", "us.orders"), ("__", "us__orders"), ("", "usorders")]
)
def test_default_policy_prefixes_the_alias(separator: str, remote: str) -> None:
    assert DefaultReplicationPolicy(separator).format_remote_topic("us", "orders") == remote


@pytest.mark.parametrize(
    ("topic", "original"),
    [("t", "t"), ("a.t", "t"), ("c.b.a.t", "t"), ("a.b.", "b.")],
)
def test_default_policy_walks_to_the_original_topic(topic: str, original: str) -> None:
    assert DefaultReplicationPolicy().original_topic(topic) == original


@pytest.mark.parametrize(
    ("separator", "topic", "expected"),
    [
        (".", "heartbeats", True),
        (".", "source1.heartbeats", True),
        (".", "source2.source1.heartbeats", True),
        (".", "heartbeats!", False),
        (".", "!heartbeats", False),
        (".", "source1heartbeats", False),
        (".", "source1-heartbeats", False),
        ("_", "us-west.heartbeats", False),
        ("_", "us-west_heartbeats", True),
    ],
)
def test_heartbeats_topics_are_recognised(separator: str, topic: str, expected: bool) -> None:
    default = DefaultReplicationPolicy(separator)
    identity = IdentityReplicationPolicy("source", separator)
    assert default.is_heartbeats_topic(topic) is expected
    assert identity.is_heartbeats_topic(topic) is expected


@pytest.mark.parametrize(
    ("internal", "topic", "expected"),
    [
        (".", "source1.checkpoints.internal", True),
        (".", "source2.source1.checkpoints.internal", True),
        (".", "checkpoints.internal", False),
        (".", "checkpoints-internal", False),
        (".", "checkpoints.internal!", False),
        (".", "!checkpoints.internal", False),
        (".", "source1checkpointsinternal", False),
        ("__", "source1__checkpoints__internal", True),
        ("__", "source1.checkpoints.internal", False),
    ],
)
def test_checkpoints_topics_are_recognised(internal: str, topic: str, expected: bool) -> None:
    policy = DefaultReplicationPolicy(internal_separator=internal)
    assert policy.is_checkpoints_topic(topic) is expected


@pytest.mark.parametrize(
    ("internal", "topic", "mm2_internal", "any_internal"),
    [
        (".", "__consumer_offsets", False, True),
        (".", ".hiddentopic", False, True),
        (".", "mm2-offsets.CLUSTER.internal", True, True),
        (".", "mm2-offset-syncs.CLUSTER.internal", True, True),
        (".", "A.checkpoints.internal", True, True),
        (".", "mm2-offsets-CLUSTER-internal", False, False),
        (".", "mm2-offsets_CLUSTER_internal", False, False),
        (".", "my-app.internal", False, False),
        (".", "my-app-internal", False, False),
        (".", "checkpoints.internal", False, False),
        ("_", "mm2-offsets_CLUSTER_internal", True, True),
        ("_", "mm2-offsets.CLUSTER.internal", False, False),
    ],
)
def test_internal_topics_are_recognised(
    internal: str, topic: str, mm2_internal: bool, any_internal: bool
) -> None:
    policy = DefaultReplicationPolicy(internal_separator=internal)
    assert policy.is_mm2_internal_topic(topic) is mm2_internal
    assert policy.is_internal_topic(topic) is any_internal


@pytest.mark.parametrize("class_name", ["DefaultReplicationPolicy", "IdentityReplicationPolicy"])
@pytest.mark.parametrize(
    ("separator", "enabled", "offset_syncs", "checkpoints"),
    [
        ("__", False, "mm2-offset-syncs.CLUSTER.internal", "CLUSTER.checkpoints.internal"),
        ("__", True, "mm2-offset-syncs__CLUSTER__internal", "CLUSTER__checkpoints__internal"),
        (None, False, "mm2-offset-syncs.CLUSTER.internal", "CLUSTER.checkpoints.internal"),
        (None, True, "mm2-offset-syncs.CLUSTER.internal", "CLUSTER.checkpoints.internal"),
    ],
)
def test_internal_names_follow_the_separator_if_enabled(
    class_name: str, separator: str | None, enabled: bool, offset_syncs: str, checkpoints: str
) -> None:
    policy = make_policy(class_name, "A", separator, internal_separator_enabled=enabled)
    assert policy.offset_syncs_topic("CLUSTER") == offset_syncs
    assert policy.checkpoints_topic("CLUSTER") == checkpoints
    assert policy.heartbeats_topic() == "heartbeats"


@pytest.mark.parametrize(
    ("topic", "remote", "source", "upstream"),
    [
        ("topic1", "topic1", "primary", "topic1"),
        ("backup.topic1", "backup.topic1", "primary", "backup.topic1"),
        ("heartbeats", "backup.heartbeats", None, None),
        ("backup.heartbeats", "backup.backup.heartbeats", "backup", "heartbeats"),
        ("my-heartbeats", "backup.my-heartbeats", None, None),
    ],
)
def test_identity_policy_renames_only_heartbeats(
    topic: str, remote: str, source: str | None, upstream: str | None
) -> None:
    policy = IdentityReplicationPolicy("primary")
    assert policy.format_remote_topic("backup", topic) == remote
    assert (policy.topic_source(topic), policy.upstream_topic(topic)) == (source, upstream)
    assert IdentityReplicationPolicy(None).topic_source("topic1") is None


def test_identity_policy_original_topic_is_the_topic_itself() -> None:
    policy = IdentityReplicationPolicy("primary")
    assert policy.original_topic("backup.topic1") == "backup.topic1"
    assert policy.original_topic("b.a.heartbeats") == "heartbeats"


@pytest.mark.parametrize(
    ("class_name", "expected"),
    [
        (f"{JAVA}DefaultReplicationPolicy", DefaultReplicationPolicy),
        ("DefaultReplicationPolicy", DefaultReplicationPolicy),
        (f"{JAVA}IdentityReplicationPolicy", IdentityReplicationPolicy),
        ("IdentityReplicationPolicy", IdentityReplicationPolicy),
        ("com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy", IdentityReplicationPolicy),
        ("sparkmirror.mirror.policy:IdentityReplicationPolicy", IdentityReplicationPolicy),
    ],
)
def test_make_policy_knows_names_of_java_and_python(class_name: str, expected: type) -> None:
    policy = make_policy(class_name, "A", None, internal_separator_enabled=True)
    assert type(policy) is expected
    assert getattr(policy, "source_alias", "A") == "A"


class SuffixPolicy(DefaultReplicationPolicy):
    """A user's policy: `orders` of `us` becomes `orders-from-us`."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}-from-{source_alias}"


class HalfPolicy:
    """Has a constructor but none of the methods."""

    @classmethod
    def from_settings(cls, source_alias: str, separator: str, internal_separator: str) -> Self:
        return cls()


NOT_A_CLASS = 1


def test_make_policy_loads_a_users_class_with_its_settings() -> None:
    policy = make_policy(f"{__name__}:SuffixPolicy", "us", "-", internal_separator_enabled=False)
    assert isinstance(policy, SuffixPolicy)
    assert policy.format_remote_topic("us", "orders") == "orders-from-us"
    assert (policy.separator, policy.internal_separator) == ("-", ".")


@pytest.mark.parametrize(
    ("class_name", "reason"),
    [
        ("com.example.MyPolicy", "Java classes cannot be loaded"),
        ("", "unknown policy"),
        (":Policy", "not of the form"),
        ("no_such_module:Policy", "No module named"),
        ("..policy:Policy", "not of the form"),
        (f"{__name__}:Missing", "has no attribute 'Missing'"),
        (f"{__name__}:NOT_A_CLASS", "not a class"),
        (f"{__name__}:HalfPolicy", "lacks methods"),
    ],
)
def test_make_policy_says_why_a_class_cannot_be_used(class_name: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        make_policy(class_name, "A", None, internal_separator_enabled=True)
    assert caught.value.key == "replication.policy.class"
    assert "module:Class" in caught.value.remedy


@pytest.mark.parametrize(
    "policy", [DefaultReplicationPolicy("__", "_"), IdentityReplicationPolicy("A", "__", "_")]
)
def test_policies_survive_pickling(policy: ReplicationPolicy) -> None:
    copy = pickle.loads(pickle.dumps(policy))
    assert vars(copy) == vars(policy)
    assert type(copy) is type(policy)
