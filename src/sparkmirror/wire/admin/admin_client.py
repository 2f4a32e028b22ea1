"""The connection behind every admin request: one cluster, through kafka-python.

Runs on: worker, on any thread; every call blocks for at most the admin timeout.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, TypeVar

import kafka.errors
from kafka import KafkaAdminClient
from kafka.protocol.admin import DescribeClusterRequest
from kafka.protocol.metadata import MetadataRequest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import BrokerError, KafkaError, TransportError
from sparkmirror.mirror.permissions import Permission
from sparkmirror.wire.access import response_error
from sparkmirror.wire.client.reachability import (
    AdvertisedError,
    ask_for_brokers,
    check_reachable,
    connect_seconds,
    describe_unreachable,
    find_unreachable,
)
from sparkmirror.wire.net.stream import SOCKET_OPTIONS
from sparkmirror.wire.security import Security

# kafka-python logs every reconnect; failures that matter are returned as errors here.
logging.getLogger("kafka").setLevel(logging.CRITICAL)

# Of topics or rules in one request, so that no response grows beyond some megabytes.
MOST_PARTS = 500
# Of partitions that one request makes: controllers reject more than 10,000 (KAFKA-17870), and have
# request.timeout.ms for it.
MOST_PARTITIONS = 2000

# The text of kafka-python when a connection breaks, for any reason.
UNCLEAR = (
    kafka.errors.KafkaConnectionError,
    kafka.errors.KafkaTimeoutError,
    kafka.errors.NodeNotReadyError,
    kafka.errors.SaslAuthenticationFailedError,
)

T = TypeVar("T")
# Later versions leave this to DescribeCluster (KIP-700).
LAST_METADATA_WITH_PERMISSIONS = 10
# kafka-python has no value for never, which is 25 days here; with 0 it would check all the time.
LEAST_IDLE_MS, LONGEST_IDLE_MS = 1000, 2**31 - 1


class _AdminClient(KafkaAdminClient):  # type: ignore[misc]
    """kafka-python's admin client, with two settings that its connections have and it lacks."""

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = {
        **KafkaAdminClient.DEFAULT_CONFIG,
        "socket_connection_setup_timeout_ms": 10_000,
        "socket_connection_setup_timeout_max_ms": 30_000,
    }


def client_options(config: ClientConfig, timeout_ms: int) -> dict[str, Any]:
    """The settings of `config` under kafka-python's names."""
    idle_ms, most_ms = config.connections_max_idle_ms, config.socket_connection_setup_timeout_max_ms
    return {
        "bootstrap_servers": list(config.bootstrap_servers),
        "client_id": config.client_id or "sparkmirror",
        "request_timeout_ms": config.request_timeout_ms,
        "bootstrap_timeout_ms": timeout_ms,
        "retry_backoff_ms": config.retry_backoff_ms,
        "reconnect_backoff_ms": config.reconnect_backoff_ms,
        "reconnect_backoff_max_ms": config.reconnect_backoff_max_ms,
        "metadata_max_age_ms": config.metadata_max_age_ms,
        "connections_max_idle_ms": max(idle_ms, LEAST_IDLE_MS) if idle_ms >= 0 else LONGEST_IDLE_MS,
        "socket_connection_setup_timeout_ms": config.socket_connection_setup_timeout_ms,
        "socket_connection_setup_timeout_max_ms": most_ms,
        "socket_options": _socket_options(config),
        **Security.of(config).kafka_python_options(),
    }


def _socket_options(config: ClientConfig) -> list[tuple[int, int, int]]:
    sizes = {
        socket.SO_SNDBUF: config.send_buffer_bytes,
        socket.SO_RCVBUF: config.receive_buffer_bytes,
    }
    return SOCKET_OPTIONS + [
        (socket.SOL_SOCKET, at, size) for at, size in sizes.items() if size > 0
    ]


def _silent(config: ClientConfig, timeout_ms: int) -> TransportError:
    return TransportError(
        f"cluster '{config.alias}' cannot be reached ({', '.join(config.bootstrap_servers)}: "
        f"the port is open, but no Kafka broker responds within {timeout_ms / 1000:g} s); "
        f"check {config.servers_key} and {config.key('security.protocol')}"
    )


class ClusterView(NamedTuple):
    """A cluster as its brokers describe it.

    `operations` are the codes of what we may do with the cluster (KIP-430); None: unknown.
    """

    cluster_id: str
    brokers: tuple[int, ...]
    operations: frozenset[int] | None


class AdminClient:
    """Sends admin requests to one cluster; subclasses know the requests."""

    def __init__(self, config: ClientConfig, timeout_ms: int) -> None:
        self._config = config
        self._alias = config.alias
        # default.api.timeout.ms bounds every call of an admin client, with its retries (KIP-533).
        self._timeout_ms = min(timeout_ms, config.default_api_timeout_ms)
        check_reachable(config)
        try:
            self._client = _AdminClient(**client_options(config, self._timeout_ms))
        except kafka.errors.KafkaError as error:
            raise _silent(config, self._timeout_ms) from error

    @property
    def release(self) -> tuple[int, ...]:
        """The release of the brokers, inferred from the requests they speak: (4, 1)."""
        with self._during("ask for the version"):
            return tuple(self._manager.broker_version)

    @property
    def alias(self) -> str:
        """The cluster's alias in the settings."""
        return self._alias

    def cluster_id(self) -> str:
        """The id of the cluster, generated when it was created."""
        return self._describe_cluster().cluster_id

    def broker_count(self) -> int:
        """How many brokers the cluster has now."""
        return len(self._describe_cluster().brokers)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _describe_cluster(self) -> ClusterView:
        """kafka-python's own method fails at brokers of 2.8 to 3.6, which lack fields it expects.

        Brokers before 2.8 know only Metadata, whose versions before 11 return the same.
        """
        what = "describe the cluster"
        if not self._speaks(DescribeClusterRequest):
            response = self._send(
                what,
                MetadataRequest(
                    topics=[],
                    allow_auto_topic_creation=False,
                    include_cluster_authorized_operations=True,
                    max_version=LAST_METADATA_WITH_PERMISSIONS,
                ),
            )
            brokers = tuple(row.node_id for row in response.brokers)
        else:
            request = DescribeClusterRequest(include_cluster_authorized_operations=True)
            response = self._send(what, request)
            if response.error_code:
                raise self._error(what, response.error_code, detail=response.error_message)
            brokers = tuple(row.broker_id for row in response.brokers)
        allowed = response.authorized_operations
        operations = None if allowed is None else frozenset(allowed)
        return ClusterView(str(response.cluster_id or ""), brokers, operations)

    def _speaks(self, request: Any) -> bool:
        """Whether the brokers know this request, in a version that kafka-python knows too."""
        versions = self._manager.broker_version_data
        try:
            versions.api_version(request)
        except kafka.errors.IncompatibleBrokerVersion:
            return False
        return True

    def _send(self, what: str, request: Any, node_id: int | None = None) -> Any:
        """Send a request for which kafka-python's own methods return less."""

        async def send() -> Any:
            return await self._manager.send(request, node_id=node_id)

        with self._during(what):
            return self._manager.run(send)

    @property
    def _manager(self) -> Any:
        return self._client._manager  # noqa: SLF001

    def _error(
        self, what: str, code: int, *needed: Permission, detail: str | None = None
    ) -> BrokerError:
        """The error of a request that needs these permissions."""
        return response_error(
            self._config, f"{what} on '{self._alias}'", code, *needed, detail=detail
        )

    @contextmanager
    def _during(self, what: str) -> Iterator[None]:
        try:
            yield
        except kafka.errors.KafkaError as error:
            text = f"{what} on '{self._alias}': {type(error).__name__}: {error}"
            if isinstance(error, UNCLEAR):
                self._raise_cause(text)
            if getattr(error, "retriable", False):
                raise TransportError(text) from error
            raise KafkaError(text) from error

    def _raise_cause(self, text: str) -> None:
        """Raise why the connection broke, if it can be found out: kafka-python does not know.

        Raises:
            AuthenticationError, TransportError: it is TLS, the login, or an address.
        """
        found = ask_for_brokers(self._config)
        if problems := find_unreachable(found.brokers, connect_seconds(self._config)):
            why = describe_unreachable(self._config, found, problems)
            raise AdvertisedError(f"{text}: {why}")


def in_parts(items: Sequence[T], partitions: Callable[[T], int] = lambda _: 1) -> Iterator[list[T]]:
    """The items of one request after the other; one with very many partitions goes alone."""
    part: list[T] = []
    size = 0
    for item in items:
        count = max(1, partitions(item))  # -1: the cluster's own default
        if part and (len(part) == MOST_PARTS or size + count > MOST_PARTITIONS):
            yield part
            part, size = [], 0
        part.append(item)
        size += count
    if part:
        yield part
