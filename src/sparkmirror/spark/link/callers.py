"""Limits the callers of the control link that have not authenticated yet.

Runs on: worker. Each of them costs a thread and a descriptor for up to HELLO_SECONDS. When there
are too many, the oldest one of the address with the most is dropped: tasks authenticate within
milliseconds, and one address that connects all the time does not lock out the others.
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

# Besides two for every task that may connect: all may start at once, some of them twice.
SPARE_CALLERS = 64
# Log lines about rejected callers: callers cannot fill the log with them.
_LINES_PER_MINUTE = 20


class Caller:
    """One connection while it authenticates; `close` when it has, or has not."""

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
        """Stop counting it."""
        self._callers.remove(self)
        self._handle.close()


class Callers:
    """All of them; `expected` returns how many tasks may connect. For any thread."""

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
        """Add a new one; another may be dropped for it."""
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

    def log_rejected(self, address: str, why: object) -> None:
        """Log who was rejected, no more often than people can read."""
        with self._lock:
            since, count = self._minute
            if self._clock() - since > 60:
                since, count = self._clock(), 0
            self._minute = (since, count + 1)
        if count < _LINES_PER_MINUTE:
            log.warning("control link: %s was rejected: %s", address, why)
        elif count == _LINES_PER_MINUTE:
            log.warning("control link: further rejected callers are not logged for a minute")

    def _victim(self) -> Caller:
        [(most, _)] = Counter(caller.host for caller in self._all).most_common(1)
        return next(caller for caller in self._all if caller.host == most)
