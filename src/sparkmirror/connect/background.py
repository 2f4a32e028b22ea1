"""Work that a process does not wait for when it stops. Runs on: worker."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from sparkmirror.logs.places import carried

# How soon a stop is noticed.
LOOK_SECONDS = 0.05

T = TypeVar("T")


class Background(Generic[T]):
    """Does `work` on a daemon thread, which may hang on a cluster that does not respond."""

    def __init__(self, work: Callable[[], T], on_end: Callable[[], object] = bool) -> None:
        """`on_end` is called on its thread, after the work."""
        self._work = work
        self._on_end = on_end
        self._is_done = False
        self._results: list[T] = []
        self._errors: list[Exception] = []
        self._thread = threading.Thread(target=carried(self._run), name="start", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether `wait` would block."""
        return not self._is_done

    def wait(self, stop: threading.Event) -> bool:
        """Return whether the work ended before `stop` was set; raise what it raised."""
        while not self._is_done:
            if stop.is_set():
                return False
            self._thread.join(LOOK_SECONDS)
        for error in self._errors:
            raise error
        return True

    @property
    def result(self) -> T:
        """What the work returned, once `wait` has returned True."""
        return self._results[0]

    def _run(self) -> None:
        try:
            self._results.append(self._work())
        # Whatever it is, `wait` raises it on the thread that reports it.
        except Exception as error:  # noqa: BLE001
            self._errors.append(error)
        finally:
            self._is_done = True
            self._on_end()
