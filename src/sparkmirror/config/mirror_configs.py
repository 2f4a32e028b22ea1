"""The three connectors of a flow, typed: all settings of each.

The tables of all three connectors are in `connector_keys`; they are named here for those who only
want to look one up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkmirror.config.clients import (
    ClientConfig,
    ConsumerConfig,
    ProducerConfig,
    client_settings,
    parse_client,
    parse_consumer,
    parse_producer,
    producer_settings,
)
from sparkmirror.config.config_def import fill
from sparkmirror.config.findings import Settings
from sparkmirror.config.keys.classes import DEFAULT_POLICY, IDENTITY_POLICY
from sparkmirror.config.keys.connector_keys import (
    CHECKPOINT_KEYS,
    COMMON_KEYS,
    FRAMEWORK_KEYS,
    HEARTBEAT_KEYS,
    SOURCE_KEYS,
    TOPIC_FILTER_KEYS,
)
from sparkmirror.config.keys.families import OF_CONNECTORS, explain_families
from sparkmirror.config.keys.not_yet import check_not_yet
from sparkmirror.config.keys.security_keys import SECURITY_KEYS
from sparkmirror.types import FlowName

__all__ = [
    "CHECKPOINT_KEYS",
    "COMMON_KEYS",
    "DEFAULT_POLICY",
    "FRAMEWORK_KEYS",
    "HEARTBEAT_KEYS",
    "IDENTITY_POLICY",
    "SOURCE_KEYS",
    "CheckpointConfig",
    "HeartbeatConfig",
    "SourceConfig",
    "parse_checkpoint",
    "parse_heartbeat",
    "parse_source",
]

CONNECTOR_KEYS = {
    "MirrorSourceConnector": COMMON_KEYS + FRAMEWORK_KEYS + SOURCE_KEYS,
    "MirrorCheckpointConnector": COMMON_KEYS + FRAMEWORK_KEYS + CHECKPOINT_KEYS,
    "MirrorHeartbeatConnector": COMMON_KEYS + FRAMEWORK_KEYS + HEARTBEAT_KEYS,
}
EMIT_OFFSET_SYNCS = SOURCE_KEYS["emit.offset-syncs.enabled"].name
SOURCE_ALIAS = COMMON_KEYS["source.cluster.alias"].name
TARGET_ALIAS = COMMON_KEYS["target.cluster.alias"].name
SEPARATOR = COMMON_KEYS["replication.policy.separator"].name
OFFSET_SYNCS_LOCATION = SOURCE_KEYS["offset-syncs.topic.location"].name
OFFSET_SYNCS_PREFIXES = ("offset-syncs-", "offset-syncs.topic.")


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """Settings of a MirrorSourceConnector.

    `policy_class` is DEFAULT_POLICY, IDENTITY_POLICY or a Python class `module:Class`. `separator`
    is None when unset: only a configured one may reach names of internal topics. `producer` writes
    the records; `target_client` is for admin requests on the target; `offset_syncs_producer` writes
    to the cluster of `offset_syncs_location`. `settings` has all of them as text, resolved, for the
    user's own classes.
    """

    name: str
    enabled: bool
    source_alias: str
    target_alias: str
    tasks_max: int
    topics: tuple[str, ...]
    topics_exclude: tuple[str, ...]
    config_properties_exclude: tuple[str, ...]
    topic_filter_class: str
    config_property_filter_class: str
    policy_class: str
    forwarding_admin_class: str
    offsets_storage_topic: str | None
    separator: str | None
    internal_separator_enabled: bool
    refresh_topics_enabled: bool
    refresh_topics_interval_seconds: int
    sync_topic_configs_enabled: bool
    sync_topic_configs_interval_seconds: int
    sync_topic_acls_enabled: bool
    sync_topic_acls_interval_seconds: int
    replication_factor: int
    heartbeats_replication_enabled: bool
    use_defaults_from: str
    errors_tolerance: str
    admin_timeout_ms: int
    offset_lag_max: int
    emit_offset_syncs_enabled: bool
    offset_syncs_location: str
    offset_syncs_replication_factor: int
    source_client: ClientConfig
    target_client: ClientConfig
    consumer: ConsumerConfig
    producer: ProducerConfig
    offset_syncs_producer: ProducerConfig
    settings: Mapping[str, str] = field(repr=False, hash=False)

    @property
    def flow(self) -> FlowName:
        """The two clusters."""
        return FlowName(self.source_alias, self.target_alias)


@dataclass(frozen=True, slots=True)
class CheckpointConfig:
    """Settings of a MirrorCheckpointConnector.

    `source_client` and `target_client` are for admin requests (groups and their offsets), the
    readers for the checkpoints topic on the target and for the offset-syncs topic, which is on the
    cluster of `offset_syncs_location`; `producer` writes checkpoints. `settings` has all of them as
    text, resolved, for the user's own classes.
    """

    name: str
    enabled: bool
    source_alias: str
    target_alias: str
    tasks_max: int
    groups: tuple[str, ...]
    groups_exclude: tuple[str, ...]
    topics: tuple[str, ...]
    topics_exclude: tuple[str, ...]
    group_filter_class: str
    topic_filter_class: str
    policy_class: str
    forwarding_admin_class: str
    offsets_storage_topic: str | None
    separator: str | None
    internal_separator_enabled: bool
    refresh_groups_enabled: bool
    refresh_groups_interval_seconds: int
    emit_checkpoints_enabled: bool
    emit_checkpoints_interval_seconds: int
    sync_group_offsets_enabled: bool
    sync_group_offsets_interval_seconds: int
    checkpoints_topic_replication_factor: int
    offset_syncs_location: str
    admin_timeout_ms: int
    source_client: ClientConfig
    target_client: ClientConfig
    checkpoints_reader: ClientConfig
    offset_syncs_reader: ClientConfig
    producer: ProducerConfig
    settings: Mapping[str, str] = field(repr=False, hash=False)

    @property
    def has_syncs(self) -> bool:
        """Whether the flow has offset syncs: nothing else tells how to translate."""
        return self.settings.get(EMIT_OFFSET_SYNCS, "").lower() != "false"

    @property
    def is_on(self) -> bool:
        """Whether the connector makes checkpoints."""
        return self.enabled and self.emit_checkpoints_enabled and self.has_syncs


@dataclass(frozen=True, slots=True)
class HeartbeatConfig:
    """Settings of a MirrorHeartbeatConnector; everything it does is on the target.

    `settings` has all of them as text, resolved, for the user's own classes.
    """

    name: str
    source_alias: str
    target_alias: str
    policy_class: str
    forwarding_admin_class: str
    offsets_storage_topic: str | None
    separator: str | None
    internal_separator_enabled: bool
    emit_heartbeats_enabled: bool
    emit_heartbeats_interval_seconds: int
    heartbeats_topic_replication_factor: int
    admin_timeout_ms: int
    target_client: ClientConfig
    producer: ProducerConfig
    settings: Mapping[str, str] = field(repr=False, hash=False)


def parse_source(connector: Settings, worker: Settings) -> SourceConfig:
    """The typed settings of a source connector run by the worker with the settings `worker`.

    Never raises: look into the findings.
    """
    values = check_connector("MirrorSourceConnector", connector)
    _check_offset_syncs(values, connector)
    source, target = values[SOURCE_ALIAS], values[TARGET_ALIAS]
    return fill(
        SourceConfig,
        CONNECTOR_KEYS["MirrorSourceConnector"],
        values,
        separator=values[SEPARATOR] if SEPARATOR in connector.values else None,
        source_client=parse_client(client_settings(connector, "source", "admin"), source),
        target_client=parse_client(client_settings(connector, "target", "admin"), target),
        consumer=parse_consumer(client_settings(connector, "source", "consumer"), source),
        producer=parse_producer(producer_settings(worker, connector), target),
        offset_syncs_producer=_offset_syncs_producer(values, connector),
        settings=dict(connector.values),
    )


def parse_checkpoint(connector: Settings, worker: Settings) -> CheckpointConfig:
    """The same for a checkpoint connector."""
    kind = "MirrorCheckpointConnector"
    values = check_connector(kind, connector) | TOPIC_FILTER_KEYS.parse(*connector)
    source, target = values[SOURCE_ALIAS], values[TARGET_ALIAS]
    side, alias = _offset_syncs_cluster(values)
    return fill(
        CheckpointConfig,
        CONNECTOR_KEYS[kind] + TOPIC_FILTER_KEYS,
        values,
        separator=values[SEPARATOR] if SEPARATOR in connector.values else None,
        source_client=parse_client(client_settings(connector, "source", "admin"), source),
        target_client=parse_client(client_settings(connector, "target", "admin"), target),
        checkpoints_reader=parse_client(client_settings(connector, "target", "consumer"), target),
        offset_syncs_reader=parse_client(client_settings(connector, side, "consumer"), alias),
        producer=parse_producer(producer_settings(worker, connector), target),
        settings=dict(connector.values),
    )


def parse_heartbeat(connector: Settings, worker: Settings) -> HeartbeatConfig:
    """The same for a heartbeat connector."""
    values = check_connector("MirrorHeartbeatConnector", connector)
    target = values[TARGET_ALIAS]
    return fill(
        HeartbeatConfig,
        CONNECTOR_KEYS["MirrorHeartbeatConnector"],
        values,
        separator=values[SEPARATOR] if SEPARATOR in connector.values else None,
        target_client=parse_client(client_settings(connector, "target", "admin"), target),
        producer=parse_producer(producer_settings(worker, connector), target),
        settings=dict(connector.values),
    )


def _offset_syncs_cluster(values: Mapping[str, Any]) -> tuple[str, str]:
    """(source or target, alias) of the cluster that has the offset-syncs topic."""
    side = values[OFFSET_SYNCS_LOCATION]
    return side, values[SOURCE_ALIAS if side == "source" else TARGET_ALIAS]


def _offset_syncs_producer(values: Mapping[str, Any], connector: Settings) -> ProducerConfig:
    side, alias = _offset_syncs_cluster(values)
    return parse_producer(client_settings(connector, side, "producer"), alias)


def check_connector(kind: str, connector: Settings) -> dict[str, Any]:
    """Typed values of a connector's own keys; what is wrong or lacking goes to the findings."""
    values = CONNECTOR_KEYS[kind].parse(*connector)
    # A connector's clients do not read the plain security keys: theirs are checked by themselves.
    own = {name: value for name, value in values.items() if name not in SECURITY_KEYS}
    check_not_yet(own, connector.findings)
    explain_families(connector, OF_CONNECTORS, CONNECTOR_KEYS[kind])
    return values


def _check_offset_syncs(values: Mapping[str, Any], connector: Settings) -> None:
    about = [key for key in connector.values if key.startswith(OFFSET_SYNCS_PREFIXES)]
    if about and not values[EMIT_OFFSET_SYNCS]:
        connector.findings.error(
            EMIT_OFFSET_SYNCS,
            "false",
            f"offset syncs are disabled, but {connector.findings.origin(about[0]).key} is set",
            "remove one of the two",
        )
