"""What a flow's topics are like on both clusters: which there are, and which settings differ.

Runs on: worker, on the thread of a flow's watch. The rules are those of the mirror itself.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.config.masking import mask
from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.connect.denied_topics import plain_names
from sparkmirror.connect.source.acl_sync import missing_acls
from sparkmirror.connect.source.topic_config_sync import config_entries
from sparkmirror.errors import BrokerError, KafkaError
from sparkmirror.mirror.config_sync import AlterConfig, changes_left, plan_config_sync
from sparkmirror.mirror.filters import make_config_property_filter, make_topic_filter
from sparkmirror.mirror.policy import flow_policy
from sparkmirror.mirror.topics import ConfigEntry, should_replicate_topic
from sparkmirror.wire.admin.admin import Admin

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TopicsSeen:
    """Partition counts of all topics of both clusters. `wanted`: source topic to remote topic.

    `hidden`: topics that the flow names but may not see, with the reason.
    """

    source: Mapping[str, int]
    target: Mapping[str, int]
    wanted: Mapping[str, str]
    hidden: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting that the remote topic has otherwise than the rules say; None: it is not set.

    `key` is "acl" for an access rule that the remote topic lacks.
    """

    key: str
    source: str | None
    target: str | None


@dataclass(frozen=True, slots=True)
class SettingsSeen:
    """By source topic; `errors`: topics whose settings cannot be read, with the reason."""

    differences: Mapping[str, Sequence[Difference]]
    errors: Mapping[str, str]


class TopicsLook:
    """Of one flow."""

    def __init__(self, config: SourceConfig) -> None:
        self._config = config
        self._policy = flow_policy(config)
        self._filter = make_topic_filter(config)
        self._properties = make_config_property_filter(config)

    def wants(self, topic: str) -> bool:
        """Whether the rules let it be mirrored."""
        return should_replicate_topic(
            topic,
            self._filter,
            self._policy,
            heartbeats_replication_enabled=self._config.heartbeats_replication_enabled,
            source_alias=self._config.source_alias,
            target_alias=self._config.target_alias,
        )

    def topics(self, source: Admin, target: Admin) -> TopicsSeen:
        """Ask both clusters. Raises KafkaError."""
        found = {name: view.partitions for name, view in source.list_topics().items()}
        on_target = {name: view.partitions for name, view in target.list_topics().items()}
        alias = self._config.source_alias
        wanted = {
            topic: self._policy.format_remote_topic(alias, topic)
            for topic in found
            if self.wants(topic)
        }
        named = [name for name in plain_names(self._config.topics) if name not in found]
        asked = source.find_topics(filter(self.wants, named)) if named else {}
        hidden = {name: mask(str(error)) for name, error in asked.items() if error is not None}
        return TopicsSeen(found, on_target, wanted, hidden)

    def settings(self, seen: TopicsSeen, source: Admin, target: Admin) -> SettingsSeen:
        """Compare the settings of topics that are on both. Raises KafkaError."""
        remotes = {topic: name for topic, name in seen.wanted.items() if name in seen.target}
        errors: dict[str, str] = {}
        planned: dict[str, tuple[AlterConfig, ...]] = {}
        own: dict[str, Mapping[str, str | None]] = {}
        for topic, found in source.describe_topic_configs(remotes).items():
            if isinstance(found, BrokerError):
                errors[topic] = mask(str(found))
            else:
                entries = config_entries(found)
                planned[topic] = plan_config_sync(entries, self._properties)
                own[topic] = _values(entries)
        answers = target.describe_topic_configs([remotes[topic] for topic in planned])
        differences: dict[str, list[Difference]] = {}
        for topic, changes in planned.items():
            answer = answers.get(remotes[topic])
            if answer is None or isinstance(answer, BrokerError):
                errors[topic] = str(answer or f"'{remotes[topic]}' was left out of the answer")
                continue
            entries = config_entries(answer)
            has = _values(entries)
            differences[topic] = [
                Difference(change.name, own[topic].get(change.name), has.get(change.name))
                for change in changes_left(changes, entries)
            ]
        self._add_acls(remotes, differences, source, target)
        return SettingsSeen(differences, errors)

    def _add_acls(
        self,
        remotes: Mapping[str, str],
        differences: dict[str, list[Difference]],
        source: Admin,
        target: Admin,
    ) -> None:
        """Access rules that the sync would create; without the permission to see them, none."""
        if not self._config.sync_topic_acls_enabled:
            return
        alias = self._config.source_alias
        try:
            missing = missing_acls(self._policy, self.wants, alias, (source, target))
        except KafkaError as error:
            log.debug("ACLs are not compared: %s", error)
            return
        for topic, remote in remotes.items():
            found = [Difference("acl", rule, None) for rule in missing.get(remote, ())]
            if found and topic in differences:
                differences[topic] += found


def _values(entries: Sequence[ConfigEntry]) -> dict[str, str | None]:
    return {entry.name: entry.value for entry in entries if not entry.sensitive}
