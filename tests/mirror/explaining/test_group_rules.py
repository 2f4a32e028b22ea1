"""An explanation of a group agrees with the mirror, and its advice works."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config.files.properties import parse_entries
from sparkmirror.config.findings import Findings, Settings
from sparkmirror.config.mirror_configs import CheckpointConfig, parse_checkpoint
from sparkmirror.mirror.checkpoints import CommittedOffset, NoCheckpoint
from sparkmirror.mirror.explaining.explanation import RuleResult, Spelling
from sparkmirror.mirror.explaining.group_rules import GroupExplainer, GroupFacts
from sparkmirror.mirror.filters import make_group_filter, make_topic_filter
from sparkmirror.mirror.group_offsets import (
    GroupListing,
    GroupPlan,
    NotWritten,
    select_consuming,
    select_groups,
)
from sparkmirror.types import TopicPartition

BASE = {
    "name": "groups",
    "connector.class": "MirrorCheckpointConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:1",
}
ON = {"sync.group.offsets.enabled": "true"}
ORDERS = TopicPartition("orders", 0)
REMOTE = TopicPartition("A.orders", 0)
WRITES = GroupPlan({REMOTE: CommittedOffset(5)}, {})
CONSUMER = GroupListing("billing")


def config_of(props: dict[str, str]) -> CheckpointConfig:
    connector = Settings(BASE | props, Findings())
    config = parse_checkpoint(connector, Settings({"bootstrap.servers": "b:1"}, Findings()))
    connector.findings.raise_errors()
    return config


NAMES = st.sampled_from(
    ["billing", "connect-sink", "console-consumer-1", "__g", "a b", "x,y", "g[1]", "orders"]
)
PATTERNS = st.lists(
    st.sampled_from([".*", "billing", "connect-.*", "__.*", "x.y", "g\\[1\\]"]), max_size=3
).map(",".join)
FLAGS = st.sampled_from(["true", "false"])
CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "groups": PATTERNS,
        "groups.exclude": PATTERNS,
        "topics": PATTERNS.map(lambda text: text.replace("billing", "orders")),
        "emit.checkpoints.enabled": FLAGS,
        "emit.offset-syncs.enabled": FLAGS,
        "enabled": FLAGS,
        "sync.group.offsets.enabled": FLAGS,
    },
)
TOPICS = st.sets(st.sampled_from(["orders", "__t", "A.x"])).map(
    lambda topics: frozenset(TopicPartition(topic, 0) for topic in topics)
)


@given(CONFIGS, NAMES, TOPICS, st.sampled_from(["consumer", "connect", ""]))
@settings(max_examples=400, deadline=None)
def test_the_verdict_is_that_of_the_mirror(
    props: dict[str, str], group: str, committed: frozenset[TopicPartition], protocol: str
) -> None:
    config = config_of(props)
    listing = GroupListing(group, protocol)
    accepted = select_groups([listing], make_group_filter(config)).groups
    consuming = select_consuming({group: committed}, make_topic_filter(config)).groups
    is_followed = bool(accepted and consuming) and config.is_on
    facts = GroupFacts(listing, True, committed, {}, WRITES)
    found = GroupExplainer(config).explain(group, facts)
    is_written = is_followed and config.sync_group_offsets_enabled
    assert (found.verdict is RuleResult.PASSES) is is_written
    assert ("is not mirrored" in found.summary) is not is_followed


@given(CONFIGS, NAMES)
@settings(max_examples=300, deadline=None)
def test_the_line_to_write_lets_the_group_pass_the_rule(props: dict[str, str], group: str) -> None:
    found = GroupExplainer(config_of(props)).explain(group)
    stop, change = found.stopped_by, found.change
    if stop is None or change is None:
        return
    (entry,) = parse_entries(change.line)
    after = GroupExplainer(config_of(props | {entry.key: entry.value})).explain(group)
    # Three keys have to be true for checkpoints: each takes its own step.
    again = after.stopped_by
    assert again is None or again.rule != stop.rule or again.text != stop.text


@pytest.mark.parametrize(
    ("props", "facts", "rule", "text"),
    [
        ({"emit.checkpoints.enabled": "false"}, {}, "emit.checkpoints.enabled", "is false"),
        ({}, {"is_listed": False}, "source", "lists no consumer group"),
        ({}, {"listing": GroupListing("billing", "connect")}, "protocol", "another protocol"),
        ({"groups": "x"}, {}, "groups", "no expression of A->B.groups"),
        ({"groups.exclude": "b.*"}, {}, "groups.exclude", "b.* of A->B.groups.exclude"),
        ({"topics": "x"}, {}, "offsets", "has offsets in orders"),
        ({}, {"committed": ()}, "offsets", "no offset at all"),
        ({}, {"skipped": {ORDERS: NoCheckpoint.TOO_OLD}}, "checkpoints", "behind all known"),
        ({"sync.group.offsets.enabled": "false"}, {}, "sync.group.offsets.enabled", "is false"),
        ({}, {"plan": GroupPlan({}, {}, reason=NotWritten.ACTIVE)}, "members", "stop its consumer"),
        (
            {},
            {"plan": GroupPlan({}, {REMOTE: NotWritten.BEYOND_END})},
            "target",
            "beyond the end",
        ),
    ],
)
def test_each_rule_stops_a_group(
    props: dict[str, str], facts: dict[str, object], rule: str, text: str
) -> None:
    known: dict[str, object] = {
        "listing": CONSUMER,
        "is_listed": True,
        "committed": (ORDERS,),
        "skipped": {},
        "plan": WRITES,
    }
    explainer = GroupExplainer(config_of(ON | props), Spelling("A->B."))
    found = explainer.explain("billing", GroupFacts(**{**known, **facts}))  # type: ignore[arg-type]
    assert found.stopped_by is not None
    assert found.stopped_by.rule == rule
    assert text in found.stopped_by.text


def test_offsets_that_are_there_are_as_good_as_written() -> None:
    plan = GroupPlan({}, {REMOTE: NotWritten.UNCHANGED})
    facts = GroupFacts(CONSUMER, True, (ORDERS,), {ORDERS: NoCheckpoint.UNCHANGED}, plan)
    found = GroupExplainer(config_of(ON)).explain("billing", facts)
    assert found.verdict is RuleResult.PASSES


def test_without_a_cluster_the_verdict_is_open() -> None:
    found = GroupExplainer(config_of(ON)).explain("billing")
    assert found.verdict is RuleResult.UNKNOWN
    assert "would be translated" in found.summary
    off = GroupExplainer(config_of({})).explain("billing")
    assert off.change is not None
    assert off.change.line == "sync.group.offsets.enabled = true"
    assert "gets checkpoints, but" in off.summary
