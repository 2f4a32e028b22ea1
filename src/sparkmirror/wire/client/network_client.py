"""Our connections to the brokers of one Kafka cluster: opened when wanted, again with back-off.

Runs on: executor and worker, on the event loop's thread. What the cluster reports of its topics is
in `metadata`. Retries of requests are decided by their owners (fetcher, producer) from the table in
error_codes.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import (
    AuthenticationError,
    KafkaError,
    TransportError,
    UnsupportedVersionError,
)
from sparkmirror.wire.client.broker_link import BrokerConnection, Traffic, check_open
from sparkmirror.wire.client.metadata import Metadata
from sparkmirror.wire.client.retry_policies import REFUSED_LOGIN, RetryPolicies
from sparkmirror.wire.net.buffer_pool import BufferPool, PooledBuffer
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.net.event_loop import EventLoop
from sparkmirror.wire.net.idle import IdleConnections
from sparkmirror.wire.net.outages import OUTAGES, BrokerAddress
from sparkmirror.wire.net.stream import HungUp, Stream
from sparkmirror.wire.protocol import messages
from sparkmirror.wire.protocol.api_versions import Api
from sparkmirror.wire.security import Security

log = logging.getLogger(__name__)

OpenStream = Callable[[str, int, int], Stream]
"""(host, port, how many attempts have failed) -> a stream that is being connected."""

# While none is connected another broker is tried: a frozen one accepts connections, and is silent.
CONNECT_PATIENCE_SECONDS = 2.0
# A rejected login is logged again after this time.
LOG_AGAIN_SECONDS = 60.0
# Errors that no retry cures before an operator has changed something.
LASTING = (AuthenticationError, UnsupportedVersionError)
NEVER_REACHED = "; if that broker is up, correct its advertised.listeners"


class NetworkClient:
    """One connection per broker, and what `metadata` knows of the cluster.

    Several connections to the same broker are numbered by `connection_index`.
    """

    def __init__(
        self,
        loop: EventLoop,
        config: ClientConfig,
        pool: BufferPool,
        open_stream: OpenStream | None = None,
        *,
        is_trial: bool = False,
    ) -> None:
        """Nothing is logged of a trial: its caller reports how it ended."""
        self.loop = loop
        self.config = config
        self.pool = pool
        # Why a broker could not be reached; None again as soon as one responds.
        self.last_error: KafkaError | None = None
        self.security = Security.of(config)
        self.retries = RetryPolicies.of(config)
        self.metadata = Metadata(loop, config, self.retries.requests, self.any_connection)
        self.listeners = self.metadata.listeners
        self._open_stream = open_stream or self._stream
        # By (broker, connection index).
        self._links: dict[tuple[int, int], BrokerConnection] = {}
        self._last_attempt = float("-inf")
        self._log_again_at = float("-inf")
        self._closed = False
        # Whether any broker has responded after the login, on a connection that is gone.
        self._has_served = False
        self._is_trial = is_trial
        # Of connections that are gone.
        self._earlier = Traffic()
        self._idle = IdleConnections(config)
        self._tick()

    def connection(self, node: int, connection_index: int = 0) -> Connection | None:
        """The connection to `node` if ready; else one is opened, and listeners are notified."""
        link = self._links.get((node, connection_index))
        if link is None:
            link = self._links[node, connection_index] = BrokerConnection()
        if link.ready:
            return link.connection
        if link.connection is None and self.loop.clock() >= link.not_before and not self._closed:
            self._connect(node, link)
        return None

    def is_opening(self, node: int, connection_index: int) -> bool:
        """Whether that connection is being opened and not ready yet."""
        link = self._links.get((node, connection_index))
        return link is not None and link.connection is not None and not link.ready

    def is_failing(self, node: int) -> bool:
        """True while the last attempt to reach `node`, or its connection, has failed."""
        return self.failures(node) > 0

    def failures(self, node: int) -> int:
        """How many attempts to reach `node` have failed since the last that did not."""
        link = self._links.get((node, 0))
        return 0 if link is None else link.failures

    def any_connection(self) -> Connection | None:
        """The least busy connection of all that are ready, or None while one is being opened.

        Responses come in order: behind a long poll, or at a frozen broker, a request waits.
        """
        links = self._links.values()
        ready = [link.connection for link in links if link.ready and link.connection is not None]
        if ready:
            even = (
                self.metadata.topic_ids.are_in_doubt
            )  # so that no broker is asked more often than others
            return min(ready, key=lambda each: (not even and each.in_flight, random.random()))
        if not any(link.connection for link in links) or self._is_slow_to_connect():
            self._connect_another()
        return None

    def _is_slow_to_connect(self) -> bool:
        return self.loop.clock() - self._last_attempt > CONNECT_PATIENCE_SECONDS

    def _connect_another(self) -> None:
        links = self._links
        untried = [
            n for n in self.metadata.addresses if (n, 0) not in links or not links[n, 0].connection
        ]
        for node in random.sample(untried, len(untried)):
            self.connection(node)
            if links[node, 0].connection is not None:
                break

    @property
    def traffic(self) -> Traffic:
        """Of all connections since the start."""
        links = self._links.values()
        found = [link.connection for link in links if link.connection is not None]
        return Traffic(
            self._earlier.received_bytes + sum(each.received_bytes for each in found),
            self._earlier.sent_bytes + sum(each.sent_bytes for each in found),
            sum(each.is_open for each in found),
        )

    def newest(self, api: Api) -> int:
        """The newest version of `api` that some broker speaks, once one has responded."""
        return max(link.versions.get(api.key, (0, -1))[1] for link in self._links.values())

    def close(self) -> None:
        """Close all connections."""
        self._closed = True
        self.metadata.close()
        for link in list(self._links.values()):
            if link.connection is not None:
                link.connection.fail(TransportError(f"'{self.config.alias}' is being closed"))

    # -- connections -----------------------------------------------------------------------------

    def _stream(self, host: str, port: int, attempt: int) -> Stream:
        send, receive = self.config.send_buffer_bytes, self.config.receive_buffer_bytes
        return self.security.open_stream(host, port, attempt, send, receive)

    def _connect(self, node: int, link: BrokerConnection) -> None:
        self._last_attempt = self.loop.clock()
        host, port = self.metadata.addresses.get(node, ("", 0))
        if not host:  # a leader without a known address: the next metadata response has it
            self.metadata.refresh()
            return
        try:
            stream = self._open_stream(host, port, link.failures)
        except KafkaError as error:
            self._on_closed(node, link, error)
            return
        link.connection = Connection(
            self.loop,
            stream,
            self.config.client_id,
            self.pool,
            on_open=lambda: self._handshake(node, link, host),
            on_closed=lambda error: self._on_closed(node, link, error),
        )
        connection = link.connection
        patience = self.retries.setup_timeouts.wait(link.failures + 1)
        self.loop.call_later(patience, lambda: check_open(connection, f"{host}:{port}", patience))

    def _handshake(self, node: int, link: BrokerConnection, host: str) -> None:
        """Learn which versions the broker speaks (KIP-35), then log in."""
        assert link.connection is not None
        connection, timeout = link.connection, self.config.request_timeout_ms / 1000

        def on_response(response: memoryview, _: PooledBuffer | None) -> None:
            connection.versions = link.versions = messages.decode_api_versions(response)
            link.versions.require()
            authenticator = self.security.authenticator(host)
            if authenticator is None:
                self._on_ready(node, link)
            else:
                authenticator.start(connection, timeout, lambda: self._on_ready(node, link))

        # When it fails, the connection's own on_closed does what is needed.
        connection.send(messages.API_VERSIONS, [], on_response, lambda _: None, timeout)

    def _on_ready(self, node: int, link: BrokerConnection) -> None:
        assert link.connection is not None
        link.open(link.connection)
        self.last_error = None
        OUTAGES.responded(self.config)
        for listener in self.listeners:
            listener.on_connected(node)
        self.metadata.ask_if_due()

    def _on_closed(self, node: int, link: BrokerConnection, error: KafkaError) -> None:
        was_ready = link.ready
        self._has_served = self._has_served or link.has_served
        connection = link.close()
        if connection is not None:
            received, sent, _ = self._earlier
            received, sent = received + connection.received_bytes, sent + connection.sent_bytes
            self._earlier = Traffic(received, sent)
        if self._closed:
            return
        if was_ready and connection is not None and connection.was_idle:
            # Brokers close connections that were unused for ten minutes.
            log.debug("'%s', broker %d: %s", self.config.alias, node, error)
            return
        host, port = self.metadata.addresses.get(node, ("?", 0))
        rejected = isinstance(error, LASTING)
        kind = type(error) if isinstance(error, LASTING) else TransportError
        hint = self._hint(connection) if isinstance(error, HungUp) and connection else ""
        if node >= 0 and not link.versions and not rejected:
            hint = hint or NEVER_REACHED
        place = f"cluster '{self.config.alias}', broker {host}:{port}"
        self.last_error = kind(f"{place}: {error}{hint}")
        self._log_failure(link, error, (host, port))
        link.failures += 1
        wait = self.retries.reconnects.wait(link.failures)
        if rejected:
            wait = max(wait, REFUSED_LOGIN.wait(link.failures))
        link.not_before = self.loop.clock() + wait
        self.metadata.refresh()
        self.loop.call_later(wait, lambda: self._reconnect(node))

    def _hint(self, connection: Connection) -> str:
        """Why a broker may have hung up; empty if one has served us with these settings."""
        has_served = self._has_served or any(link.has_served for link in self._links.values())
        return "" if has_served else self.security.hint(connection)

    def _log_failure(
        self, link: BrokerConnection, error: KafkaError, address: BrokerAddress
    ) -> None:
        """Log the first failure, and a login that is still rejected; not a silent cluster."""
        now = self.loop.clock()
        rejected = isinstance(error, AuthenticationError)
        is_new = link.failures == 0 or (rejected and now >= self._log_again_at)
        if self._is_trial or OUTAGES.report(
            self.config, error, address, self.metadata.addresses.values()
        ):
            return
        if is_new:
            log.warning("%s", self.last_error)
            self._log_again_at = now + LOG_AGAIN_SECONDS

    def _reconnect(self, node: int) -> None:
        """Reconnect only to brokers that are needed: listeners ask for them."""
        if not self._closed:
            self.metadata.notify(None)
            self.metadata.ask_if_due()

    def _tick(self) -> None:
        """Once a second: overdue requests, idle connections, old metadata."""
        if self._closed:
            return
        now = self.loop.clock()
        for link in list(self._links.values()):
            if link.connection is not None:
                link.connection.fail_if_overdue(now)
        self._idle.close(now, [link.connection for link in self._links.values() if link.ready])
        self.metadata.tick()
        self.loop.call_later(1.0, self._tick)
