"""Clusters of which no broker responds: one line when that begins, and one when it is over.

Runs on: worker and executor, on any thread. A process has many connections to a cluster, of
heartbeats, checkpoints, its group and so on. When all brokers are frozen each of them notices,
again and again; the log reports it once. Brokers that refuse connections are not silent.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import KafkaError, TransportError
from sparkmirror.events import EventKind, event

log = logging.getLogger(__name__)


# A connection that waits for a silent broker finds it silent again and again.
RECENT_SECONDS = 60.0

BrokerAddress = tuple[str, int]
"""Host and port."""


class SilentError(TransportError):
    """The `broker` of `cluster` owes a response, or the end of a handshake, for so many seconds."""

    def __init__(self, text: str, seconds: float, broker: str, cluster: str = "") -> None:
        super().__init__(text, seconds, broker, cluster)
        self.seconds = seconds
        self.broker = broker
        self.cluster = cluster

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(slots=True)
class _Silence:
    """Brokers of one cluster: when each was found to be silent, after the last new connection.

    `logged_since`: since when the log reports that all are; None: it does not.
    """

    found: dict[BrokerAddress, float] = field(default_factory=dict)
    logged_since: float | None = None


class Outages:
    """Of all clusters that this process talks to, by their bootstrap servers; for any thread.

    `is_quiet`: the caller reports silent brokers, with what waits for them.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.is_quiet = False
        self._clock = clock
        self._lock = threading.Lock()
        self._silent: dict[tuple[str, ...], _Silence] = {}

    def responded(self, config: ClientConfig) -> None:
        """A broker of the cluster has responded on a new connection."""
        with self._lock:
            silence = self._silent.pop(config.bootstrap_servers, None)
        if silence is not None and silence.logged_since is not None:
            seconds = self._clock() - silence.logged_since
            mark = event(EventKind.REACHABLE, cluster=config.alias, key=_key(config), ends=True)
            log.warning("%s responds again, after %.0f s", named(config), seconds, extra=mark)

    def report(
        self,
        config: ClientConfig,
        error: KafkaError,
        broker: BrokerAddress,
        known: Iterable[BrokerAddress],
    ) -> bool:
        """The connection to `broker` failed; return whether that needs no line of its own.

        `known` are all addresses of the cluster.
        """
        if not isinstance(error, SilentError) or self.is_quiet:
            return isinstance(error, SilentError)
        with self._lock:
            now = self._clock()
            silence = self._silent.setdefault(config.bootstrap_servers, _Silence())
            silence.found[broker] = now
            # Others may have recovered since, on connections that never broke.
            recent = {at for at, when in silence.found.items() if when > now - RECENT_SECONDS}
            if silence.logged_since is not None or not recent.issuperset(known):
                return silence.logged_since is not None
            silence.logged_since = min(silence.found[at] for at in recent) - error.seconds
        log.warning(
            "%s has not responded since %s: nothing is copied from it or to it until it does; look "
            "at its brokers and at the network",
            named(config),
            time.strftime("%H:%M:%S", time.localtime(silence.logged_since)),
            extra=event(EventKind.UNREACHABLE, cluster=config.alias, key=_key(config)),
        )
        return True

    def is_lasting(self, config: ClientConfig) -> bool:
        """Whether the log reports that no broker of the cluster responds."""
        with self._lock:
            silence = self._silent.get(config.bootstrap_servers)
            return silence is not None and silence.logged_since is not None


def named(config: ClientConfig) -> str:
    """A cluster in log lines: its alias and addresses."""
    return f"cluster '{config.alias}' ({','.join(config.bootstrap_servers)})"


def _key(config: ClientConfig) -> str:
    return f"cluster {','.join(config.bootstrap_servers)}"


# Of this process.
OUTAGES = Outages()
