"""How long something took lately, for metrics. Runs on: both.

Kafka's averages and extremes are those of the last 30 to 60 s: two samples of 30 s.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from sparkmirror.spark.figures import Window

SECONDS = 60.0
# Of more the oldest are forgotten: thousands in a minute change no mean.
MOST = 1000


class RecentTimes:
    """Durations of the last minute, in milliseconds; for any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._times: deque[tuple[float, float]] = deque(maxlen=MOST)
        self._last = 0.0

    def add(self, milliseconds: float) -> None:
        """It took so long just now."""
        with self._lock:
            self._times.append((self._clock(), milliseconds))
            self._last = milliseconds

    def window(self) -> Window:
        """The last one, and extremes, sum and number of the last minute."""
        with self._lock:
            since = self._clock() - SECONDS
            found = [took for at, took in self._times if at >= since]
            last = self._last
        if not found:
            return Window(last)
        return Window(last, min(found), max(found), sum(found), len(found))
