"""Whether a cluster can be reached, and if not, why: checked once before anything else.

Runs on: worker. kafka-python would try until its time is over and then report no response; the
event loop's connections know whether it was the name, the port, TLS or the login.

A bootstrap server only lists the brokers: each advertises an address of its own
(advertised.listeners), which may be one that does not exist on this side of a firewall.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import repeat
from typing import NamedTuple

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.keys.client_keys import COMMON_CLIENT_KEYS
from sparkmirror.errors import KafkaError, TransportError
from sparkmirror.wire.client.metadata import BOOTSTRAP
from sparkmirror.wire.client.network_client import LASTING, NetworkClient
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.net.event_loop import EventLoop
from sparkmirror.wire.net.stream import connect_problem
from sparkmirror.wire.protocol.api_versions import METADATA
from sparkmirror.wire.protocol.messages import decode_metadata, encode_metadata

# Enough to see whether a broker is there; Kafka's own default would keep a user waiting.
REACH_SECONDS = 5.0
SETUP_TIMEOUT = COMMON_CLIENT_KEYS["socket.connection.setup.timeout.ms"]
# A login may wait for a token server or a KDC, and for retries there.
LOGIN_SECONDS = 20.0
# A broker that is starting may drop the first connections.
MOST_FAILURES = 3
# Of brokers that are tried together, and of those that an error names.
MOST_AT_ONCE = 16
MOST_SHOWN = 5
ADVERTISED_REMEDY = (
    "set advertised.listeners of the brokers to addresses that this machine can reach and resolve"
)


class FoundBrokers(NamedTuple):
    """The bootstrap server that responded, and the address of each broker, as it advertises it."""

    server: str
    brokers: Mapping[int, str]


class AdvertisedError(TransportError):
    """Brokers advertise addresses that cannot be reached from here.

    Operator action: change advertised.listeners of these brokers, or this machine's name service.
    """


def check_reachable(config: ClientConfig) -> None:
    """Return if some bootstrap server accepts us, or at least listens without responding.

    Raises:
        AuthenticationError: certificates or login; names cluster, address, cause and remedy.
        AdvertisedError: a bootstrap server responds, but no broker is reachable at its address.
        TransportError: names every address and what is wrong with it.
    """
    found = ask_for_brokers(config)
    problems = find_unreachable(found.brokers, connect_seconds(config))
    if problems and len(problems) == len(found.brokers):
        raise AdvertisedError(describe_unreachable(config, found, problems))


def ask_for_brokers(config: ClientConfig) -> FoundBrokers:
    """The first bootstrap server that accepts us, and the brokers it lists.

    Raises:
        AuthenticationError, TransportError: as `check_reachable` does.
    """
    unreachable, rejected = [], []
    for server in config.bootstrap_servers:
        if problem := connect_to(server, connect_seconds(config)):
            unreachable.append(f"{server}: {problem}")
            continue
        try:
            return FoundBrokers(server, _ask(replace(config, bootstrap_servers=(server,))))
        except KafkaError as error:
            rejected.append(error)
    if rejected:
        raise rejected[0]
    raise TransportError(
        f"cluster '{config.alias}' cannot be reached ({'; '.join(unreachable)}); check "
        f"{config.servers_key} and that its brokers are up"
    )


def connect_seconds(config: ClientConfig) -> float:
    """How long to try to connect: as the settings have it, if at all."""
    is_set = config.socket_connection_setup_timeout_ms != SETUP_TIMEOUT.default
    return config.socket_connection_setup_timeout_ms / 1000 if is_set else REACH_SECONDS


def find_unreachable(brokers: Mapping[int, str], seconds: float) -> dict[int, str]:
    """Why no connection can be made to these brokers; those that accept one are left out."""
    if not brokers:
        return {}
    with ThreadPoolExecutor(min(len(brokers), MOST_AT_ONCE)) as pool:
        found = pool.map(connect_to, brokers.values(), repeat(seconds))
        problems = zip(brokers, found, strict=True)
        return {node: problem for node, problem in problems if problem}


def describe_unreachable(
    config: ClientConfig, found: FoundBrokers, problems: Mapping[int, str]
) -> str:
    """Which cluster, who listed the addresses, which of them are wrong, and what to change."""
    return (
        f"cluster '{config.alias}': {found.server} responds, but "
        f"{_advertised(found.brokers, problems)} cannot be reached from here; "
        f"{ADVERTISED_REMEDY}"
    )


def _advertised(brokers: Mapping[int, str], problems: Mapping[int, str]) -> str:
    def row(node: int) -> str:
        return f"{brokers[node]} of broker {node} ({problems[node]})"

    shown = [row(node) for node in sorted(problems)[:MOST_SHOWN]]
    more = len(problems) - len(shown)
    addresses = "address" if len(problems) == 1 else "addresses"
    return f"the advertised {addresses} {', '.join(shown)}" + (f" and {more} more" if more else "")


def connect_to(server: str, seconds: float) -> str:
    """Why nothing listens there; empty if something does."""
    host, _, port = server.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), seconds).close()
    except OSError as error:
        return connect_problem(error)
    return ""


def _ask(config: ClientConfig) -> dict[int, str]:
    trial = _Trial(config)
    try:
        trial.run()
    finally:
        trial.close()
    return trial.brokers


class _Trial:
    """Connects, logs in and asks which brokers there are.

    A broker that requires a login returns its brokers only after that.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._loop = EventLoop()
        self._cluster = NetworkClient(self._loop, config, BufferPool(keep_bytes=0), is_trial=True)
        # Addresses by broker; empty while there is no response.
        self.brokers: dict[int, str] = {}
        self._asked: Connection | None = None
        self._has_response = False
        self._failures: list[KafkaError] = []

    def run(self) -> None:
        """Return on a response or a time-out; raise the reason if there will be none."""
        seconds = LOGIN_SECONDS if self._cluster.security.is_sasl else REACH_SECONDS
        seconds = max(seconds, connect_seconds(self._cluster.config))
        self._loop.run_until(self._step, seconds)
        error = self._cluster.last_error
        if error is None and self._failures:
            error = self._failures[-1]
        if error is not None and not self._has_response:
            raise error

    def close(self) -> None:
        self._cluster.close()
        self._loop.close()

    def _step(self) -> bool:
        connection = self._cluster.any_connection()
        if connection is not None and connection is not self._asked:
            self._asked = connection
            version = connection.versions.choose(METADATA)
            connection.send(
                (METADATA.key, version),
                [encode_metadata([], version)],
                lambda response, _: self._on_response(response, version),
                self._failed,
                REACH_SECONDS,
                flexible=version >= METADATA.first_flexible,
            )
        is_rejected = isinstance(self._cluster.last_error, LASTING)
        failures = self._cluster.failures(BOOTSTRAP) + len(self._failures)
        return is_rejected or failures >= MOST_FAILURES or self._has_response

    def _on_response(self, response: memoryview, version: int) -> None:
        nodes = decode_metadata(response, version).nodes
        self.brokers = {node: _address(host, port) for node, (host, port) in nodes.items()}
        self._has_response = True

    def _failed(self, error: KafkaError) -> None:
        self._failures.append(self._cluster.last_error or error)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
