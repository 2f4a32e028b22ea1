"""The permissions that one connector or worker needs, with their resources and clients.

Runs on: any machine. `mirror.permissions` has the table. Every client may have its own login.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.mirror_configs import CheckpointConfig, HeartbeatConfig, SourceConfig
from sparkmirror.config.worker_config import WorkerConfig
from sparkmirror.mirror.permissions import (
    CLUSTER_NAME,
    READ,
    WRITE,
    Feature,
    Need,
    Permission,
    Resource,
    ResourceKind,
    needs_of,
)
from sparkmirror.mirror.policy import flow_offset_syncs_topic, flow_policy
from sparkmirror.mirror.positions.own_offsets import with_own_offsets
from sparkmirror.mirror.translation.offset_map_chunks import offset_map_topic

RESOURCES = {
    ResourceKind.GROUPS: Resource.GROUP,
    ResourceKind.MEMBERS: Resource.GROUP,
    ResourceKind.FLOW_GROUP: Resource.GROUP,
    ResourceKind.CLUSTER: Resource.CLUSTER,
    ResourceKind.TRANSACTIONAL_ID: Resource.TRANSACTIONAL_ID,
}


@dataclass(frozen=True, slots=True)
class Clients:
    """The clients for one kind of resource; `admin` does all but reading and writing records."""

    admin: ClientConfig
    reader: ClientConfig
    writer: ClientConfig
    names: tuple[str, ...]

    def of(self, need: Need) -> ClientConfig:
        """The client that needs the permission."""
        return {READ: self.reader, WRITE: self.writer}.get(need.operation, self.admin)


@dataclass(frozen=True, slots=True)
class RequiredPermission:
    """One row of the table of permissions, for one client and these resources."""

    client: ClientConfig
    need: Need
    names: tuple[str, ...]

    @property
    def permissions(self) -> list[Permission]:
        kind = RESOURCES.get(self.need.place, Resource.TOPIC)
        return [Permission(kind, name, self.need.operation) for name in self.names]


ClientsByKind = Mapping[ResourceKind, Clients]


def wanted_by_source(
    config: SourceConfig, worker: WorkerConfig, topics: Sequence[str]
) -> list[RequiredPermission]:
    """The permissions for copying these topics of the source."""
    features = [Feature.COPY]
    features += [Feature.CONFIGS] if config.sync_topic_configs_enabled else []
    features += [Feature.ACLS] if config.sync_topic_acls_enabled else []
    policy = flow_policy(config)
    remotes = tuple(policy.format_remote_topic(config.source_alias, topic) for topic in topics)
    source, target, writer = config.source_client, config.target_client, config.producer.client
    on_source = config.offset_syncs_location == "source"
    syncs_admin = source if on_source else target
    syncs = flow_offset_syncs_topic(policy, config) if config.emit_offset_syncs_enabled else ""
    is_elsewhere = not writer.is_same_cluster(target)
    mapped = "" if is_elsewhere or not syncs else offset_map_topic(config.source_alias)
    places = {
        ResourceKind.COPIED: Clients(source, config.consumer.client, source, tuple(topics)),
        ResourceKind.REMOTE: Clients(target, target, writer, remotes),
        ResourceKind.SYNCS: Clients(
            syncs_admin, syncs_admin, config.offset_syncs_producer.client, _named(syncs)
        ),
        ResourceKind.OFFSET_MAP: Clients(target, target, writer, _named(mapped)),
        ResourceKind.OFFSETS: _offsets(with_own_offsets(worker, config)),
    }
    clusters = {"source": source, "target": target}
    if on_source and syncs:
        clusters["source writer"] = config.offset_syncs_producer.client
    clusters["target writer"] = writer
    return [*_rows(features, places), *_on_clusters(features, clusters)]


def wanted_by_checkpoint(
    config: CheckpointConfig, worker: WorkerConfig, groups: Sequence[str], topics: Sequence[str]
) -> list[RequiredPermission]:
    """The permissions for checkpoints of these groups, which have offsets in these topics."""
    if not config.emit_checkpoints_enabled:
        return []
    policy = flow_policy(config)
    source, target, writer = config.source_client, config.target_client, config.producer.client
    reader = config.checkpoints_reader
    places = {
        ResourceKind.GROUPS: Clients(source, source, source, tuple(groups)),
        ResourceKind.SYNCS: Clients(
            source,
            config.offset_syncs_reader,
            writer,
            _named(flow_offset_syncs_topic(policy, config)),
        ),
        ResourceKind.OFFSET_MAP: Clients(
            target, reader, writer, _named(offset_map_topic(config.source_alias))
        ),
        ResourceKind.CHECKPOINTS: Clients(
            target, reader, writer, _named(policy.checkpoints_topic(config.source_alias))
        ),
        ResourceKind.OFFSETS: _offsets(with_own_offsets(worker, config)),
    }
    found = list(_rows([Feature.CHECKPOINTS], places))
    if config.sync_group_offsets_enabled:
        remotes = [policy.format_remote_topic(config.source_alias, topic) for topic in topics]
        on_target = {
            ResourceKind.GROUPS: Clients(target, target, target, tuple(groups)),
            ResourceKind.REMOTE: Clients(target, target, target, tuple(remotes)),
        }
        found += _rows([Feature.GROUP_OFFSETS], on_target)
    return found


def wanted_by_heartbeat(config: HeartbeatConfig, worker: WorkerConfig) -> list[RequiredPermission]:
    """The permissions for heartbeats."""
    if not config.emit_heartbeats_enabled:
        return []
    topic = flow_policy(config).heartbeats_topic()
    target, writer = config.target_client, config.producer.client
    places = {
        ResourceKind.HEARTBEATS: Clients(target, target, writer, _named(topic)),
        ResourceKind.OFFSETS: _offsets(with_own_offsets(worker, config)),
    }
    return list(_rows([Feature.HEARTBEATS], places))


def wanted_by_worker(worker: WorkerConfig) -> list[RequiredPermission]:
    """The permissions of a Connect worker itself, regardless of its connectors."""
    return list(_rows([Feature.WORKER], _own_places(worker)))


def wanted_by_herder(worker: WorkerConfig) -> list[RequiredPermission]:
    """The same of a node of dedicated mode, for one pair of clusters."""
    return list(_rows([Feature.DEDICATED], _own_places(worker)))


def _own_places(worker: WorkerConfig) -> ClientsByKind:
    def own(name: str) -> Clients:
        return Clients(worker.client, worker.client, worker.client, _named(name))

    return {
        ResourceKind.MEMBERS: own(worker.group_id),
        ResourceKind.FLOW_GROUP: own(worker.group_id),
        ResourceKind.CONFIG: own(worker.config_storage_topic),
        ResourceKind.STATUS: own(worker.status_storage_topic),
        ResourceKind.OFFSETS: own(worker.offset_storage_topic),
        ResourceKind.TRANSACTIONAL_ID: own(f"connect-cluster-{worker.group_id}"),
    }


def _offsets(worker: WorkerConfig) -> Clients:
    names = _named(worker.offset_storage_topic)
    return Clients(worker.client, worker.client, worker.producer.client, names)


def _named(name: str) -> tuple[str, ...]:
    return (name,) if name else ()


def _rows(features: Sequence[Feature], places: ClientsByKind) -> Iterator[RequiredPermission]:
    for need in needs_of(*features):
        clients = places.get(need.place)
        if clients is not None and clients.names:
            yield RequiredPermission(clients.of(need), need, clients.names)


def _on_clusters(
    features: Sequence[Feature], clusters: Mapping[str, ClientConfig]
) -> Iterator[RequiredPermission]:
    """Permissions on clusters; those for writing are the writers'."""
    for need in needs_of(*features):
        if need.place is not ResourceKind.CLUSTER:
            continue
        role = f"{need.side.value} writer" if need.feature is Feature.COPY else need.side.value
        if role in clusters:
            yield RequiredPermission(clusters[role], need, (CLUSTER_NAME,))
