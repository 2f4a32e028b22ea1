"""How long to wait before the next attempt, and how long an attempt to connect may take.

Runs on: executor and worker. Pure. Waits double with each failure up to a maximum, with 20 % of
chance, so that clients do not come back all at once (KIP-144, KIP-580, KIP-601).
"""

from __future__ import annotations

import math
import random

from sparkmirror.config.clients import ClientConfig

CHANCE = 0.2
# 2**30 times anything is beyond every maximum; larger powers would only cost time.
MOST_DOUBLINGS = 30
# How far apart those are that come back together.
MOST_STEP_SECONDS = 0.1


def retry_seconds(config: ClientConfig, failures: int) -> float:
    """The wait after so many failures of a request: retry.backoff.ms to retry.backoff.max.ms."""
    return _grown(config.retry_backoff_ms, config.retry_backoff_max_ms, failures)


def shared_retry_seconds(config: ClientConfig, failures: int, now: float) -> float:
    """The same for one of thousands: those whose waits end about then come back together.

    Otherwise each would make a request of its own, to a broker that has enough to do.
    """
    wait = retry_seconds(config, failures)
    step = min(wait, MOST_STEP_SECONDS)
    return math.ceil((now + wait) / step) * step - now if step else wait


def reconnect_seconds(config: ClientConfig, failures: int) -> float:
    """The wait after so many failures to connect: reconnect.backoff.ms to its maximum."""
    return _grown(config.reconnect_backoff_ms, config.reconnect_backoff_max_ms, failures)


def setup_seconds(config: ClientConfig, failures: int) -> float:
    """The time to open a connection when so many attempts have failed before.

    socket.connection.setup.timeout.ms to its maximum: a line that is only slow gets more time.
    """
    first = config.socket_connection_setup_timeout_ms
    return _grown(first, config.socket_connection_setup_timeout_max_ms, failures + 1)


def _grown(first_ms: int, most_ms: int, failures: int) -> float:
    if failures <= 0:
        return 0.0
    grown = first_ms << min(failures - 1, MOST_DOUBLINGS)
    return min(grown, most_ms) / 1000 * random.uniform(1 - CHANCE, 1 + CHANCE)
