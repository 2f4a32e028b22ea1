"""Requests that a thread waits for: blocking calls over the event loop's connections.

Runs on: worker, one thread at a time. Group members and transactional writers use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sparkmirror.batches.header import Buffer
from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import KafkaError, TransportError
from sparkmirror.mirror.permissions import Operation, group_permission, transaction_permission
from sparkmirror.wire.access import response_error
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.net.event_loop import EventLoop
from sparkmirror.wire.protocol.api_versions import FIND_COORDINATOR, Api
from sparkmirror.wire.protocol.group_messages import (
    decode_find_coordinator,
    encode_find_coordinator,
)

# How soon a cancelled call ends.
SLICE_SECONDS = 0.1
# A broker that is alive accepts sooner; the response itself may take longer.
CONNECT_SECONDS = 5.0


class PendingRequest:
    """One request in flight. `sent_at` is the time before its first byte left."""

    def __init__(self, sent_at: float, version: int = 0) -> None:
        self.sent_at = sent_at
        self.version = version
        self.response: bytes | None = None
        self.error: KafkaError | None = None

    @property
    def is_over(self) -> bool:
        return self.response is not None or self.error is not None

    def result(self) -> memoryview:
        """The response; raises the KafkaError if there is none."""
        if self.error is not None:
            raise self.error
        assert self.response is not None
        return memoryview(self.response)


class BlockingClient:
    """Blocking requests to one cluster; `clock` is for deadlines and `PendingRequest.sent_at`."""

    def __init__(
        self, config: ClientConfig, clock: Callable[[], float], is_over: Callable[[], bool]
    ) -> None:
        """Every wait ends soon once `is_over` returns True."""
        self.clock = clock
        self.loop = EventLoop()
        self.cluster = NetworkClient(self.loop, config, BufferPool(keep_bytes=0))
        self.config = config
        self._alias = config.alias
        self._is_over = is_over

    def notice_closed(self) -> None:
        """After a pause: find out which connections were closed, before they are used."""
        self.loop.run_once(0.0)

    def close(self) -> None:
        self.cluster.close()
        self.loop.close()

    def wait(self, done: Callable[[], bool], seconds: float) -> bool:
        """Let the connections work until `done`; return whether it is."""
        deadline = self.clock() + seconds
        while not done():
            left = deadline - self.clock()
            if left <= 0 or self._is_over():
                return False
            self.loop.run_once(min(left, SLICE_SECONDS))
        return True

    def send(
        self,
        node: int | None,
        api: Api,
        body: Sequence[Buffer],
        seconds: float,
        connection_index: int = 0,
    ) -> PendingRequest:
        """Send to `node`, or to any broker; waits for a connection, not for the response.

        The body must be the same in all versions of `api` that we speak.

        Raises:
            TransportError: no connection within `seconds`, or CONNECT_SECONDS.
            UnsupportedVersionError: the broker does not speak the request.
        """
        connection = self._connect(node, connection_index, min(seconds, CONNECT_SECONDS))
        key, version = connection.choose(api)
        call = PendingRequest(self.clock(), version)

        def on_response(response: memoryview, _: object) -> None:
            call.response = bytes(response)

        def on_failure(error: KafkaError) -> None:
            call.error = error

        connection.send((key, version), body, on_response, on_failure, seconds)
        return call

    def ask(
        self,
        what: str,
        node: int | None,
        api: Api,
        body: Sequence[Buffer],
        seconds: float,
    ) -> memoryview:
        """Send and wait for the response; TransportError if none comes in time."""
        return self.call(what, node, api, body, seconds).result()

    def call(
        self,
        what: str,
        node: int | None,
        api: Api,
        body: Sequence[Buffer],
        seconds: float,
    ) -> PendingRequest:
        """The same, for callers that need the version to read the response."""
        call = self.send(node, api, body, seconds)
        if not self.wait(lambda: call.is_over, seconds):
            raise self.too_late(what, seconds)
        return call

    def find_coordinator(self, key: str, kind: int, seconds: float) -> int:
        """The coordinator of a group or a transactional id.

        Raises:
            TransportError: no broker returns it within `seconds`.
            BrokerError: it has none now, or may not be known to us.
        """
        what = f"find the coordinator of '{key}' on '{self._alias}'"
        body = [encode_find_coordinator(key, kind)]
        found = decode_find_coordinator(self.ask(what, None, FIND_COORDINATOR, body, seconds))
        if found.code:
            # Finding needs DESCRIBE, which is part of what the caller will need next.
            needed = (
                group_permission(Operation.READ, key),
                transaction_permission(Operation.WRITE, key),
            )
            raise response_error(self.config, what, found.code, *needed)
        self.cluster.metadata.learn_address(found.node, found.host, found.port)
        return found.node

    def too_late(self, what: str, seconds: float) -> TransportError:
        """The error of a call that ran out of time, with the reason if it is known."""
        why = self.cluster.last_error or "no response"
        return TransportError(f"{what}: not done in {seconds:g} s: {why}")

    def _connect(self, node: int | None, connection_index: int, seconds: float) -> Connection:
        found: list[Connection] = []

        def find() -> bool:
            cluster = self.cluster
            ready = (
                cluster.any_connection()
                if node is None
                else cluster.connection(node, connection_index)
            )
            if ready is not None:
                found.append(ready)
            return ready is not None

        if not self.wait(find, seconds):
            name = "any broker" if node is None else f"broker {node}"
            raise self.too_late(f"connect to {name} of '{self._alias}'", seconds)
        return found[0]
