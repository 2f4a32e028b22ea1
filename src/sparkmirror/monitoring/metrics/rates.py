"""Rates of counters, from what earlier scrapes saw.

Runs on: worker; any thread. Kafka's rates are those of the last 30 to 60 s; so are these, with a
scrape every 15 s. Nothing is remembered between scrapes but their own values.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable

# Kafka's two samples of 30 s.
MOST_SECONDS = 60.0
# Two scrapers within this time see the same rate.
LEAST_SECONDS = 5.0

_Counts = tuple[float, ...]


class CounterRates:
    """By key, the counts of the last minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[Hashable, deque[tuple[float, _Counts]]] = {}
        self._touched: set[Hashable] = set()

    def per_second(self, key: Hashable, *counts: float) -> _Counts:
        """Since the oldest look of the last minute; NaN at the first one."""
        now = self._clock()
        with self._lock:
            self._touched.add(key)
            seen = self._seen.setdefault(key, deque())
            if seen and any(a < b for a, b in zip(counts, seen[-1][1], strict=True)):
                seen.clear()  # the task began again
            while len(seen) > 1 and now - seen[1][0] >= MOST_SECONDS:
                seen.popleft()
            rates = _rates(seen, now, counts)
            if not seen or now - seen[-1][0] >= LEAST_SECONDS:
                seen.append((now, counts))
        return rates

    def forget_others(self) -> None:
        """Forget keys that nobody has asked for since the last call: their tasks are elsewhere."""
        with self._lock:
            self._seen = {key: self._seen[key] for key in self._touched if key in self._seen}
            self._touched = set()


def _rates(seen: deque[tuple[float, _Counts]], now: float, counts: _Counts) -> _Counts:
    if not seen or now <= seen[0][0]:
        return (math.nan,) * len(counts)
    at, before = seen[0]
    return tuple((new - old) / (now - at) for new, old in zip(counts, before, strict=True))
