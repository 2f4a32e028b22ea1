"""One thread's event loop: sockets and timers, nothing else.

Runs on: executor (one per copy task) and worker (short reads of internal topics).
"""

from __future__ import annotations

import heapq
import itertools
import select
import selectors
import time
from collections.abc import Callable
from typing import Protocol

# Linux's epoll counts in milliseconds, rounded up: a wait of 0.3 ms would take 1 ms and more. Its
# own descriptor can be waited for by select(), which counts in microseconds.
FINE_SECONDS = 0.005
MOST_SELECTABLE = 1024
READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE


class IoHandler(Protocol):
    """What the loop calls when a socket is ready; runs on the loop's thread and must not block."""

    def fileno(self) -> int:
        """The socket's descriptor."""

    def on_ready(self, events: int) -> None:
        """Called with READ, WRITE or both."""


class Timer:
    """A call that is due once; `cancel` makes it a no-op."""

    __slots__ = ("call", "due")

    def __init__(self, due: float, call: Callable[[], None]) -> None:
        self.due = due
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Forget the call; the loop drops the entry when it comes up."""
        self.call = None


class EventLoop:
    """Waits for sockets and timers and calls their handlers, one after the other."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._selector = selectors.DefaultSelector()
        # Its own descriptor, where the selector has one.
        self._descriptor: int = getattr(self._selector, "fileno", lambda: MOST_SELECTABLE)()
        self._handlers: dict[int, IoHandler] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        # Called before anything is written to a broker; may raise KafkaError: see spark/link/lease.
        self.before_write: Callable[[], None] | None = None

    def watch(self, handler: IoHandler, events: int) -> None:
        """Start calling `handler` for `events`."""
        self._selector.register(handler.fileno(), events, handler)
        self._handlers[handler.fileno()] = handler

    def rewatch(self, handler: IoHandler, events: int) -> None:
        """Change the events that `handler` is called for."""
        self._selector.modify(handler.fileno(), events, handler)

    def unwatch(self, handler: IoHandler) -> None:
        """Stop calling `handler`; must come before its socket is closed."""
        self._selector.unregister(handler.fileno())
        del self._handlers[handler.fileno()]

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call `call` once, `seconds` from now."""
        timer = Timer(self.clock() + seconds, call)
        heapq.heappush(self._timers, (timer.due, next(self._order), timer))
        return timer

    def run_once(self, timeout: float) -> None:
        """Wait at most `timeout` seconds for something to do, and do it."""
        for key, events in self._select(self._wait_seconds(timeout)):
            # An earlier handler of this round may have closed this one's socket.
            handler: IoHandler = key.data
            if self._handlers.get(key.fd) is handler:
                handler.on_ready(events)
        self._run_timers()

    def run_until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Run until `done()` or `seconds` have passed; return which."""
        deadline = self.clock() + seconds
        while not done():
            left = deadline - self.clock()
            if left <= 0:
                return False
            self.run_once(min(left, 1.0))
        return True

    def close(self) -> None:
        """Release the selector; sockets are their owners' to close."""
        self._selector.close()

    def _select(self, seconds: float) -> list[tuple[selectors.SelectorKey, int]]:
        """Sockets that are ready within `seconds`, and short waits not longer than they are."""
        if 0.0 < seconds < FINE_SECONDS and self._descriptor < MOST_SELECTABLE:
            select.select((self._descriptor,), (), (), seconds)
            seconds = 0.0
        return self._selector.select(seconds)

    def _wait_seconds(self, timeout: float) -> float:
        while self._timers and self._timers[0][2].call is None:
            heapq.heappop(self._timers)
        if not self._timers:
            return timeout
        return max(0.0, min(timeout, self._timers[0][0] - self.clock()))

    def _run_timers(self) -> None:
        now = self.clock()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if timer.call is not None:
                timer.call()
