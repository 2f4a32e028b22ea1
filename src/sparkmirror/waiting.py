"""Waiting that explains itself when it was in vain."""

from __future__ import annotations

import time
from collections.abc import Callable

_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 0.25


def wait_for(
    condition: Callable[[], object],
    *,
    within: float,
    describe: str | Callable[[], str] = "the condition",
) -> None:
    """Return once `condition` is true; after `within` seconds raise TimeoutError with the state.

    `describe` says what is awaited; as a function it is called at the end, to show the state.
    """
    deadline = time.monotonic() + within
    pause = _FIRST_PAUSE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            shown = describe if isinstance(describe, str) else describe()
            raise TimeoutError(f"not within {within:g} s: {shown}")
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)
