"""How fast producers write to source partitions, from how their ends move.

Runs on: worker; for any thread. Only asked of topics that have a limit in bytes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable

LEAST_SECONDS = 10.0
# A measurement is about so long a time, or twice that.
SPAN_SECONDS = 60.0


class WriteRates:
    """Remembers two ends of each partition, and when they were seen."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._ends: dict[Hashable, tuple[tuple[float, int], tuple[float, int]]] = {}

    def per_second(self, key: Hashable, end: int | None) -> float | None:
        """Offsets per second, as its log ends at `end` now; None: unknown yet."""
        if end is None:
            return None
        now = self._clock()
        with self._lock:
            earlier, later = self._ends.get(key, ((now, end), (now, end)))
            if end < earlier[1]:  # another topic under its name
                earlier = later = now, end
            if now - later[0] >= SPAN_SECONDS:
                earlier, later = later, (now, end)
            self._ends[key] = earlier, later
        seconds = now - earlier[0]
        return (end - earlier[1]) / seconds if seconds >= LEAST_SECONDS else None

    def forget(self, is_gone: Callable[[Hashable], bool]) -> None:
        """Forget those of which that is true."""
        with self._lock:
            for key in [key for key in self._ends if is_gone(key)]:
                del self._ends[key]
