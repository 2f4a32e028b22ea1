"""One broker as we reach it: the connection to it, or the wait before the next attempt.

Runs on: executor and worker, on the event loop's thread. `cluster` decides when to connect.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.net.outages import SilentError
from sparkmirror.wire.protocol.api_versions import ApiVersions


class Traffic(NamedTuple):
    """Bytes to and from brokers, and connections that are open."""

    received_bytes: int = 0
    sent_bytes: int = 0
    connections: int = 0


@dataclass(slots=True)
class BrokerConnection:
    """Our connection to one broker. `failures` are attempts in a row; waits grow with them."""

    connection: Connection | None = None
    ready: bool = False
    failures: int = 0
    not_before: float = 0.0
    # Of the last connection that got so far.
    versions: ApiVersions = field(default_factory=ApiVersions)
    _failures_before: int = 0
    _responses_at_login: int = 0

    @property
    def has_served(self) -> bool:
        """Whether the broker has responded on this connection after the login."""
        connection = self.connection
        return (
            self.ready
            and connection is not None
            and connection.responses > self._responses_at_login
        )

    def open(self, connection: Connection) -> None:
        """The login is over, and requests may leave."""
        self.ready = True
        self._failures_before, self.failures = self.failures, 0
        self._responses_at_login = connection.responses

    def close(self) -> Connection | None:
        """Forget the connection, and return it.

        A broker that accepts us and hangs up at the first request has not been reached: otherwise
        we would reconnect at once, for ever.
        """
        connection = self.connection
        if self.ready and not self.has_served:
            self.failures = self._failures_before
        self.connection, self.ready = None, False
        return connection


def check_open(connection: Connection, address: str, seconds: float) -> None:
    """The time for a handshake is over."""
    if not connection.is_open:
        text = f"connect to {address}: no response in time"
        connection.fail(SilentError(text, seconds, address))
