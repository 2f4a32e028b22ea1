"""How the settings of remote topics follow those of their source topics.

Runs on: worker, at each config sync. Pure.
Mirrors: MirrorSourceConnector.syncTopicConfigs (4.4), which always uses IncrementalAlterConfigs.

A setting that the source topic has only by default is deleted from the remote topic, so that the
target's own default applies; with `use.defaults.from=source` its value is set. A value from the
source brokers' static configuration is neither set nor deleted. New topics: `creation_configs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from sparkmirror.mirror.filters import ConfigPropertyFilter
from sparkmirror.mirror.policy import ReplicationPolicy
from sparkmirror.mirror.topics import ConfigEntry, ConfigSource, is_replicable, leaves_default


class AlterOperation(IntEnum):
    """What happens to a setting, with the codes of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1


class AlterConfig(NamedTuple):
    """One change of one remote topic's settings; a deletion has no value."""

    name: str
    operation: AlterOperation
    value: str | None = None


def topics_to_sync(
    source_topics: Iterable[str],
    target_topics: Iterable[str],
    policy: ReplicationPolicy,
    source_alias: str,
) -> dict[str, str]:
    """The copied topics whose remote topic exists, with that topic."""
    existing = frozenset(target_topics)
    remotes = {topic: policy.format_remote_topic(source_alias, topic) for topic in source_topics}
    return {topic: remote for topic, remote in remotes.items() if remote in existing}


def plan_config_sync(
    entries: Iterable[ConfigEntry],
    property_filter: ConfigPropertyFilter,
) -> tuple[AlterConfig, ...]:
    """The changes that give a remote topic the settings of its source topic, the `entries`.

    The plan does not depend on the remote topic's current settings: see `changes_left`.
    """
    plans = (
        _plan_entry(entry, property_filter)
        for entry in entries
        if is_replicable(entry, property_filter)
    )
    return tuple(change for change in plans if change is not None)


def _plan_entry(entry: ConfigEntry, property_filter: ConfigPropertyFilter) -> AlterConfig | None:
    if leaves_default(entry, property_filter):
        return AlterConfig(entry.name, AlterOperation.DELETE)
    if entry.value is None:
        # Brokers reject an empty change.
        return None
    return AlterConfig(entry.name, AlterOperation.SET, entry.value)


def changes_left(
    planned: Iterable[AlterConfig], remote_entries: Iterable[ConfigEntry]
) -> tuple[AlterConfig, ...]:
    """The changes that the remote topic does not have yet, according to DescribeConfigs.

    MirrorMaker 2 sends all changes every time. The remaining ones are new, so they are logged.
    """
    own: Mapping[str, str | None] = {
        entry.name: entry.value
        for entry in remote_entries
        if entry.source is ConfigSource.DYNAMIC_TOPIC
    }
    return tuple(change for change in planned if not _is_done(change, own))


def _is_done(change: AlterConfig, own: Mapping[str, str | None]) -> bool:
    if change.operation is AlterOperation.DELETE:
        return change.name not in own
    return change.name in own and own[change.name] == change.value
