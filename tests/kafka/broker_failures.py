"""What can happen to a broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from sparkmirror.embedded import Broker

SHORT_TIMEOUT_MS = 2000
# Clients that give up soon, so that a frozen broker need not be frozen for long.
SHORT_TIMEOUTS = {
    "target.producer.request.timeout.ms": str(SHORT_TIMEOUT_MS),
    "SOURCE.consumer.request.timeout.ms": str(SHORT_TIMEOUT_MS),
    # A coordinator that was frozen for longer than a session has lost all members when it wakes.
    "target.session.timeout.ms": "30000",
}
# Longer than a client waits for an answer (and the two seconds on top), and than it takes the
# controller to miss a broker.
FROZEN_SECONDS = 6.5


def restart(broker: Broker) -> None:
    """An orderly stop, and a start."""
    broker.stop()
    broker.start()
    broker.wait_ready()


def crash(broker: Broker) -> None:
    """kill -9, and a start."""
    broker.kill()
    broker.start()
    broker.wait_ready()


def freeze(broker: Broker) -> None:
    """Connections stay open, and nobody answers for a while."""
    broker.pause()
    time.sleep(FROZEN_SECONDS)
    broker.resume()


FAILURES: tuple[Callable[[Broker], None], ...] = (restart, crash, freeze)


def fail_all(failure: Callable[[Broker], None], brokers: Iterable[Broker]) -> None:
    """The same to several brokers, at the same time."""
    with ThreadPoolExecutor() as pool:
        list(pool.map(failure, brokers))
