"""Filters that settings name: MirrorMaker 2's own and a user's in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import pytest

from sparkmirror.config.mm2 import FlowConfig
from sparkmirror.errors import ConfigError, ConfigErrors
from sparkmirror.mirror.filters import (
    ConfigPropertyFilter,
    DefaultConfigPropertyFilter,
    DefaultGroupFilter,
    DefaultTopicFilter,
    TopicFilter,
    make_config_property_filter,
    make_group_filter,
    make_topic_filter,
)
from tests.flows import make_flow

JAVA = "org.apache.kafka.connect.mirror."
HERE = __name__
MAKERS: dict[str, Callable[[FlowConfig], Any]] = {
    "topic.filter.class": lambda flow: make_topic_filter(flow.source),
    "group.filter.class": lambda flow: make_group_filter(flow.checkpoint),
    "config.property.filter.class": lambda flow: make_config_property_filter(flow.source),
}
BUILT_IN = {
    "topic.filter.class": DefaultTopicFilter,
    "group.filter.class": DefaultGroupFilter,
    "config.property.filter.class": DefaultConfigPropertyFilter,
}
each_key = pytest.mark.parametrize("key", MAKERS)


class ShortTopics(TopicFilter):
    """A user's own: topics with short names."""

    def __init__(self, longest: int) -> None:
        self.longest = longest

    @classmethod
    def from_settings(cls, props: Mapping[str, str]) -> Self:
        return cls(int(props["short.topics.longest"]))

    def should_replicate_topic(self, topic: str) -> bool:
        return len(topic) <= self.longest


class NoTests(DefaultTopicFilter):
    """The built-in one with an exception."""

    def should_replicate_topic(self, topic: str) -> bool:
        return not topic.endswith("-test") and super().should_replicate_topic(topic)


class OnlyRetention(ConfigPropertyFilter):
    """A user's own, which leaves the question about defaults to the contract."""

    @classmethod
    def from_settings(cls, props: Mapping[str, str]) -> Self:
        return cls()

    def should_replicate_config_property(self, name: str) -> bool:
        return name.startswith("retention")


class Half:
    """Can be created, and implements nothing."""

    @classmethod
    def from_settings(cls, props: Mapping[str, str]) -> Self:
        return cls()


NOT_A_CLASS = 1


@each_key
@pytest.mark.parametrize("prefix", [JAVA, ""], ids=["full", "short"])
def test_the_filters_of_mirror_maker_2_are_known_by_their_java_names(
    key: str, prefix: str, tmp_path: Path
) -> None:
    built_in = BUILT_IN[key]
    flow = make_flow(tmp_path, {f"a->b.{key}": f"{prefix}{built_in.__name__}"})
    assert type(MAKERS[key](flow)) is built_in
    assert type(MAKERS[key](make_flow(tmp_path))) is built_in


def test_built_in_filters_read_the_settings_of_the_flow(tmp_path: Path) -> None:
    settings = {
        "a->b.topics": "orders.*, payments",
        "a->b.topics.exclude": ".*-old",
        "a->b.groups": "billing.*",
        "a->b.groups.exclude": ".*-dev",
        "a->b.config.properties.exclude": r"segment\\..*",
        "a->b.use.defaults.from": "source",
    }
    flow = make_flow(tmp_path, settings)
    for config in (flow.source, flow.checkpoint):
        topics = make_topic_filter(config)
        wanted = [t for t in ("orders-1", "payments", "orders-old", "x") if _copies(topics, t)]
        assert wanted == ["orders-1", "payments"]
    groups = make_group_filter(flow.checkpoint)
    names = ("billing", "billing-dev", "other")
    assert [name for name in names if groups.should_replicate_group(name)] == ["billing"]
    properties = make_config_property_filter(flow.source)
    assert not properties.should_replicate_config_property("segment.bytes")
    assert properties.should_replicate_config_property("min.insync.replicas")
    assert properties.should_replicate_source_default("retention.ms")


def test_defaults_are_those_of_the_settings(tmp_path: Path) -> None:
    flow = make_flow(tmp_path)
    assert not make_topic_filter(flow.source).should_replicate_topic("mm2-offsets.a.internal")
    assert not make_group_filter(flow.checkpoint).should_replicate_group("connect-x")
    properties = make_config_property_filter(flow.source)
    assert not properties.should_replicate_config_property("min.insync.replicas")
    assert not properties.should_replicate_source_default("retention.ms")


def test_a_users_filter_gets_all_settings_of_the_connector(tmp_path: Path) -> None:
    settings = {
        "a->b.topic.filter.class": f"{HERE}:ShortTopics",
        "a->b.short.topics.longest": "3",
    }
    flow = make_flow(tmp_path, settings)
    for config in (flow.source, flow.checkpoint):
        topics = make_topic_filter(config)
        assert (_copies(topics, "abc"), _copies(topics, "abcd")) == (True, False)


def test_a_users_filter_may_extend_a_built_in_one(tmp_path: Path) -> None:
    settings = {"a->b.topic.filter.class": f"{HERE}:NoTests", "a->b.topics": "orders.*"}
    topics = make_topic_filter(make_flow(tmp_path, settings).source)
    assert [t for t in ("orders", "orders-test", "x") if _copies(topics, t)] == ["orders"]


def test_a_users_property_filter_does_not_copy_defaults_unless_it_says_so(tmp_path: Path) -> None:
    settings = {"a->b.config.property.filter.class": f"{HERE}:OnlyRetention"}
    properties = make_config_property_filter(make_flow(tmp_path, settings).source)
    assert properties.should_replicate_config_property("retention.ms")
    assert not properties.should_replicate_source_default("retention.ms")


@each_key
@pytest.mark.parametrize(
    ("class_name", "reason"),
    [
        ("no_such_module:Filter", "No module named"),
        (f"{HERE}:Missing", "has no attribute 'Missing'"),
        (f"{HERE}:NOT_A_CLASS", "not a class with a from_settings method"),
        (f"{HERE}:Half", "it lacks methods of"),
    ],
)
def test_a_class_that_cannot_be_used_says_why(
    key: str, class_name: str, reason: str, tmp_path: Path
) -> None:
    flow = make_flow(tmp_path, {f"a->b.{key}": class_name})
    with pytest.raises(ConfigError, match=reason) as caught:
        MAKERS[key](flow)
    assert (caught.value.key, caught.value.value) == (key, class_name)
    contract = BUILT_IN[key].__name__.removeprefix("Default")
    assert caught.value.remedy.endswith(f"subclass of sparkmirror.mirror.filters.{contract}")


@each_key
def test_an_unknown_java_class_is_rejected_with_the_way_to_port_it(
    key: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigErrors, match=r"com\.example\.MyFilter.*Python class .*module:Class"):
        make_flow(tmp_path, {f"a->b.{key}": "com.example.MyFilter"})


def _copies(topics: TopicFilter, topic: str) -> bool:
    return topics.should_replicate_topic(topic)
