"""The source connector of a flow, typed: everything the copying of topics is told.

The tables of all three connectors are in `connector_keys`; they are named here for those who only
want to look one up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparkmirror.config.classes import DEFAULT_POLICY, IDENTITY_POLICY
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
from sparkmirror.config.connector_keys import (
    CHECKPOINT_KEYS,
    COMMON_KEYS,
    FRAMEWORK_KEYS,
    HEARTBEAT_KEYS,
    SOURCE_KEYS,
)
from sparkmirror.config.findings import Settings
from sparkmirror.config.keys import fill
from sparkmirror.config.not_yet import check_not_yet
from sparkmirror.config.security_keys import SECURITY_KEYS
from sparkmirror.types import FlowName

__all__ = [
    "CHECKPOINT_KEYS",
    "COMMON_KEYS",
    "DEFAULT_POLICY",
    "FRAMEWORK_KEYS",
    "HEARTBEAT_KEYS",
    "IDENTITY_POLICY",
    "SOURCE_KEYS",
    "SourceConfig",
    "check_connector",
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
OFFSET_SYNCS_PREFIXES = ("offset-syncs-", "offset-syncs.topic.")


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """Settings of a MirrorSourceConnector.

    `policy_class` is DEFAULT_POLICY, IDENTITY_POLICY or a Python class `module:Class`.
    `separator` is None when nobody set it: only a set one may reach names of internal topics.
    `producer` writes the records; `target_client` is for admin requests on the target.
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

    @property
    def flow(self) -> FlowName:
        """The two clusters."""
        return FlowName(self.source_alias, self.target_alias)


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
    )


def check_connector(kind: str, connector: Settings) -> dict[str, Any]:
    """Typed values of a connector's own keys; what is wrong or lacking goes to the findings."""
    values = CONNECTOR_KEYS[kind].parse(*connector)
    # A connector's clients do not read the plain security keys: theirs are checked by themselves.
    own = {name: value for name, value in values.items() if name not in SECURITY_KEYS}
    check_not_yet(own, connector.findings)
    return values


def _check_offset_syncs(values: Mapping[str, Any], connector: Settings) -> None:
    about = [key for key in connector.values if key.startswith(OFFSET_SYNCS_PREFIXES)]
    if about and not values[EMIT_OFFSET_SYNCS]:
        connector.findings.error(
            EMIT_OFFSET_SYNCS,
            "false",
            f"offset syncs are off, but {connector.findings.origin(about[0]).key} is set",
            "take one of the two away",
        )
