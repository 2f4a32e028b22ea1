"""Creates the remote topics of a flow, and adds partitions when their source topics grow.

Runs on: worker, on the connector's thread. The rules are in mirror/topics.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.connect.source.accepted_settings import AcceptedSettings
from sparkmirror.connect.source.topic_config_sync import config_entries
from sparkmirror.connect.warn_once import WarnOnce
from sparkmirror.errors import BrokerError, describe_error
from sparkmirror.events import EventKind, event
from sparkmirror.mirror.config_sync import AlterOperation
from sparkmirror.mirror.filters import ConfigPropertyFilter
from sparkmirror.mirror.permissions import (
    ALTER,
    CREATE,
    DESCRIBE_CONFIGS,
    Feature,
    Operation,
    ResourceKind,
    consequence_without,
)
from sparkmirror.mirror.policy import ReplicationPolicy
from sparkmirror.mirror.topics import TopicPlan, creation_configs, plan_topics
from sparkmirror.wire.admin.admin import Admin, ConfigChange, NewTopic
from sparkmirror.wire.protocol.error_codes import INVALID_REPLICATION_FACTOR

log = logging.getLogger(__name__)

# How long to wait for brokers to auto-create topics.
AUTO_CREATE_SECONDS = 1.0
LOOK_SECONDS = 0.05
# How many early refreshes look for topics that brokers were asked to create.
MOST_LOOKS = 4
TOO_MANY_REPLICAS = (
    "set replication.factor to at most the number of brokers; trying again with the next refresh"
)
CREATED_BY_BROKERS = (
    "[%s] '%s' was created by the brokers of '%s' with their own number of replicas "
    "(auto.create.topics.enable); set replication.factor to at most the number of brokers"
)


class RemoteTopics:
    """The target's side of one flow's topics; one round is `bring_up`."""

    def __init__(
        self,
        config: SourceConfig,
        policy: ReplicationPolicy,
        property_filter: ConfigPropertyFilter,
        accepted: AcceptedSettings,
        *,
        source: Admin,
        target: Admin,
    ) -> None:
        self._config = config
        self._name = str(config.flow)
        self._policy = policy
        self._filter = property_filter
        self._source = source
        self._target = target
        self._accepted = accepted
        self._complaints = WarnOnce(self._name, EventKind.BLOCKED)
        # Topics that brokers were asked to create, until they have the wanted settings.
        self._unsettled: dict[str, NewTopic] = {}
        # Why some topics are not copied: no usable remote topic; empty if all are.
        self.refused = ""
        self._looks = 0

    def bring_up(self, source: Mapping[str, int]) -> dict[str, int]:
        """Create and grow the remote topics of these topics, given with partition counts.

        Returns:
            The partition counts of the target's topics afterwards, except those not ready for use.
        """
        target = {name: view.partitions for name, view in self._target.list_topics().items()}
        plan = plan_topics(source, target, self._policy, self._config.source_alias)
        wrong = {warning: warning for warning in plan.warnings}
        target |= self._create(plan, wrong) | self._grow(plan.grow, wrong)
        unsettled = self._settle(target, wrong)
        self.refused = self.refused or _not_copied([wrong[remote] for remote in sorted(unsettled)])
        self._complaints.report(wrong)
        return {name: count for name, count in target.items() if name not in unsettled}

    @property
    def awaits_brokers(self) -> bool:
        """Whether topics may appear soon that brokers were asked to create."""
        return self._looks > 0

    def _create(self, plan: TopicPlan, wrong: dict[str, str]) -> dict[str, int]:
        created: dict[str, int] = {}
        before = set(wrong)
        wanted = {topic.name: topic for topic in self._new_topics(plan, wrong)}
        too_many: dict[str, BrokerError] = {}
        for remote, error in self._try_to_create(wanted).items():
            if error is None:
                created[remote] = plan.create[remote].partitions
                self._unsettled.pop(remote, None)
            elif error.code == INVALID_REPLICATION_FACTOR:
                too_many[remote] = error
            else:
                wrong[remote] = _describe(
                    error, ResourceKind.REMOTE, CREATE, "trying again with the next refresh"
                )
        created |= self._let_brokers_create(too_many, wanted, wrong)
        self.refused = _not_copied([text for topic, text in wrong.items() if topic not in before])
        return created

    def _try_to_create(self, wanted: dict[str, NewTopic]) -> dict[str, BrokerError | None]:
        """Create topics without the settings that the target rejects; return errors by topic."""
        outcome: dict[str, BrokerError | None] = {}
        left = list(wanted)
        while left:
            for remote in left:
                topic = wanted[remote]
                configs = self._accepted.of_topic(topic.configs)
                wanted[remote] = replace(topic, configs=configs)
            outcome |= self._target.create_topics([wanted[remote] for remote in left])
            left = [
                remote
                for remote in left
                if (error := outcome.get(remote)) is not None
                and self._accepted.learn(remote, wanted[remote].configs, error)
            ]
        return outcome

    def _let_brokers_create(
        self,
        refused: Mapping[str, BrokerError],
        wanted: Mapping[str, NewTopic],
        wrong: dict[str, str],
    ) -> dict[str, int]:
        """Fall back to auto.create.topics.enable, as MirrorMaker 2's producer does.

        Brokers then choose the numbers of replicas and partitions, and use default settings.
        Partitions and settings are corrected before anything is copied: with
        cleanup.policy=delete, a compacted topic would lose records.
        """
        if not refused:
            return {}
        found = self._wait_for_brokers(refused)
        new = refused.keys() - self._unsettled.keys()
        self._unsettled |= {remote: wanted[remote] for remote in refused}
        self._looks = MOST_LOOKS if new else self._looks
        for remote, error in refused.items():
            if remote not in found:
                wrong[remote] = f"{error}; {TOO_MANY_REPLICAS}"
        grow = {at: wanted[at].partitions for at in found if found[at] < wanted[at].partitions}
        return found | self._grow(grow, wrong)

    def _settle(self, target: Collection[str], wrong: dict[str, str]) -> set[str]:
        """Correct the settings of auto-created topics; return those that cannot be used yet."""
        there = {remote: topic for remote, topic in self._unsettled.items() if remote in target}
        failed = self._put_settings(there.values())
        for remote in there.keys() - failed.keys():
            del self._unsettled[remote]
            alias = self._config.target_alias
            mark = self._mark(EventKind.CREATED, remote)
            log.warning(CREATED_BY_BROKERS, self._name, remote, alias, extra=mark)
        for remote, error in failed.items():
            wrong[remote] = f"brokers created '{remote}', but it is not used yet: {error}"
        is_any_missing = len(self._unsettled) > len(failed)
        self._looks = self._looks - 1 if is_any_missing and self._looks else 0
        return set(failed)

    def _wait_for_brokers(self, topics: Collection[str]) -> dict[str, int]:
        """Ask brokers to create the topics; return those that appear, with partition counts."""
        self._target.ask_for_topics(topics)
        give_up_at = time.monotonic() + AUTO_CREATE_SECONDS
        while True:
            shown = self._target.list_topics()
            if all(name in shown for name in topics) or time.monotonic() > give_up_at:
                return {name: shown[name].partitions for name in topics if name in shown}
            time.sleep(LOOK_SECONDS)

    def _put_settings(self, topics: Iterable[NewTopic]) -> dict[str, BrokerError]:
        changes = {
            topic.name: [ConfigChange(*each) for each in _settings_of(topic)]
            for topic in topics
            if topic.configs
        }
        outcome = self._target.alter_topic_configs(changes) if changes else {}
        return {name: error for name, error in outcome.items() if error is not None}

    def _new_topics(self, plan: TopicPlan, wrong: dict[str, str]) -> list[NewTopic]:
        names = [wanted.source_topic for wanted in plan.create.values()]
        described = self._source.describe_topic_configs(names)
        topics = []
        for remote, wanted in plan.create.items():
            settings = described[wanted.source_topic]
            if isinstance(settings, BrokerError):
                # Created without its settings, a compacted topic would lose records on the target.
                otherwise = f"'{remote}' is not created before that"
                wrong[remote] = _describe(
                    settings, ResourceKind.COPIED, DESCRIBE_CONFIGS, otherwise
                )
                continue
            configs = creation_configs(config_entries(settings), self._filter)
            replicas = self._config.replication_factor
            topics.append(NewTopic(remote, wanted.partitions, replicas, configs))
        return topics

    def _grow(self, counts: Mapping[str, int], wrong: dict[str, str]) -> dict[str, int]:
        grown: dict[str, int] = {}
        for remote, error in self._target.create_partitions(counts).items():
            if error is None:
                grown[remote] = counts[remote]
                text, mark = "[%s] '%s' has %d partitions now", self._mark(EventKind.GREW, remote)
                log.info(text, self._name, remote, grown[remote], extra=mark)
            else:
                otherwise = "the new partitions are not copied until it works"
                wrong[remote] = _describe(error, ResourceKind.REMOTE, ALTER, otherwise)
        return grown

    def _mark(self, kind: EventKind, remote: str) -> Mapping[str, object]:
        flow = self._config.flow
        return event(
            kind, flow=flow, connector=self._config.name, topic=remote, cluster=flow.target
        )


def _settings_of(topic: NewTopic) -> list[tuple[str, int, str]]:
    return [(name, AlterOperation.SET, value) for name, value in topic.configs.items()]


def _not_copied(reasons: Sequence[str]) -> str:
    if not reasons:
        return ""
    count = "a topic is" if len(reasons) == 1 else f"{len(reasons)} topics are"
    return f"{count} not copied: {reasons[0]}"


def _describe(error: BrokerError, place: ResourceKind, operation: Operation, otherwise: str) -> str:
    """The error and its consequence; after a denial, the one from the table of permissions."""
    return describe_error(
        error, otherwise, if_denied=consequence_without(Feature.COPY, place, operation)
    )
