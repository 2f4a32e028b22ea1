"""Who makes changes on the clusters: Kafka's own admin requests, or a class of the user's own.

Runs on: worker. Mirrors: org.apache.kafka.clients.admin.ForwardingAdmin (KIP-787). Where another
system manages topics, settings and ACLs, a subclass calls that system instead of the brokers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, Self

from sparkmirror.errors import BrokerError
from sparkmirror.mirror.admin_types import AclRule, ConfigChange, NewTopic

__all__ = ["AclRule", "Cluster", "ConfigChange", "ForwardingAdmin", "NewTopic", "Outcome"]

Outcome = Exception | str | None
"""Why something was not done; None if it was done now or before."""


class Cluster(Protocol):
    """Kafka's own requests to one cluster. Each item has its own outcome."""

    @property
    def alias(self) -> str:
        """The cluster's alias in the settings."""

    def create_topics(self, topics: Iterable[NewTopic]) -> Mapping[str, BrokerError | None]: ...
    def create_partitions(self, counts: Mapping[str, int]) -> Mapping[str, BrokerError | None]: ...
    def alter_topic_configs(
        self, changes: Mapping[str, Sequence[ConfigChange]]
    ) -> Mapping[str, BrokerError | None]: ...
    def create_acls(self, rules: Iterable[AclRule]) -> Mapping[AclRule, BrokerError | None]: ...


class ForwardingAdmin:
    """Makes every change with Kafka's own request; override methods in a subclass to change that.

    One object exists per cluster and connector, in the worker's process. Methods are called on the
    connector's thread, one at a time, and may block: copying continues while they do. Failures are
    logged and retried with the next refresh or sync, so methods must be safe to repeat.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    @classmethod
    def from_settings(cls, props: Mapping[str, str], cluster: Cluster) -> Self:
        """Called at the start; `props` are all settings of the connector, as text."""
        del props
        return cls(cluster)

    def create_topics(self, topics: Sequence[NewTopic]) -> Mapping[str, Outcome]:
        """Create topics; returns the outcomes by name. An existing topic is not an error."""
        return self.cluster.create_topics(topics)

    def create_partitions(self, counts: Mapping[str, int]) -> Mapping[str, Outcome]:
        """Increase topics to these total numbers of partitions."""
        return self.cluster.create_partitions(counts)

    def alter_topic_configs(
        self, changes: Mapping[str, Sequence[ConfigChange]]
    ) -> Mapping[str, Outcome]:
        """Set (`operation` 0) and delete (1) settings, all or none of each topic."""
        return self.cluster.alter_topic_configs(changes)

    def create_acls(self, rules: Sequence[AclRule]) -> Mapping[AclRule, Outcome]:
        """Create access rules; the numbers in them are the Kafka protocol's codes."""
        return self.cluster.create_acls(rules)
