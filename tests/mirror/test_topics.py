"""Which topics are copied and created, with the cases of Kafka's MirrorSourceConnectorTest."""

from __future__ import annotations

import re

import pytest

from sparkmirror.mirror.filters import DefaultConfigPropertyFilter, DefaultTopicFilter
from sparkmirror.mirror.policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
)
from sparkmirror.mirror.topics import (
    ConfigEntry,
    ConfigSource,
    TopicPlan,
    TopicToCreate,
    creation_configs,
    is_cycle,
    is_remote_topic,
    plan_topics,
    should_replicate_topic,
)

ACCEPT_ALL = DefaultTopicFilter(re.compile(".*"), None)
REJECT_ALL = DefaultTopicFilter(None, None)
DEFAULTS = DefaultTopicFilter(re.compile(".*"), re.compile(r"mm2.*\.internal|.*\.replica|__.*"))
DEFAULT = DefaultReplicationPolicy()
IDENTITY = IdentityReplicationPolicy("source")
IDENTITY_WITHOUT_ALIAS = IdentityReplicationPolicy(None)
UNDERSCORE = DefaultReplicationPolicy("_", "_")

CYCLES = [
    "source.topic1",
    "target.topic1",
    "target.source.topic1",
    "source.target.topic1",
    "target.source.target.topic1",
    "source.target.source.topic1",
    "other.target.topic1",
]
NO_CYCLES = ["topic1", "othersource.topic1", "other.another.topic1"]
HEARTBEAT_CYCLES = [
    "target.heartbeats",
    "target.source.heartbeats",
    "source.target.heartbeats",
    "target.source.target.heartbeats",
    "source.target.source.heartbeats",
]
HEARTBEATS = ["heartbeats", "othersource.heartbeats"]


def replicates(
    topic: str,
    policy: ReplicationPolicy,
    topic_filter: DefaultTopicFilter = ACCEPT_ALL,
    heartbeats: bool = True,
) -> bool:
    return should_replicate_topic(
        topic,
        topic_filter,
        policy,
        heartbeats_replication_enabled=heartbeats,
        source_alias="source",
        target_alias="target",
    )


@pytest.mark.parametrize("topic", CYCLES + HEARTBEAT_CYCLES)
def test_default_policy_rejects_cycles(topic: str) -> None:
    assert is_cycle(topic, DEFAULT, "source", "target")
    assert not replicates(topic, DEFAULT)


@pytest.mark.parametrize("topic", NO_CYCLES + HEARTBEATS)
def test_default_policy_copies_anything_else(topic: str) -> None:
    assert not is_cycle(topic, DEFAULT, "source", "target")
    assert replicates(topic, DEFAULT)


@pytest.mark.parametrize("topic", CYCLES + NO_CYCLES + HEARTBEATS)
@pytest.mark.parametrize("policy", [IDENTITY, IDENTITY_WITHOUT_ALIAS], ids=["alias", "no alias"])
def test_identity_policy_cannot_see_cycles_of_data(topic: str, policy: ReplicationPolicy) -> None:
    assert replicates(topic, policy)


@pytest.mark.parametrize("topic", HEARTBEAT_CYCLES)
@pytest.mark.parametrize("policy", [IDENTITY, IDENTITY_WITHOUT_ALIAS], ids=["alias", "no alias"])
def test_identity_policy_rejects_cycles_of_heartbeats(
    topic: str, policy: ReplicationPolicy
) -> None:
    assert not replicates(topic, policy)


class SourceOnlyPolicy(DefaultReplicationPolicy):
    """Knows a source for every topic but no upstream name, as some users' policies do."""

    def topic_source(self, topic: str) -> str | None:
        return "elsewhere"

    def upstream_topic(self, topic: str) -> str | None:
        return None


def test_is_cycle_ends_when_there_is_no_upstream_topic() -> None:
    assert not is_cycle("topic1", SourceOnlyPolicy(), "source", "target")


@pytest.mark.parametrize(
    ("topic", "topic_filter", "policy", "enabled", "expected"),
    [
        pytest.param("heartbeats", DEFAULTS, DEFAULT, True, True, id="by default"),
        pytest.param("us-west.heartbeats", DEFAULTS, DEFAULT, True, True, id="of other clusters"),
        pytest.param("heartbeats", REJECT_ALL, DEFAULT, True, True, id="despite the filter"),
        pytest.param("us-west.heartbeats", REJECT_ALL, DEFAULT, True, True, id="others despite"),
        pytest.param("us-west.heartbeats", REJECT_ALL, UNDERSCORE, True, False, id="separator"),
        pytest.param("us-west_heartbeats", REJECT_ALL, UNDERSCORE, True, True, id="own separator"),
        pytest.param("heartbeats", REJECT_ALL, DEFAULT, False, False, id="off and rejected"),
        pytest.param("heartbeats", ACCEPT_ALL, DEFAULT, False, True, id="off but accepted"),
        pytest.param("us-west.heartbeats", ACCEPT_ALL, DEFAULT, False, True, id="off, others"),
        pytest.param("heartbeats", REJECT_ALL, IDENTITY, True, True, id="identity"),
    ],
)
def test_heartbeats_are_copied(
    topic: str,
    topic_filter: DefaultTopicFilter,
    policy: ReplicationPolicy,
    enabled: bool,
    expected: bool,
) -> None:
    assert replicates(topic, policy, topic_filter, heartbeats=enabled) is expected


@pytest.mark.parametrize(
    "topic", ["__consumer_offsets", ".hidden", "mm2-configs.A.internal", "A.checkpoints.internal"]
)
def test_internal_topics_are_never_copied(topic: str) -> None:
    assert not replicates(topic, DEFAULT, ACCEPT_ALL)


def test_filter_decides_about_data_topics() -> None:
    only_orders = DefaultTopicFilter(re.compile("orders"), None)
    assert replicates("orders", DEFAULT, only_orders)
    assert not replicates("payments", DEFAULT, only_orders)


@pytest.mark.parametrize(
    ("policy", "topic", "expected"),
    [
        (DEFAULT, "source.orders", True),
        (DEFAULT, "orders", False),
        (DEFAULT, "other.orders", False),
        (DEFAULT, "source.checkpoints.internal", False),
        (DEFAULT, "source.heartbeats", True),
        (IDENTITY, "orders", True),
        (IDENTITY, "other.orders", True),
        (IDENTITY, "source.checkpoints.internal", False),
        (IDENTITY, "heartbeats", False),
        (IDENTITY, "source.heartbeats", True),
    ],
)
def test_remote_topics_are_recognised(
    policy: ReplicationPolicy, topic: str, expected: bool
) -> None:
    assert is_remote_topic(topic, policy, "source") is expected


@pytest.mark.parametrize(
    ("source", "target", "create", "grow"),
    [
        pytest.param({}, {}, {}, {}, id="nothing"),
        pytest.param({"t": 3}, {}, {"source.t": ("t", 3)}, {}, id="missing topic"),
        pytest.param({"t": 3}, {"source.t": 3}, {}, {}, id="present"),
        pytest.param({"t": 3}, {"t": 3}, {"source.t": ("t", 3)}, {}, id="other topic of that name"),
        pytest.param({"t": 3}, {"source.t": 1}, {}, {"source.t": 3}, id="too few partitions"),
        pytest.param({}, {"source.t": 3, "x": 1}, {}, {}, id="target first triggers nothing"),
        pytest.param(
            {"a": 1, "b": 2, "c": 3},
            {"source.b": 1, "source.c": 3},
            {"source.a": ("a", 1)},
            {"source.b": 2},
            id="mixed",
        ),
    ],
)
def test_plan_creates_and_grows(
    source: dict[str, int],
    target: dict[str, int],
    create: dict[str, tuple[str, int]],
    grow: dict[str, int],
) -> None:
    plan = plan_topics(source, target, DEFAULT, "source")
    assert plan == TopicPlan(
        {name: TopicToCreate(*want) for name, want in create.items()}, grow, ()
    )
    assert plan.is_empty is not bool(create or grow)


def test_plan_repeats_until_the_target_has_the_topic() -> None:
    first = plan_topics({"topic": 1}, {}, DEFAULT, "source")
    assert plan_topics({"topic": 1}, {}, DEFAULT, "source") == first
    assert plan_topics({"topic": 1}, {"source.topic": 1}, DEFAULT, "source").is_empty


def test_plan_finds_remote_topics_of_an_alias_with_a_separator() -> None:
    plan = plan_topics({"t": 2}, {"us.west.t": 1}, DEFAULT, "us.west")
    assert (dict(plan.create), dict(plan.grow)) == ({}, {"us.west.t": 2})


def test_plan_keeps_names_with_the_identity_policy() -> None:
    plan = plan_topics({"t": 2, "heartbeats": 1}, {"t": 2, "heartbeats": 1}, IDENTITY, "source")
    assert dict(plan.create) == {"source.heartbeats": TopicToCreate("heartbeats", 1)}


def test_plan_leaves_surplus_partitions_alone_and_says_so() -> None:
    plan = plan_topics({"t": 2}, {"source.t": 5}, DEFAULT, "source")
    assert plan.is_empty
    (warning,) = plan.warnings
    assert "'source.t' has 5 partitions on the target but 2 as 't'" in warning


def test_plan_does_not_create_a_topic_whose_name_is_too_long() -> None:
    plan = plan_topics({"t" * 242: 1, "u" * 243: 1}, {}, DEFAULT, "source")
    assert [want.source_topic[0] for want in plan.create.values()] == ["t"]
    (warning,) = plan.warnings
    assert "has 250 characters, 249 are allowed" in warning


class LowerCasePolicy(IdentityReplicationPolicy):
    """Maps two topics to one name, which a policy must not do."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return topic.lower()


def test_plan_warns_when_two_topics_share_a_remote_name() -> None:
    plan = plan_topics({"orders": 2, "Orders": 4}, {}, LowerCasePolicy("source"), "source")
    assert dict(plan.create) == {"orders": TopicToCreate("orders", 2)}
    (warning,) = plan.warnings
    assert "'Orders' and 'orders' of 'source' are both called 'orders'" in warning


NO_EXCLUDES = DefaultConfigPropertyFilter(None)
SOURCE_DEFAULTS = DefaultConfigPropertyFilter(None, replicate_source_default=True)


@pytest.mark.parametrize(
    ("entry", "set_normally", "set_with_source_defaults"),
    [
        pytest.param(ConfigEntry("k", "v"), True, True, id="topic override"),
        pytest.param(ConfigEntry("k", "v", ConfigSource.DEFAULT), False, True, id="default"),
        pytest.param(ConfigEntry("k", "v", ConfigSource.STATIC_BROKER), False, False, id="static"),
        pytest.param(
            ConfigEntry("k", "v", ConfigSource.DYNAMIC_DEFAULT_BROKER), True, True, id="dynamic"
        ),
        pytest.param(ConfigEntry("k", "v", ConfigSource(99)), True, True, id="later kind"),
        pytest.param(ConfigEntry("k", "v", read_only=True), False, False, id="read only"),
        pytest.param(ConfigEntry("k", None, sensitive=True), False, False, id="sensitive"),
        pytest.param(ConfigEntry("k", "v", sensitive=True), False, False, id="sensitive, shown"),
        pytest.param(ConfigEntry("k", None), False, False, id="no value"),
        pytest.param(ConfigEntry("k", ""), True, True, id="empty value"),
    ],
)
def test_new_topics_get_the_settings_of_their_source(
    entry: ConfigEntry, set_normally: bool, set_with_source_defaults: bool
) -> None:
    expected = {entry.name: entry.value}
    assert creation_configs([entry], NO_EXCLUDES) == (expected if set_normally else {})
    assert creation_configs([entry], SOURCE_DEFAULTS) == (
        expected if set_with_source_defaults else {}
    )


def test_new_topics_do_not_get_excluded_settings() -> None:
    entries = [
        ConfigEntry("name-1", "value-1"),
        ConfigEntry("exclude_param.param1", "value-param1"),
        ConfigEntry("min.insync.replicas", "2"),
    ]
    excludes = DefaultConfigPropertyFilter(
        re.compile(r"min\.insync\.replicas|exclude_param.*"), replicate_source_default=True
    )
    assert creation_configs(entries, excludes) == {"name-1": "value-1"}


def test_a_message_format_is_never_carried_over() -> None:
    entry = ConfigEntry("message.format.version", "0.9.0", ConfigSource.DYNAMIC_TOPIC)
    assert creation_configs([entry], NO_EXCLUDES) == {}
    assert creation_configs([entry], SOURCE_DEFAULTS) == {}
