"""Why a connector or task could not start, and when to try again. Runs on: worker."""

from __future__ import annotations

import math
import time
import traceback

from sparkmirror.config.keys.plugins import UnusableConnector
from sparkmirror.config.masking import mask
from sparkmirror.connect.start_counts import StartCounts
from sparkmirror.errors import ConfigError, ConfigErrors, MirrorError
from sparkmirror.retry import Backoff, RetryPolicy

RETRIES = RetryPolicy(1, 60)
# Settings that cannot work: only new settings, or a restart by a user, can help.
FOR_GOOD = (ConfigError, ConfigErrors, UnusableConnector)


class StartFailures:
    """Consecutive failures of one connector or task. Owned by one thread; `trace` is for any."""

    def __init__(self, counts: StartCounts | None = None) -> None:
        """`counts`: of all connectors or tasks of the worker."""
        self.counts = counts or StartCounts()
        self.trace = ""
        self._retry_at = 0.0
        self._backoff = Backoff(RETRIES)

    @property
    def is_due(self) -> bool:
        """Whether it is time for the next attempt."""
        return time.monotonic() >= self._retry_at

    @property
    def seconds_left(self) -> float:
        """Until the next attempt; infinite if only a user can help."""
        return max(0.0, self._retry_at - time.monotonic())

    def failed(self, error: Exception | SystemExit) -> None:
        """Keep the error; the wait doubles."""
        self.counts.failed()
        self.trace = _trace(error)
        if isinstance(error, FOR_GOOD):
            self._retry_at = math.inf
            return
        self._retry_at = time.monotonic() + self._backoff.failed()

    def forgive(self) -> None:
        """It has started, or a user asked it to: the next wait is short again."""
        self.trace = ""
        self._retry_at = 0.0
        self._backoff.reset()


def _trace(error: Exception | SystemExit) -> str:
    """Our own errors as one line for operators; anything else is a bug, with its stack trace."""
    if isinstance(error, MirrorError):
        return mask(f"{type(error).__module__}.{type(error).__name__}: {error}")
    return mask("".join(traceback.format_exception(error)))
