"""The producer id under which batches are numbered: asked for once, and again when it is lost.

Runs on: executor, on the event loop's thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sparkmirror.errors import DeniedError, KafkaError, RefusedError
from sparkmirror.retry import Backoff, RetryPolicy
from sparkmirror.wire.access import PRODUCING, response_error
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.protocol import messages
from sparkmirror.wire.protocol.api_versions import INIT_PRODUCER_ID

# How soon a denied request is retried.
DENIED = RetryPolicy.every(2.0)


class ProducerIdAndEpoch(NamedTuple):
    """A producer id and its epoch."""

    producer_id: int
    epoch: int


class TransactionManager:
    """Keeps one identity, and calls `on_known` whenever there is a new one."""

    def __init__(
        self,
        cluster: NetworkClient,
        timeout: float,
        on_known: Callable[[], None],
        on_denied: Callable[[DeniedError], None],
    ) -> None:
        """`on_denied` is called repeatedly while the request is denied."""
        self._cluster = cluster
        self._on_denied = on_denied
        self._timeout = timeout
        self._on_known = on_known
        self._asking = False
        self._backoff = Backoff(cluster.retries.requests, cluster.loop.clock)
        self.current: ProducerIdAndEpoch | None = None

    def renew(self) -> None:
        """Ask for one that no broker has seen."""
        self.current = None
        self.ask()

    def ask(self) -> None:
        """Ask, unless it is known or asked for; without a connection the next call tries again."""
        if self._asking or self.current is not None:
            return
        connection = self._cluster.any_connection()
        if connection is None:
            return
        self._asking = True
        connection.send(
            connection.choose(INIT_PRODUCER_ID),
            [messages.encode_init_producer_id()],
            lambda response, _: self._on_response(response),
            lambda _: self._retry(),
            self._timeout,
        )

    def _on_response(self, response: memoryview) -> None:
        code, producer_id, epoch = messages.decode_init_producer_id(response)
        if code:
            config = self._cluster.config
            what = f"ask '{config.alias}' for a producer id"
            self._on_error(response_error(config, what, code, PRODUCING))
            return
        self._asking = False
        self._backoff.succeeded()
        self.current = ProducerIdAndEpoch(producer_id, epoch)
        self._on_known()

    def _on_error(self, error: KafkaError) -> None:
        if isinstance(error, DeniedError):
            self._on_denied(error)
            self._cluster.loop.call_later(DENIED.wait(1), self._retry)
            return
        if not error.retriable:
            raise RefusedError(str(error)) from error
        self._retry()

    def _retry(self) -> None:
        self._asking = False
        self._cluster.loop.call_later(self._backoff.failed(), self.ask)
