"""Which topics, topic settings and consumer groups a flow copies.

Runs on: worker.
Mirrors: TopicFilter, GroupFilter and ConfigPropertyFilter of org.apache.kafka.connect.mirror, and
their three default classes (4.4).

The default classes read regular expressions: a list of patterns is joined into one expression that
must match the whole name. An empty list becomes None, which matches nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

from sparkmirror.config.config_def import Definition
from sparkmirror.config.keys.classes import (
    DEFAULT_CONFIG_PROPERTY_FILTER,
    DEFAULT_GROUP_FILTER,
    DEFAULT_TOPIC_FILTER,
)
from sparkmirror.config.keys.connector_keys import (
    CHECKPOINT_KEYS,
    FRAMEWORK_KEYS,
    SOURCE_KEYS,
    TOPIC_FILTER_KEYS,
)
from sparkmirror.config.mirror_configs import CheckpointConfig, SourceConfig
from sparkmirror.config.patterns.java_regex import compile_patterns
from sparkmirror.config.patterns.name_patterns import Matcher
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.user_classes import load_user_class, no_exit

_TOPIC_FILTER_KEY = SOURCE_KEYS["topic.filter.class"].name
_GROUP_FILTER_KEY = CHECKPOINT_KEYS["group.filter.class"].name
_CONFIG_PROPERTY_FILTER_KEY = SOURCE_KEYS["config.property.filter.class"].name
_GROUP_KEYS = Definition(CHECKPOINT_KEYS["groups"], CHECKPOINT_KEYS["groups.exclude"])
_PROPERTY_KEYS = Definition(
    SOURCE_KEYS["config.properties.exclude"], FRAMEWORK_KEYS["use.defaults.from"]
)


@runtime_checkable
class TopicFilter(Protocol):
    """Chooses topics of the source.

    A custom filter is a subclass of this class or of `DefaultTopicFilter`, named as `module:Class`.
    Obligations of all three kinds of filters: return at once, without I/O; the result may change
    with time and takes effect with the next refresh.
    """

    @classmethod
    @abstractmethod
    def from_settings(cls, props: Mapping[str, str]) -> Self:
        """Build the filter; called once per connector start, with all settings it was given."""

    @abstractmethod
    def should_replicate_topic(self, topic: str) -> bool:
        """Whether to copy `topic`; called for all topics of the source at each refresh.

        Internal topics and cycles are never copied, regardless of the result.
        """


@runtime_checkable
class GroupFilter(Protocol):
    """Chooses consumer groups of the source."""

    @classmethod
    @abstractmethod
    def from_settings(cls, props: Mapping[str, str]) -> Self:
        """Build the filter; called once per connector start, with all settings it was given."""

    @abstractmethod
    def should_replicate_group(self, group: str) -> bool:
        """Whether to translate offsets of `group`; called for all groups at each refresh."""


@runtime_checkable
class ConfigPropertyFilter(Protocol):
    """Chooses settings of topics."""

    @classmethod
    @abstractmethod
    def from_settings(cls, props: Mapping[str, str]) -> Self:
        """Build the filter; called once per connector start, with all settings it was given."""

    @abstractmethod
    def should_replicate_config_property(self, name: str) -> bool:
        """Whether remote topics follow their source topics in the setting `name`."""

    def should_replicate_source_default(self, name: str) -> bool:
        """Whether a remote topic gets the value that its source topic has only by default."""
        return False


@dataclass(frozen=True, slots=True)
class DefaultTopicFilter(TopicFilter):
    """Settings `topics` and `topics.exclude`: an exclude wins over an include."""

    include: Matcher | None
    exclude: Matcher | None

    @classmethod
    def from_settings(cls, props: Mapping[str, str]) -> Self:
        values = TOPIC_FILTER_KEYS.parse(props)
        return cls(*(compile_patterns(values[key.name]) for key in TOPIC_FILTER_KEYS))

    def should_replicate_topic(self, topic: str) -> bool:
        return self.includes(topic) and not self.excludes(topic)

    def includes(self, topic: str) -> bool:
        """The first half of the rule: whether `topics` accepts the name."""
        return _matches(self.include, topic)

    def excludes(self, topic: str) -> bool:
        """The second half: whether `topics.exclude` takes it out again."""
        return _matches(self.exclude, topic)


@dataclass(frozen=True, slots=True)
class DefaultGroupFilter(GroupFilter):
    """Settings `groups` and `groups.exclude`: an exclude wins over an include."""

    include: Matcher | None
    exclude: Matcher | None

    @classmethod
    def from_settings(cls, props: Mapping[str, str]) -> Self:
        values = _GROUP_KEYS.parse(props)
        return cls(*(compile_patterns(values[key.name]) for key in _GROUP_KEYS))

    def should_replicate_group(self, group: str) -> bool:
        return self.includes(group) and not self.excludes(group)

    def includes(self, group: str) -> bool:
        """The first half of the rule: whether `groups` accepts the name."""
        return _matches(self.include, group)

    def excludes(self, group: str) -> bool:
        """The second half: whether `groups.exclude` takes it out again."""
        return _matches(self.exclude, group)


@dataclass(frozen=True, slots=True)
class DefaultConfigPropertyFilter(ConfigPropertyFilter):
    """Settings `config.properties.exclude` (all others are copied) and `use.defaults.from`."""

    exclude: Matcher | None
    replicate_source_default: bool = False

    @classmethod
    def from_settings(cls, props: Mapping[str, str]) -> Self:
        patterns, defaults_from = _PROPERTY_KEYS.parse(props).values()
        # Any value except "source" means the target's, as in MirrorMaker 2.
        return cls(compile_patterns(patterns), defaults_from == "source")

    def should_replicate_config_property(self, name: str) -> bool:
        return not _matches(self.exclude, name)

    def should_replicate_source_default(self, name: str) -> bool:
        return self.replicate_source_default


def make_topic_filter(config: SourceConfig | CheckpointConfig) -> TopicFilter:
    """Build the filter that `topic.filter.class` names.

    Raises:
        ConfigError: no such class, or it is not a `TopicFilter`.
    """
    built_in = {DEFAULT_TOPIC_FILTER: DefaultTopicFilter}
    wanted = _Wanted(_TOPIC_FILTER_KEY, config.topic_filter_class, TopicFilter, built_in)
    made: TopicFilter = _make(wanted, config.settings)
    return made


def describe_topic_filter(config: SourceConfig | CheckpointConfig) -> str:
    """The settings that choose topics, for messages."""
    if config.topic_filter_class != DEFAULT_TOPIC_FILTER:
        return f"{_TOPIC_FILTER_KEY}={config.topic_filter_class}"
    return _lists(TOPIC_FILTER_KEYS, (config.topics, config.topics_exclude))


def describe_group_filter(config: CheckpointConfig) -> str:
    """The settings that choose groups, for messages."""
    if config.group_filter_class != DEFAULT_GROUP_FILTER:
        return f"{_GROUP_FILTER_KEY}={config.group_filter_class}"
    return _lists(_GROUP_KEYS, (config.groups, config.groups_exclude))


def _lists(keys: Definition, values: Iterable[tuple[str, ...]]) -> str:
    return "; ".join(
        f"{key.name}={','.join(patterns)}" for key, patterns in zip(keys, values, strict=True)
    )


def make_group_filter(config: CheckpointConfig) -> GroupFilter:
    """Build the filter that `group.filter.class` names.

    Raises:
        ConfigError: no such class, or it is not a `GroupFilter`.
    """
    built_in = {DEFAULT_GROUP_FILTER: DefaultGroupFilter}
    wanted = _Wanted(_GROUP_FILTER_KEY, config.group_filter_class, GroupFilter, built_in)
    made: GroupFilter = _make(wanted, config.settings)
    return made


def make_config_property_filter(config: SourceConfig) -> ConfigPropertyFilter:
    """Build the filter that `config.property.filter.class` names.

    Raises:
        ConfigError: no such class, or it is not a `ConfigPropertyFilter`.
    """
    wanted = _Wanted(
        _CONFIG_PROPERTY_FILTER_KEY,
        config.config_property_filter_class,
        ConfigPropertyFilter,
        {DEFAULT_CONFIG_PROPERTY_FILTER: DefaultConfigPropertyFilter},
    )
    made: ConfigPropertyFilter = _make(wanted, config.settings)
    return made


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A class that a setting names: the key, its value, and what it must be."""

    key: str
    class_name: str
    contract: Any
    built_in: Mapping[str, Any]

    def refuse(self, reason: str) -> ConfigError:
        known = ", ".join(self.built_in)
        contract = f"{__name__}.{self.contract.__name__}"
        remedy = f"use {known}, or module:Class of a Python subclass of {contract}"
        return ConfigError(self.key, self.class_name, reason, remedy)


def _make(wanted: _Wanted, props: Mapping[str, str]) -> Any:
    found = wanted.built_in.get(wanted.class_name)
    filter_class = found or load_user_class("filter", wanted.class_name, wanted.refuse)
    with no_exit(wanted.refuse):
        made = filter_class.from_settings(props)
    if not isinstance(made, wanted.contract):
        raise wanted.refuse(f"it lacks methods of {wanted.contract.__name__}")
    return made


def _matches(pattern: Matcher | None, name: str) -> bool:
    return pattern is not None and pattern.fullmatch(name) is not None
