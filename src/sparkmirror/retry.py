"""How long to wait after a failure, when to give up, and waits that explain what did not happen.

Runs on: executor and worker, on any thread. All waits after failures follow one rule
(KIP-580): the first one grows by a factor with each failure in a row, up to the longest, and every
one is up to 20 % shorter or longer, so that clients which failed together do not return together
(KIP-144). Whether an error is worth another attempt is not decided here: brokers' codes are in
`wire/protocol/error_codes`.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeVar

from sparkmirror.errors import MirrorError

T = TypeVar("T")

JITTER = 0.2
# 2**30 times anything is beyond every maximum; larger powers would only cost time.
_MOST_STEPS = 30
# Waits of `shared_wait` end at multiples of this.
_MOST_STEP_SECONDS = 0.1
# Between two checks of a condition.
_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How the waits between attempts grow."""

    first_seconds: float
    longest_seconds: float
    factor: float = 2.0
    jitter: float = JITTER

    @classmethod
    def every(cls, seconds: float) -> Self:
        """Always the same wait."""
        return cls(seconds, seconds, jitter=0.0)

    def wait(
        self, failures: int, uniform: Callable[[float, float], float] = random.uniform
    ) -> float:
        """Seconds to wait after so many failures in a row; 0 after none."""
        if failures <= 0:
            return 0.0
        grown = self.first_seconds * self.factor ** min(failures - 1, _MOST_STEPS)
        seconds = min(grown, self.longest_seconds)
        return seconds * uniform(1 - self.jitter, 1 + self.jitter) if self.jitter else seconds

    def shared_wait(self, failures: int, now: float) -> float:
        """`wait` for one of thousands: waits that end at about the same time end together.

        Otherwise each would send a request of its own to a broker that is busy already.
        """
        wait = self.wait(failures)
        step = min(wait, _MOST_STEP_SECONDS)
        return math.ceil((now + wait) / step) * step - now if step else wait


class Backoff:
    """Failures in a row, and when the next attempt is due. One thread at a time."""

    __slots__ = ("_clock", "_due", "_healthy_seconds", "_healthy_since", "_policy", "failures")

    def __init__(
        self,
        policy: RetryPolicy,
        clock: Callable[[], float] = time.monotonic,
        *,
        healthy_seconds: float = 0.0,
    ) -> None:
        """After `healthy_seconds` of success, waits start again with the first one."""
        self._policy = policy
        self._clock = clock
        self._healthy_seconds = healthy_seconds
        self._healthy_since: float | None = None
        self._due = float("-inf")
        self.failures = 0

    def failed(self) -> float:
        """Count a failure; return how many seconds to wait now."""
        now = self._clock()
        since = self._healthy_since
        if since is not None and now - since >= self._healthy_seconds:
            self.failures = 0
        self._healthy_since = None
        self.failures += 1
        wait = self._policy.wait(self.failures)
        self._due = now + wait
        return wait

    def succeeded(self) -> None:
        """The last attempt works: waits start again, at once or after `healthy_seconds`."""
        self._due = float("-inf")
        if not self._healthy_seconds:
            self.failures = 0
        elif self._healthy_since is None:
            self._healthy_since = self._clock()

    def reset(self) -> None:
        """Forget all failures: the next attempt is due now, and waits start again."""
        self._due = float("-inf")
        self._healthy_since = None
        self.failures = 0

    def is_due(self) -> bool:
        """Whether the wait after the last failure is over."""
        return self._clock() >= self._due


def retry_until(
    attempt: Callable[[], T],
    policy: RetryPolicy,
    seconds: float,
    *,
    is_retriable: Callable[[MirrorError], bool],
    pause: Callable[[float], bool],
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """Try until it succeeds, for `seconds`; after that, or if no retry helps, raise the last error.

    `pause` waits, and returns True when the caller is stopping. The last attempt starts at the
    deadline, so that a long wait still ends with one.
    """
    deadline = clock() + seconds
    failures = 0
    while True:
        try:
            return attempt()
        except MirrorError as error:
            left = deadline - clock()
            if not is_retriable(error) or left <= 0:
                raise
            failures += 1
            if pause(min(policy.wait(failures), left)):
                raise


def wait_for(
    condition: Callable[[], object],
    *,
    within: float,
    describe: str | Callable[[], str] = "the condition",
) -> None:
    """Return once `condition` is true; after `within` seconds raise TimeoutError with the state.

    `describe` names the condition; a function is called at the end, to show the state.
    """
    deadline = time.monotonic() + within
    pause = _FIRST_PAUSE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            shown = describe if isinstance(describe, str) else describe()
            raise TimeoutError(f"not within {within:g} s: {shown}")
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)
