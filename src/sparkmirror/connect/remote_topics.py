"""Creates the remote topics of a flow, and lets them grow with their source topics.

Runs on: worker, on the connector's thread. The rules are in mirror/topics.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sparkmirror.config.connectors import SourceConfig
from sparkmirror.connect.complaints import Complaints
from sparkmirror.connect.config_sync import config_entries
from sparkmirror.errors import BrokerError, told_if_denied
from sparkmirror.mirror.filters import ConfigPropertyFilter
from sparkmirror.mirror.permissions import (
    ALTER,
    CREATE,
    DESCRIBE_CONFIGS,
    Feature,
    Place,
    meanwhile,
)
from sparkmirror.mirror.policy import ReplicationPolicy
from sparkmirror.mirror.topics import TopicPlan, creation_configs, plan_topics
from sparkmirror.wire.access import Operation
from sparkmirror.wire.admin import Admin, NewTopic

log = logging.getLogger(__name__)


class RemoteTopics:
    """The target's side of one flow's topics; one round is `bring_up`."""

    def __init__(
        self,
        config: SourceConfig,
        policy: ReplicationPolicy,
        property_filter: ConfigPropertyFilter,
        source: Admin,
        target: Admin,
    ) -> None:
        self._config = config
        self._name = str(config.flow)
        self._policy = policy
        self._filter = property_filter
        self._source = source
        self._target = target
        self._complaints = Complaints(self._name)

    def bring_up(self, source: Mapping[str, int]) -> dict[str, int]:
        """Create and grow what these topics, with their partition counts, need on the target.

        Returns:
            The partition counts of all topics of the target, afterwards.
        """
        target = {name: view.partitions for name, view in self._target.list_topics().items()}
        plan = plan_topics(source, target, self._policy, self._config.source_alias)
        wrong = {warning: warning for warning in plan.warnings}
        target |= self._create(plan, wrong) | self._grow(plan, wrong)
        self._complaints.report(wrong)
        return target

    def _create(self, plan: TopicPlan, wrong: dict[str, str]) -> dict[str, int]:
        created: dict[str, int] = {}
        for remote, error in self._target.create_topics(self._new_topics(plan, wrong)).items():
            if error is None:
                created[remote] = plan.create[remote].partitions
                log.info("[%s] created topic '%s'", self._name, remote)
            else:
                wrong[remote] = _told(
                    error, Place.REMOTE, CREATE, "trying again with the next refresh"
                )
        return created

    def _new_topics(self, plan: TopicPlan, wrong: dict[str, str]) -> list[NewTopic]:
        names = [wanted.source_topic for wanted in plan.create.values()]
        described = self._source.describe_topic_configs(names)
        topics = []
        for remote, wanted in plan.create.items():
            settings = described[wanted.source_topic]
            if isinstance(settings, BrokerError):
                # Without its settings a compacted topic would lose records on the target.
                otherwise = f"'{remote}' is not created before that"
                wrong[remote] = _told(settings, Place.COPIED, DESCRIBE_CONFIGS, otherwise)
                continue
            configs = creation_configs(config_entries(settings), self._filter)
            replicas = self._config.replication_factor
            topics.append(NewTopic(remote, wanted.partitions, replicas, configs))
        return topics

    def _grow(self, plan: TopicPlan, wrong: dict[str, str]) -> dict[str, int]:
        grown: dict[str, int] = {}
        for remote, error in self._target.create_partitions(plan.grow).items():
            if error is None:
                grown[remote] = plan.grow[remote]
                log.info("[%s] '%s' has %d partitions now", self._name, remote, grown[remote])
            else:
                otherwise = "the new partitions are not copied until it works"
                wrong[remote] = _told(error, Place.REMOTE, ALTER, otherwise)
        return grown


def _told(error: BrokerError, place: Place, operation: Operation, otherwise: str) -> str:
    """The error and what happens meanwhile: what the table of rights says, if one is missing."""
    return told_if_denied(error, meanwhile(Feature.COPY, place, operation), otherwise)
