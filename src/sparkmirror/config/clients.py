"""Settings of the clients of one flow: who they connect to, and how they read and write.

A connector's clients take their settings from three layers (later wins), see `client_settings`.
The producer of the records is the worker's, not the connector's: see `producer_settings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sparkmirror.config.config_def import Secret, fill
from sparkmirror.config.files.variable_names import beside
from sparkmirror.config.findings import Findings, Settings
from sparkmirror.config.keys.client_keys import (
    ADMIN_KEYS,
    BY_DURATION,
    COMMON_CLIENT_KEYS,
    COMPRESSION_LEVELS,
    CONSUMER_KEYS,
    MAX_IN_FLIGHT,
    PRODUCER_KEYS,
)
from sparkmirror.config.keys.durations import parse_duration_ms
from sparkmirror.config.keys.not_yet import check_not_yet
from sparkmirror.config.keys.security_keys import SECURITY_KEYS, SECURITY_PROTOCOL
from sparkmirror.config.security.sasl import JAAS, check_sasl, with_java_login
from sparkmirror.config.security.tls_checks import check_tls
from sparkmirror.types import FlowName

BOOTSTRAP_SERVERS = COMMON_CLIENT_KEYS["bootstrap.servers"].name
# The only keys of a `source.cluster.` or `target.cluster.` prefix that reach a client.
CLUSTER_KEYS = frozenset((BOOTSTRAP_SERVERS, *SECURITY_KEYS.names))
OVERRIDE = "override."
API_TIMEOUT = ADMIN_KEYS["default.api.timeout.ms"].name
DELIVERY_TIMEOUT = PRODUCER_KEYS["delivery.timeout.ms"].name


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """How to reach one cluster. `security` has only what was set, passwords as Secret.

    `servers_key` is the key of `bootstrap_servers` in the user's file, for messages.
    """

    alias: str
    bootstrap_servers: tuple[str, ...]
    client_id: str = ""
    security: Mapping[str, str | Secret] = field(default_factory=dict)
    request_timeout_ms: int = 30000
    metadata_max_age_ms: int = 300000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1000
    connections_max_idle_ms: int = 540000
    socket_connection_setup_timeout_ms: int = 10000
    socket_connection_setup_timeout_max_ms: int = 30000
    default_api_timeout_ms: int = 60000
    receive_buffer_bytes: int = -1
    send_buffer_bytes: int = -1
    servers_key: str = field(default=BOOTSTRAP_SERVERS, compare=False)

    def key(self, name: str) -> str:
        """The key that sets `name` for this cluster, in the form of the key of its addresses."""
        return beside(self.servers_key, BOOTSTRAP_SERVERS, name)

    def is_same_cluster(self, other: ClientConfig) -> bool:
        """Whether the two have an address in common; a broker with two names looks like two."""
        return not set(self.bootstrap_servers).isdisjoint(other.bootstrap_servers)


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """How records are read from the source cluster, which is `client`."""

    client: ClientConfig
    client_id: str = ""
    client_rack: str = ""
    request_timeout_ms: int = 30000
    fetch_max_bytes: int = 16 * 1024 * 1024
    max_partition_fetch_bytes: int = 1024 * 1024
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    auto_offset_reset: str = "earliest"
    isolation_level: str = "read_uncommitted"

    @property
    def start_age_ms(self) -> int | None:
        """With auto.offset.reset=by_duration: how old the first record may be."""
        if not self.auto_offset_reset.startswith(BY_DURATION):
            return None
        return parse_duration_ms(self.auto_offset_reset.removeprefix(BY_DURATION))


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """How records are written to the target cluster, which is `client`.

    `max_request_size` and `compression_type` are None when unset: then the target's limits apply
    and batches keep their codec. `acks` is -1 (all) or 1.
    """

    client: ClientConfig
    client_id: str = ""
    request_timeout_ms: int = 30000
    acks: int = -1
    max_request_size: int | None = None
    compression_type: str | None = None
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    max_in_flight: int = MAX_IN_FLIGHT
    delivery_timeout_ms: int = 2**31 - 1

    @property
    def compression_level(self) -> int | None:
        """The level for `compression_type`; None if that codec has no levels."""
        levels = {
            "gzip": self.compression_gzip_level,
            "lz4": self.compression_lz4_level,
            "zstd": self.compression_zstd_level,
        }
        return levels.get(self.compression_type or "")


def client_settings(connector: Settings, side: str, role: str) -> Settings:
    """Settings of the connector's `role` (admin, consumer) client on `side` (source, target).

    source.cluster.X  <  consumer.X  <  source.consumer.X
    """
    values, findings = connector
    names = {BOOTSTRAP_SERVERS: f"{side}.cluster.{BOOTSTRAP_SERVERS}"}
    names |= with_prefix(values, f"{side}.cluster.", CLUSTER_KEYS)
    names |= with_prefix(values, f"{role}.")
    names |= with_prefix(values, f"{side}.{role}.")
    return Settings(_named(values, names), findings.within(names))


def producer_settings(worker: Settings, connector: Settings | None = None) -> Settings:
    """Settings of the producer that writes the records.

    worker's bootstrap.servers  <  worker's producer.X  <  connector's producer.override.X
    """
    names = {BOOTSTRAP_SERVERS: BOOTSTRAP_SERVERS} | with_prefix(worker.values, "producer.")
    values = _named(worker.values, names)
    origins = worker.findings.within(names).origins
    if connector is not None:
        overrides = with_prefix(connector.values, f"producer.{OVERRIDE}")
        values |= _named(connector.values, overrides)
        origins |= connector.findings.within(overrides).origins
    return Settings(values, worker.findings.renamed(origins))


def with_prefix(
    values: Mapping[str, str], prefix: str, only: frozenset[str] | None = None
) -> dict[str, str]:
    """Keys under `prefix`: their short name and their full one."""
    found = {key.removeprefix(prefix): key for key in values if key.startswith(prefix)}
    return {
        name: key
        for name, key in found.items()
        if name and not name.startswith(OVERRIDE) and (only is None or name in only)
    }


def parse_client(settings: Settings, alias: str) -> ClientConfig:
    """How to reach the cluster `alias` for admin requests."""
    values = ADMIN_KEYS.parse(*settings)
    client = _client(values, settings, alias)
    return replace(client, default_api_timeout_ms=_api_timeout_ms(values, settings))


def parse_consumer(settings: Settings, alias: str) -> ConsumerConfig:
    """How the copy tasks read."""
    values = CONSUMER_KEYS.parse(*settings)
    client = _client(values, settings, alias)
    return fill(ConsumerConfig, CONSUMER_KEYS, values, client=client)


def parse_producer(settings: Settings, alias: str) -> ProducerConfig:
    """How the copy tasks write."""
    values = PRODUCER_KEYS.parse(*settings)
    client = _client(values, settings, alias)
    config = fill(ProducerConfig, PRODUCER_KEYS, values, client=client)
    _check_delivery(config, settings)
    _check_levels(config, settings)
    return _within_promises(config, settings.findings)


def compose_client_id(
    user: str, flow: FlowName, connector: str, role: str, task: int | str | None = None
) -> str:
    """The client id of MirrorMaker 2: `[user|]A->B|connector[-task]|role`; task `?` if unknown."""
    owner = connector if task is None else f"{connector}-{task}"
    given = f"{user}|" if user else ""
    return f"{given}{flow}|{owner}|{role}"


def _named(values: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    return {name: values[key] for name, key in names.items() if key in values}


def _client(values: Mapping[str, Any], settings: Settings, alias: str) -> ClientConfig:
    check_not_yet(values, settings.findings)
    malformed = settings.values.get(BOOTSTRAP_SERVERS, "").strip()
    if not values[BOOTSTRAP_SERVERS] and not malformed:
        settings.findings.error(
            BOOTSTRAP_SERVERS,
            None,
            f"cluster '{alias}' has no broker address",
            "set it to host:port,host:port",
        )
    check_tls(values, settings.findings)
    values = with_java_login(values, settings.findings)
    check_sasl(values, settings.findings)
    security = {name: values[name] for name in SECURITY_KEYS.names if name in settings.values}
    if values[JAAS] is not None:
        security[JAAS] = values[JAAS]
    security[SECURITY_PROTOCOL.name] = values[SECURITY_PROTOCOL.name]
    servers_key = settings.findings.origin(BOOTSTRAP_SERVERS).key
    return fill(
        ClientConfig,
        COMMON_CLIENT_KEYS,
        values,
        alias=alias,
        security=security,
        servers_key=servers_key,
    )


def _api_timeout_ms(values: Mapping[str, Any], settings: Settings) -> int:
    """As in Kafka's admin client, there must be time for at least one request."""
    given: int = values[API_TIMEOUT]
    least: int = values["request.timeout.ms"]
    if API_TIMEOUT in settings.values and given < least:
        settings.findings.error(
            API_TIMEOUT,
            given,
            f"less than request.timeout.ms ({least}): no request would have enough time",
            f"use at least {least}, or a smaller request.timeout.ms",
        )
    return max(given, least)


def _check_delivery(config: ProducerConfig, settings: Settings) -> None:
    """As in Kafka's producer, there must be time for at least one request."""
    least = config.request_timeout_ms
    if DELIVERY_TIMEOUT in settings.values and config.delivery_timeout_ms < least:
        settings.findings.error(
            DELIVERY_TIMEOUT,
            config.delivery_timeout_ms,
            f"less than request.timeout.ms ({least}): no request would have enough time",
            f"use at least {least}, or a smaller request.timeout.ms",
        )


def _check_levels(config: ProducerConfig, settings: Settings) -> None:
    for codec, *_ in COMPRESSION_LEVELS:
        name = f"compression.{codec}.level"
        if name in settings.values and config.compression_type != codec:
            text = f"has no effect: compression.type is not {codec}"
            settings.findings.warn_key(name, text)


def _within_promises(config: ProducerConfig, findings: Findings) -> ProducerConfig:
    """Replace settings that would break order or lose records by safe ones, with a warning."""
    acks, in_flight = config.acks, config.max_in_flight
    if acks == 0:
        acks = 1
        findings.warn_key(
            "acks",
            "0 is treated as 1: a position may be stored only after the target has the records",
        )
    if in_flight > MAX_IN_FLIGHT:
        in_flight = MAX_IN_FLIGHT
        findings.warn_key(
            "max.in.flight.requests.per.connection",
            f"{config.max_in_flight} is treated as {MAX_IN_FLIGHT}, the most that preserves the "
            "order",
        )
    return replace(config, acks=acks, max_in_flight=in_flight)
