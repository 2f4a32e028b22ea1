"""Copies changed settings of topics to their remote topics.

Runs on: worker, on the connector's thread. The rules are in mirror/config_sync; a topic that fails
is logged, and does not affect the others.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from sparkmirror.connect.source.accepted_settings import AcceptedSettings
from sparkmirror.connect.warn_once import WarnOnce
from sparkmirror.errors import BrokerError, describe_error
from sparkmirror.events import EventKind, event
from sparkmirror.mirror.config_sync import (
    AlterConfig,
    AlterOperation,
    changes_left,
    plan_config_sync,
)
from sparkmirror.mirror.filters import ConfigPropertyFilter
from sparkmirror.mirror.permissions import (
    ALTER_CONFIGS,
    DESCRIBE_CONFIGS,
    Feature,
    ResourceKind,
    consequence_without,
)
from sparkmirror.mirror.topics import ConfigEntry, ConfigSource
from sparkmirror.types import FlowName
from sparkmirror.wire.admin.admin import Admin, ConfigChange, TopicSetting
from sparkmirror.wire.protocol.error_codes import UNKNOWN_TOPIC_OR_PARTITION

log = logging.getLogger(__name__)

Changes = tuple[AlterConfig, ...]


def config_entries(settings: Iterable[TopicSetting]) -> list[ConfigEntry]:
    """Convert settings from a cluster's response to the type of mirror/config_sync."""
    return [
        ConfigEntry(name, value, ConfigSource(source), read_only, sensitive)
        for name, value, source, read_only, sensitive in settings
    ]


class ConfigSync:
    """Topic settings of one flow; one round is `sync`."""

    def __init__(
        self,
        flow: FlowName,
        property_filter: ConfigPropertyFilter,
        source: Admin,
        target: Admin,
        accepted: AcceptedSettings,
    ) -> None:
        self._name = str(flow)
        self._accepted = accepted
        self._filter = property_filter
        self._source = source
        self._target = target
        self._complaints = WarnOnce(self._name)

    def sync(self, remotes: Mapping[str, str]) -> None:
        """Bring the settings of these remote topics, by source topic, up to date.

        Raises:
            KafkaError: one of the clusters does not respond, or denies the whole request.
        """
        errors: dict[str, str] = {}
        planned = self._plan(remotes, errors)
        while planned:
            planned = self._alter(planned, errors)
        self._complaints.report(errors)

    def _alter(self, planned: Mapping[str, Changes], errors: dict[str, str]) -> dict[str, Changes]:
        """Make the changes; return those to retry without the settings that were rejected."""
        planned = {at: self._accepted.of_changes(changes) for at, changes in planned.items()}
        changes = self._news(planned)
        outcomes = self._target.alter_topic_configs(
            {remote: [ConfigChange(*each) for each in changes[remote]] for remote in changes}
        )
        again: dict[str, Changes] = {}
        for remote, error in outcomes.items():
            if error is None:
                mark = event(EventKind.SYNCED, flow=self._name, topic=remote)
                log.info("[%s] '%s': %s", self._name, remote, _shown(changes[remote]), extra=mark)
            elif self._accepted.learn(remote, _values(changes[remote]), error):
                again[remote] = planned[remote]
            else:
                errors[remote] = describe_error(
                    error, consequence_without(Feature.CONFIGS, ResourceKind.REMOTE, ALTER_CONFIGS)
                )
        return again

    def _plan(self, remotes: Mapping[str, str], errors: dict[str, str]) -> dict[str, Changes]:
        planned: dict[str, Changes] = {}
        for topic, settings in self._source.describe_topic_configs(remotes).items():
            if _is_gone(settings):
                continue
            if isinstance(settings, BrokerError):
                without = consequence_without(
                    Feature.CONFIGS, ResourceKind.COPIED, DESCRIBE_CONFIGS
                )
                errors[topic] = describe_error(settings, without)
            else:
                entries = config_entries(settings)
                planned[remotes[topic]] = plan_config_sync(entries, self._filter)
        return planned

    def _news(self, planned: Mapping[str, Changes]) -> dict[str, Changes]:
        """Omit what remote topics have already."""
        left = dict(planned)
        for remote, settings in self._target.describe_topic_configs(planned).items():
            if _is_gone(settings):
                del left[remote]
            # A denial is harmless here: MirrorMaker 2 never compares either.
            elif not isinstance(settings, BrokerError):
                left[remote] = changes_left(planned[remote], config_entries(settings))
        return {remote: changes for remote, changes in left.items() if changes}


def _is_gone(response: object) -> bool:
    """Whether the topic was deleted, or is too new to be known to every broker."""
    return isinstance(response, BrokerError) and response.code == UNKNOWN_TOPIC_OR_PARTITION


def _values(changes: Changes) -> dict[str, str]:
    return {change.name: change.value for change in changes if change.value is not None}


def _shown(changes: Changes) -> str:
    return ", ".join(
        f"{change.name} is the target's default"
        if change.operation is AlterOperation.DELETE
        else f"{change.name}={change.value}"
        for change in changes
    )
