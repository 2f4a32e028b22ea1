"""Administration of one cluster, through kafka-python: topics, partitions, topic settings.

Runs on: worker, on whichever thread asks; every call blocks for at most the admin timeout.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import kafka.errors
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import BrokerError, KafkaError, TransportError
from sparkmirror.wire.error_codes import broker_error, error_code

# kafka-python logs every reconnect; what matters of it comes back as an error here.
logging.getLogger("kafka").setLevel(logging.CRITICAL)

REACH_SECONDS = 5.0


class TopicView(NamedTuple):
    """A topic as metadata shows it."""

    partitions: int
    topic_id: bytes


class TopicSetting(NamedTuple):
    """One setting of a topic; `source` is DescribeConfigs' code."""

    name: str
    value: str | None
    source: int
    read_only: bool
    sensitive: bool


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)


def check_reachable(config: ClientConfig) -> None:
    """TransportError that names every address when no bootstrap server accepts a connection."""
    failures = []
    for server in config.bootstrap_servers:
        host, _, port = server.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), REACH_SECONDS).close()
        except OSError as error:
            failures.append(f"{server}: {error.strerror or error}")
        else:
            return
    raise TransportError(
        f"cluster '{config.alias}' cannot be reached ({'; '.join(failures)}); check "
        f"{config.alias}.bootstrap.servers and that its brokers are up"
    )


def _silent(config: ClientConfig, timeout_ms: int) -> TransportError:
    return TransportError(
        f"cluster '{config.alias}' cannot be reached ({', '.join(config.bootstrap_servers)}: "
        f"somebody listens, but does not answer as a Kafka broker within {timeout_ms / 1000:g} s); "
        f"check {config.alias}.bootstrap.servers and {config.alias}.security.protocol"
    )


class Admin:
    """Admin requests to one cluster."""

    def __init__(self, config: ClientConfig, timeout_ms: int) -> None:
        self._alias = config.alias
        self._timeout_ms = timeout_ms
        check_reachable(config)
        try:
            self._client = KafkaAdminClient(
                bootstrap_servers=list(config.bootstrap_servers),
                client_id=config.client_id or "sparkmirror",
                request_timeout_ms=config.request_timeout_ms,
                bootstrap_timeout_ms=timeout_ms,
                retry_backoff_ms=config.retry_backoff_ms,
                reconnect_backoff_ms=config.reconnect_backoff_ms,
                reconnect_backoff_max_ms=config.reconnect_backoff_max_ms,
                metadata_max_age_ms=config.metadata_max_age_ms,
            )
        except kafka.errors.KafkaError as error:
            raise _silent(config, timeout_ms) from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def list_topics(self) -> dict[str, TopicView]:
        """All topics that are not Kafka's own, with their partition counts."""
        with self._during("list topics"):
            rows = self._client.describe_topics()
        return {
            row["name"]: TopicView(len(row["partitions"]), _id_bytes(row.get("topic_id")))
            for row in rows
            if not row["error_code"] and not row["is_internal"]
        }

    def describe_topic_configs(self, topics: Iterable[str]) -> dict[str, list[TopicSetting]]:
        """All settings of these topics. A topic that may not be described is left out."""
        resources = [ConfigResource(ConfigResourceType.TOPIC, topic) for topic in topics]
        if not resources:
            return {}
        with self._during("describe topic configs"):
            found = self._client.describe_configs(resources, config_filter="all")
        # kafka-python drops the error of a resource and leaves it empty; a real topic never is.
        return {
            topic: [_setting(name, row) for name, row in rows.items()]
            for topic, rows in found.get("topic", {}).items()
            if rows
        }

    def create_topics(self, topics: Iterable[NewTopic]) -> dict[str, BrokerError | None]:
        """Create; each topic's error, None where it was created (or was there already)."""
        wanted = {
            topic.name: {
                "num_partitions": topic.partitions,
                "replication_factor": topic.replication_factor,
                "configs": dict(topic.configs),
            }
            for topic in topics
        }
        if not wanted:
            return {}
        with self._during("create topics"):
            answer = self._client.create_topics(
                wanted, timeout_ms=self._timeout_ms, raise_errors=False
            )
        return {
            row["name"]: self._outcome(f"create topic '{row['name']}'", row, "TOPIC_ALREADY_EXISTS")
            for row in answer["topics"]
        }

    def create_partitions(self, counts: Mapping[str, int]) -> dict[str, BrokerError | None]:
        """Grow topics to these counts; each topic's error, None where it has them now."""
        if not counts:
            return {}
        with self._during("create partitions"):
            answer = self._client.create_partitions(
                dict(counts), timeout_ms=self._timeout_ms, raise_errors=False
            )
        return {
            row["name"]: self._outcome(f"grow topic '{row['name']}'", row, "INVALID_PARTITIONS")
            for row in answer.to_dict()["results"]
        }

    def _outcome(self, what: str, row: Mapping[str, Any], fine: str) -> BrokerError | None:
        code = row["error_code"]
        if code == 0 or error_code(code).name == fine:
            return None
        return broker_error(f"{what} on '{self._alias}'", code, row.get("error_message"))

    @contextmanager
    def _during(self, what: str) -> Iterator[None]:
        try:
            yield
        except kafka.errors.KafkaError as error:
            text = f"{what} on '{self._alias}': {type(error).__name__}: {error}"
            if getattr(error, "retriable", False):
                raise TransportError(text) from error
            raise KafkaError(text) from error


def _setting(name: str, row: Mapping[str, Any]) -> TopicSetting:
    source = row["config_source"]
    code = CONFIG_SOURCES.get(source, 0) if isinstance(source, str) else int(source)
    return TopicSetting(name, row["value"], code, row["read_only"], row["is_sensitive"])


def _id_bytes(value: Any) -> bytes:
    return value.bytes if hasattr(value, "bytes") else str(value).encode()


CONFIG_SOURCES = {
    "UNKNOWN": 0,
    "DYNAMIC_TOPIC_CONFIG": 1,
    "DYNAMIC_BROKER_CONFIG": 2,
    "DYNAMIC_DEFAULT_BROKER_CONFIG": 3,
    "STATIC_BROKER_CONFIG": 4,
    "DEFAULT_CONFIG": 5,
}
