"""A reader that may hang, such as calls to a JVM: a scrape waits for it no longer than a second.

Runs on: worker; any thread.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sparkmirror.errors import MirrorError

PATIENCE_SECONDS = 1.0

T = TypeVar("T")


@dataclass(slots=True)
class _Reading(Generic[T]):
    done: threading.Event = field(default_factory=threading.Event)
    found: list[T] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)


class TimelyReader(Generic[T]):
    """Reads on one thread of its own, which begins with the first scrape.

    While a reading is under way no second one begins: others wait for the same.
    """

    def __init__(
        self, name: str, read: Callable[[], T], patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._name = name
        self._read = read
        self._patience = patience_seconds
        self._lock = threading.Lock()
        self._under_way: _Reading[T] | None = None
        self._wanted: queue.SimpleQueue[_Reading[T]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def read(self) -> T:
        """What it reads now; raises what that raises, and MirrorError if it takes too long."""
        reading = self._begin()
        if not reading.done.wait(self._patience):
            raise MirrorError(f"{self._name}: no figures within {self._patience:.0f} s")
        for error in reading.errors:
            raise error
        return reading.found[0]

    def _begin(self) -> _Reading[T]:
        with self._lock:
            if self._thread is None:
                # A daemon: a JVM that does not respond must not keep the process.
                self._thread = threading.Thread(
                    target=self._run, name=f"metrics {self._name}", daemon=True
                )
                self._thread.start()
            if self._under_way is None:
                self._under_way = _Reading()
                self._wanted.put(self._under_way)
            return self._under_way

    def _run(self) -> None:
        while True:
            reading = self._wanted.get()
            try:
                reading.found.append(self._read())
            # Whatever it is, `read` raises it on the thread of the scrape, which reports it.
            except Exception as error:  # noqa: BLE001
                reading.errors.append(error)
            finally:
                with self._lock:
                    self._under_way = None
                reading.done.set()
