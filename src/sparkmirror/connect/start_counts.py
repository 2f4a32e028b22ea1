"""How often connectors or tasks were started here, for metrics. Runs on: worker."""

from __future__ import annotations

import threading


class StartCounts:
    """For any thread. An attempt ends with a success or a failure."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.attempts = self.successes = self.failures = 0

    def begin(self) -> None:
        """An attempt begins."""
        with self._lock:
            self.attempts += 1

    def succeeded(self) -> None:
        with self._lock:
            self.successes += 1

    def failed(self) -> None:
        with self._lock:
            self.failures += 1
