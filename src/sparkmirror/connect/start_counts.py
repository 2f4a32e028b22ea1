"""How often connectors or tasks were started here, for metrics. Runs on: worker."""

from __future__ import annotations

import threading


class StartCounts:
    """For any thread. What runs may fail later, which is a failure, too: it is started again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.successes = self.failures = 0

    @property
    def attempts(self) -> int:
        """Those that ended in one way or the other."""
        return self.successes + self.failures

    def succeeded(self) -> None:
        """One runs."""
        with self._lock:
            self.successes += 1

    def failed(self) -> None:
        """One does not, or no longer."""
        with self._lock:
            self.failures += 1
