"""Callers of the control link that have proved nothing yet: so many at once, and no more.

Runs on: worker. Each of them costs a thread and a descriptor for up to HELLO_SECONDS. When there
are too many, the oldest of the address that has most is dropped: tasks prove who they are within
milliseconds, and those on other machines are not kept out by one that calls all the time.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable

log = logging.getLogger(__name__)

# Beside two for every task that may call in: all of them may start at once, some of them twice.
SPARE_CALLERS = 64
# Of lines that say who was turned away: somebody who only wants to fill the log does not.
_LINES_PER_MINUTE = 20


class Caller:
    """One connection while it proves itself; `close` when it has, or has not."""

    def __init__(self, callers: Callers, host: str, sock: socket.socket) -> None:
        self._callers = callers
        self.host = host
        # TLS takes over the descriptor of the socket itself.
        try:
            self._handle = sock.dup()
        except OSError:
            sock.close()
            raise

    def drop(self) -> None:
        """Its thread notices."""
        with contextlib.suppress(OSError):  # it has hung up by itself
            self._handle.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """It is one of these no more."""
        self._callers.remove(self)
        self._handle.close()


class Callers:
    """All of them; `expected` tells how many tasks may call in. For any thread."""

    def __init__(
        self, expected: Callable[[], int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._expected = expected
        self._clock = clock
        self._lock = threading.Lock()
        self._all: dict[Caller, None] = {}
        self._minute = (clock(), 0)

    def __len__(self) -> int:
        return len(self._all)

    def add(self, sock: socket.socket, host: str) -> Caller:
        """A new one; another may have to go."""
        caller = Caller(self, host, sock)
        with self._lock:
            self._all[caller] = None
            too_many = len(self._all) > SPARE_CALLERS + 2 * self._expected()
            victim = self._victim() if too_many else None
            if victim is not None:
                del self._all[victim]
        if victim is not None:
            victim.drop()
        return caller

    def remove(self, caller: Caller) -> None:
        with self._lock:
            self._all.pop(caller, None)

    def complain(self, address: str, why: object) -> None:
        """Say who was turned away, as often as somebody can read."""
        with self._lock:
            since, count = self._minute
            if self._clock() - since > 60:
                since, count = self._clock(), 0
            self._minute = (since, count + 1)
        if count < _LINES_PER_MINUTE:
            log.warning("control link: %s was turned away: %s", address, why)
        elif count == _LINES_PER_MINUTE:
            log.warning("control link: further callers are turned away without a word for a minute")

    def _victim(self) -> Caller:
        [(most, _)] = Counter(caller.host for caller in self._all).most_common(1)
        return next(caller for caller in self._all if caller.host == most)
