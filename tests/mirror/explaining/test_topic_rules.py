"""An explanation of a topic agrees with the mirror, and its advice works."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config.files.properties import parse_entries
from sparkmirror.config.findings import Findings, Settings
from sparkmirror.config.mirror_configs import SourceConfig, parse_source
from sparkmirror.mirror.explaining.explanation import RuleResult, Spelling
from sparkmirror.mirror.explaining.topic_rules import TopicExplainer, TopicFacts
from sparkmirror.mirror.filters import DefaultTopicFilter, make_topic_filter
from sparkmirror.mirror.policy import flow_policy
from sparkmirror.mirror.topics import plan_topics, should_replicate_topic

BASE = {
    "name": "copy",
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:1",
}
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


class OnlyPaid(DefaultTopicFilter):
    """A filter of a user's own."""

    def should_replicate_topic(self, topic: str) -> bool:
        return topic.startswith("paid")


def source_config(**more: str) -> SourceConfig:
    """`topics_exclude=...` stands for the key `topics.exclude`."""
    return config_of({key.replace("__", "-").replace("_", "."): v for key, v in more.items()})


def config_of(props: dict[str, str]) -> SourceConfig:
    connector = Settings(BASE | props, Findings())
    config = parse_source(connector, Settings({"bootstrap.servers": "b:1"}, Findings()))
    connector.findings.raise_errors()
    return config


def mirrors(config: SourceConfig, topic: str) -> bool:
    """What the source connector decides."""
    return config.enabled and should_replicate_topic(
        topic,
        make_topic_filter(config),
        flow_policy(config),
        heartbeats_replication_enabled=config.heartbeats_replication_enabled,
        source_alias=config.source_alias,
        target_alias=config.target_alias,
    )


WORDS = st.sampled_from(
    ["A", "B", "C", "orders", "heartbeats", "mm2", "internal", "checkpoints", "replica", "__x", ""]
)
NAMES = st.builds(
    lambda words, joiner: joiner.join(words),
    st.lists(WORDS, min_size=1, max_size=4),
    st.sampled_from([".", "_", "-", ""]),
).filter(bool)
PATTERNS = st.lists(
    st.sampled_from(
        [".*", "orders", "A.*", "B\\..*", ".*heartbeats", "__.*", "mm2.*\\.internal", "x|y", ".+s"]
    ),
    max_size=3,
).map(",".join)
FLAGS = st.sampled_from(["true", "false"])
CONFIGS = st.fixed_dictionaries(
    {"topics": PATTERNS},
    optional={
        "topics.exclude": PATTERNS,
        "heartbeats.replication.enabled": FLAGS,
        "enabled": FLAGS,
        "replication.policy.class": st.sampled_from(
            ["DefaultReplicationPolicy", "IdentityReplicationPolicy"]
        ),
        "replication.policy.separator": st.sampled_from([".", "_", "--"]),
        "topic.filter.class": st.just(f"{__name__}:OnlyPaid"),
    },
)


@given(CONFIGS, st.one_of(NAMES, st.just("paid")))
@settings(max_examples=400, deadline=None)
def test_the_verdict_is_that_of_the_mirror(props: dict[str, str], topic: str) -> None:
    config = config_of(props)
    found = TopicExplainer(config).explain(topic)
    assert (found.stopped_by is None) is mirrors(config, topic)
    facts = TopicFacts(source_partitions=2, target_partitions=0)
    known = TopicExplainer(config).explain(topic, facts)
    assert (known.verdict is RuleResult.PASSES) is mirrors(config, topic)


@given(CONFIGS, NAMES)
@settings(max_examples=300, deadline=None)
def test_what_comes_after_the_rule_that_stops_is_not_reached(
    props: dict[str, str], topic: str
) -> None:
    results = [check.result for check in TopicExplainer(config_of(props)).explain(topic).rules]
    if RuleResult.STOPS in results:
        at = results.index(RuleResult.STOPS)
        assert set(results[at + 1 :]) <= {RuleResult.NOT_REACHED}
    assert results.count(RuleResult.STOPS) <= 1


@given(CONFIGS, NAMES)
@settings(max_examples=400, deadline=None)
def test_the_line_to_write_lets_the_topic_pass_the_rule(props: dict[str, str], topic: str) -> None:
    found = TopicExplainer(config_of(props)).explain(topic)
    stop, change = found.stopped_by, found.change
    if stop is None or change is None or stop.rule == "topic.filter.class":
        return
    (entry,) = parse_entries(change.line)
    after = TopicExplainer(config_of(props | {entry.key: entry.value})).explain(topic)
    assert entry.key == change.key
    assert after.stopped_by is None or after.stopped_by.rule != stop.rule
    # With another separator, what is internal or a heartbeats topic changes too.
    if after.stopped_by is not None and stop.rule != "cycle":
        assert "after that" in change.note


@pytest.mark.parametrize(
    ("props", "topic", "rule", "line"),
    [
        ({"enabled": "false"}, "orders", "enabled", "A->B.enabled = true"),
        ({"topics": "orders"}, "pay", "topics", "A->B.topics = orders, pay"),
        ({"topics": ""}, "pay", "topics", "A->B.topics = pay"),
        (
            {"topics": "pay", "topics.exclude": "x\\.y, p.*"},
            "pay",
            "topics.exclude",
            "A->B.topics.exclude = x\\\\.y",
        ),
        (
            {"topics.exclude": ""},
            "B.orders",
            "cycle",
            "A->B.replication.policy.separator = _",
        ),
        ({"topics.exclude": "none"}, "__consumer_offsets", "internal", None),
        ({"topics.exclude": "none"}, "mm2-offsets.A.internal", "internal", None),
        ({}, "x" * 248, "replication.policy.class", None),
    ],
    ids=lambda each: str(each)[:40],
)
def test_each_rule_names_the_key(
    props: dict[str, str], topic: str, rule: str, line: str | None
) -> None:
    found = TopicExplainer(config_of(props), Spelling("A->B.")).explain(topic)
    assert found.stopped_by is not None
    assert found.stopped_by.rule == rule
    if line is not None:
        assert found.change is not None
        assert found.change.line == line


def test_the_names_of_the_file_are_used() -> None:
    spelling = Spelling("A->B.", {"topics": "topics"})
    found = TopicExplainer(source_config(topics="orders"), spelling).explain("pay")
    assert found.change is not None
    assert found.change.line == "topics = orders, pay"
    assert "topics=orders" in found.rules[1].value


def test_a_connectors_settings_are_written_as_json() -> None:
    spelling = Spelling(is_json=True)
    found = TopicExplainer(source_config(topics="a\\.b"), spelling).explain("pay")
    assert found.change is not None
    assert found.change.line == '"topics": "a\\\\.b, pay"'


@pytest.mark.parametrize(
    ("facts", "verdict", "text"),
    [
        (TopicFacts(), RuleResult.UNKNOWN, "was not asked"),
        (TopicFacts(0, 0), RuleResult.STOPS, "shows no topic 'orders'"),
        (TopicFacts(3, 0), RuleResult.PASSES, "the next refresh creates it"),
        (TopicFacts(3, 2), RuleResult.PASSES, "the next refresh adds the others"),
        (TopicFacts(3, 3), RuleResult.PASSES, "'A.orders' has 3 partitions"),
        (TopicFacts(3, 4), RuleResult.PASSES, "the additional ones stay unused"),
        (TopicFacts(3, 0, "POLICY_VIOLATION"), RuleResult.STOPS, "POLICY_VIOLATION"),
        (TopicFacts(3, 3, same_remote="b"), RuleResult.STOPS, "both called 'A.orders'"),
    ],
)
def test_facts_of_the_clusters(facts: TopicFacts, verdict: RuleResult, text: str) -> None:
    found = TopicExplainer(source_config()).explain("orders", facts)
    assert found.verdict is verdict
    assert any(text in check.text for check in found.rules)


def test_a_topic_that_is_not_there_is_said_even_if_a_filter_stops_it() -> None:
    found = TopicExplainer(source_config(topics="x")).explain("orders", TopicFacts(0, 0))
    assert "'A' shows no such topic either" in found.summary


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(1, 3), min_size=1))
def test_the_identity_policy_keeps_names(counts: dict[str, int]) -> None:
    config = source_config(replication_policy_class=IDENTITY)
    plan = plan_topics(counts, {}, flow_policy(config), "A")
    for topic in counts:
        assert TopicExplainer(config).explain(topic).target in plan.create


def test_as_json() -> None:
    found = TopicExplainer(source_config(topics="orders")).explain("pay").as_json()
    assert found["verdict"] == "stops"
    assert [check["rule"] for check in found["rules"]] == [
        "enabled",
        "topics",
        "topics.exclude",
        "heartbeats.replication.enabled",
        "internal",
        "cycle",
        "replication.policy.class",
        "source",
        "target",
    ]
    assert found["change"] == {"key": "topics", "line": "topics = orders, pay", "note": ""}
