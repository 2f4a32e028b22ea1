"""Closes connections that have been unused for connections.max.idle.ms, as Kafka's clients do.

Runs on: executor and worker, on the event loop's thread, once a second: requests are not delayed.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import TransportError
from sparkmirror.wire.net.connection import Connection


class IdleConnections:
    """Since when each connection of a cluster has had nothing to do."""

    def __init__(self, config: ClientConfig) -> None:
        self._most_seconds = config.connections_max_idle_ms / 1000
        # Responses so far, and when they were last counted.
        self._seen: dict[Connection, tuple[int, float]] = {}

    def close(self, now: float, connections: Iterable[Connection | None]) -> None:
        """Close those that are due; a negative time keeps all of them."""
        if self._most_seconds < 0:
            return
        before, self._seen = self._seen, {}
        for connection in connections:
            if connection is None or connection.in_flight:
                continue
            responses, since = before.get(connection, (-1, now))
            is_used = responses != connection.responses
            self._seen[connection] = connection.responses, now if is_used else since
            if not is_used and now - since > self._most_seconds:
                reason = f"unused for {self._most_seconds:g} s (connections.max.idle.ms)"
                connection.fail(TransportError(reason))
