"""Everything that a cluster holds, read by an independent client (librdkafka)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ConfigSource,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from sparkmirror.embedded import KafkaCluster
from tests.group_offsets import committed_offsets

SECONDS = 30.0
ANY_ACL = AclBindingFilter(
    ResourceType.ANY,
    None,
    ResourcePatternType.ANY,
    None,
    None,
    AclOperation.ANY,
    AclPermissionType.ANY,
)
OWN = (ConfigSource.DYNAMIC_TOPIC_CONFIG.value, ConfigSource.DYNAMIC_BROKER_CONFIG.value)


@dataclass(frozen=True)
class TopicState:
    """Shape and own settings of a topic."""

    partitions: int
    replicas: int
    configs: Mapping[str, str]


@dataclass(frozen=True)
class ClusterState:
    """`ends` are of all partitions: every new record shows there."""

    topics: Mapping[str, TopicState]
    ids: Mapping[str, str]
    ends: Mapping[tuple[str, int], int]
    acls: frozenset[str]
    groups: Mapping[str, Mapping[Any, int]]
    brokers: Mapping[str, Mapping[str, str]]

    @property
    def named(self) -> Mapping[str, TopicState]:
        """Without Kafka's own topics."""
        return {name: each for name, each in self.topics.items() if not name.startswith("__")}


def state_of(cluster: KafkaCluster) -> ClusterState:
    """All that can be seen of it. Asking for groups makes no topic if there are none."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    metadata = admin.list_topics(timeout=SECONDS)
    names = sorted(metadata.topics)
    described = admin.describe_topics(TopicCollection(names)) if names else {}
    topics = {name: future.result(SECONDS) for name, future in described.items()}
    configs = _configs(admin, ConfigResource.Type.TOPIC, names)
    brokers = _configs(admin, ConfigResource.Type.BROKER, [str(at) for at in metadata.brokers])
    groups = [each.group_id for each in admin.list_consumer_groups().result(SECONDS).valid]
    return ClusterState(
        {
            name: TopicState(len(each.partitions), len(each.partitions[0].replicas), configs[name])
            for name, each in topics.items()
        },
        {name: str(each.topic_id) for name, each in topics.items()},
        _ends(admin, {name: len(each.partitions) for name, each in topics.items()}),
        frozenset(str(each) for each in admin.describe_acls(ANY_ACL).result(SECONDS)),
        {group: committed_offsets(cluster, group) for group in groups},
        brokers,
    )


def _configs(admin: AdminClient, kind: Any, names: list[str]) -> dict[str, dict[str, str]]:
    found = admin.describe_configs([ConfigResource(kind, name) for name in names]) if names else {}
    return {
        resource.name: {
            name: entry.value
            for name, entry in future.result(SECONDS).items()
            if entry.source in OWN
        }
        for resource, future in found.items()
    }


def _ends(admin: AdminClient, counts: Mapping[str, int]) -> dict[tuple[str, int], int]:
    wanted = {
        TopicPartition(name, at): OffsetSpec.latest()
        for name, count in counts.items()
        for at in range(count)
    }
    found = admin.list_offsets(wanted) if wanted else {}
    return {(tp.topic, tp.partition): future.result(SECONDS).offset for tp, future in found.items()}
