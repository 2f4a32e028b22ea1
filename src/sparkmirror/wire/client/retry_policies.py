"""Which waits a client's settings ask for after failures: requests, connections, rejected logins.

Runs on: executor and worker. Pure. The rule by which they grow is in `retry`.
"""

from __future__ import annotations

from typing import NamedTuple, Self

from sparkmirror.config.clients import ClientConfig
from sparkmirror.retry import RetryPolicy

# Accounts are locked after many attempts, and brokers log each one.
REFUSED_LOGIN = RetryPolicy(1.0, 10.0, jitter=0.0)


class RetryPolicies(NamedTuple):
    """Those of one client.

    requests        after a failed request: retry.backoff.ms to retry.backoff.max.ms (KIP-580)
    reconnects      after a failed connection: reconnect.backoff.ms to its maximum (KIP-144)
    setup_timeouts  how long an attempt to connect may take, from the first on (KIP-601):
                    socket.connection.setup.timeout.ms to its maximum, more for a slow line
    """

    requests: RetryPolicy
    reconnects: RetryPolicy
    setup_timeouts: RetryPolicy

    @classmethod
    def of(cls, config: ClientConfig) -> Self:
        """Those of the client's settings."""
        return cls(
            _policy(config.retry_backoff_ms, config.retry_backoff_max_ms),
            _policy(config.reconnect_backoff_ms, config.reconnect_backoff_max_ms),
            _policy(
                config.socket_connection_setup_timeout_ms,
                config.socket_connection_setup_timeout_max_ms,
            ),
        )


def _policy(first_ms: int, longest_ms: int) -> RetryPolicy:
    return RetryPolicy(first_ms / 1000, longest_ms / 1000)
