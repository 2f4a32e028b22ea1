"""Ends connections that keep the REST server waiting: idle, half-sent requests, unread responses.

Runs on: worker, in the event loop of the REST server. Jetty closes a connection after 30 s without
a byte. With that rule alone a client could keep one for ever by sending single bytes, so the head
of a request has a deadline too. `ConnectApi` limits the time of a complete request.

    state                                 limit                                  then
    no request, or a part of its head     IDLE from the start of the wait, and   close
                                          again from its first byte
    head complete, body not               IDLE from the last byte                drop
    request complete, response not        none                                   -
    response waits to be read             IDLE from the last byte read           drop
    response sent, body still coming      LINGER                                 drop
"""

from __future__ import annotations

import logging
import resource
import time
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

log = logging.getLogger(__name__)

IDLE_SECONDS = 30.0
_LINGER_SHARE = 0.2
_CHECKS = 10  # within the limit
# More connections are dropped: connections to Kafka need the descriptors.
_MOST_CONNECTIONS = 1000
_DESCRIPTORS_SHARE = 4
_WARN_SECONDS = 60.0


class GuardedProtocol(H11Protocol):
    """uvicorn's protocol with limits for how long a client may do nothing."""

    idle_seconds = IDLE_SECONDS
    most_connections = _MOST_CONNECTIONS
    _warned_at = float("-inf")

    def connection_made(self, transport: Any) -> None:
        """Called by asyncio, after the TLS handshake."""
        super().connection_made(transport)
        now = time.monotonic()
        self._waits_since = now
        self._is_head_begun = False
        self._last_byte_at = now
        self._unsent = (0, now)
        self._responded_at: float | None = None
        if len(self.connections) > self.most_connections:
            self._warn_full()
            transport.abort()
            return
        self._schedule()

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        self._last_byte_at = time.monotonic()
        if self._is_between_requests() and not self._is_head_begun:
            self._is_head_begun = True
            self._waits_since = self._last_byte_at
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Called by uvicorn when it has written the last byte of a response."""
        self._waits_since = self._responded_at = time.monotonic()
        self._is_head_begun = False
        super().on_response_complete()

    def _schedule(self) -> None:
        self.loop.call_later(self.idle_seconds / _CHECKS, self._check)

    def _check(self) -> None:
        if self not in self.connections:
            return
        if self._is_client_slow(time.monotonic()):
            log.debug("the REST server closes an idle connection from %s", self.client)
            self.transport.abort()
            return
        self._schedule()

    def _is_client_slow(self, now: float) -> bool:
        if self._watch_unsent(now):
            return True
        if self._is_between_requests():
            return now - self._waits_since > self.idle_seconds
        if self.cycle is None or self.cycle.response_complete:
            return now - (self._responded_at or now) > self.idle_seconds * _LINGER_SHARE
        is_ours = (
            self.flow.read_paused or not self.cycle.more_body or self.cycle.waiting_for_100_continue
        )
        return not is_ours and now - self._last_byte_at > self.idle_seconds

    def _is_between_requests(self) -> bool:
        return self.conn.their_state in (h11.IDLE, h11.DONE, h11.MUST_CLOSE) and (
            self.cycle is None or self.cycle.response_complete
        )

    def _watch_unsent(self, now: float) -> bool:
        """Whether the client has read no byte of its response for too long."""
        size, since = self._unsent
        left = self.transport.get_write_buffer_size()
        if left == 0 or left != size:
            self._unsent = (left, now)
            return False
        return now - since > self.idle_seconds

    def _warn_full(self) -> None:
        now = time.monotonic()
        if now - GuardedProtocol._warned_at > _WARN_SECONDS:
            GuardedProtocol._warned_at = now
            log.warning(
                "the REST server has %d connections, its maximum, and drops further ones",
                self.most_connections,
            )


def guarded_protocol(idle_seconds: float = IDLE_SECONDS) -> type[GuardedProtocol]:
    """The protocol class with these limits, for uvicorn."""
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    most = min(_MOST_CONNECTIONS, max(1, descriptors // _DESCRIPTORS_SHARE))
    limits = {"idle_seconds": idle_seconds, "most_connections": most}
    return type("LimitedProtocol", (GuardedProtocol,), limits)
