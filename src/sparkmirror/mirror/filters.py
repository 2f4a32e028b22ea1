"""Which topics, topic settings and consumer groups a flow copies, by regular expressions.

Runs on: worker.
Mirrors: DefaultTopicFilter, DefaultConfigPropertyFilter and DefaultGroupFilter of
org.apache.kafka.connect.mirror (4.4).

A list of patterns is joined into one expression that must match the whole name. An empty list is
no expression: None, which matches nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TopicFilter:
    """Settings `topics` and `topics.exclude`: an exclude wins over an include."""

    include: re.Pattern[str] | None
    exclude: re.Pattern[str] | None

    def should_replicate_topic(self, topic: str) -> bool:
        return _matches(self.include, topic) and not _matches(self.exclude, topic)


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """Settings `groups` and `groups.exclude`: an exclude wins over an include."""

    include: re.Pattern[str] | None
    exclude: re.Pattern[str] | None

    def should_replicate_group(self, group: str) -> bool:
        return _matches(self.include, group) and not _matches(self.exclude, group)


@dataclass(frozen=True, slots=True)
class ConfigPropertyFilter:
    """Setting `config.properties.exclude`: every other topic setting is copied."""

    exclude: re.Pattern[str] | None

    def should_replicate_config_property(self, name: str) -> bool:
        return not _matches(self.exclude, name)


def _matches(pattern: re.Pattern[str] | None, name: str) -> bool:
    return pattern is not None and pattern.fullmatch(name) is not None
