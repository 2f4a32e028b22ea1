"""Credentials that expire: fetched on a thread, shared by all connections, renewed in time.

Runs on: executor and worker. One fetch at a time, however many connections ask for it.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sparkmirror.errors import AuthenticationError, MirrorError
from sparkmirror.retry import RetryPolicy

log = logging.getLogger(__name__)

# After a failed attempt to renew what is still valid.
RENEWAL = RetryPolicy.every(10.0)


class Expiring(Protocol):
    """What is fetched. Times are seconds since 1970."""

    @property
    def starts_at(self) -> float:
        """When its life began."""

    @property
    def expires_at(self) -> float:
        """When it expires."""


Item = TypeVar("Item", bound=Expiring)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Schedule:
    """When to renew: the keys `sasl.login.refresh.*` (KIP-255)."""

    factor: float = 0.8
    jitter: float = 0.05
    min_seconds: float = 60.0
    buffer_seconds: float = 300.0

    def renew_at(self, starts_at: float, expires_at: float) -> float:
        """A time in the life of a credential, as Java's clients choose it."""
        life = expires_at - starts_at
        wanted = starts_at + life * min(self.factor + random.uniform(0, self.jitter), 1.0)
        if life < self.min_seconds + self.buffer_seconds:
            return wanted  # too short for both: they do not count
        return max(min(wanted, expires_at - self.buffer_seconds), starts_at + self.min_seconds)


class Renewing(Generic[Item]):
    """The newest credential of one source."""

    def __init__(
        self, name: str, fetch: Callable[[], Item], clock: Callable[[], float], schedule: Schedule
    ) -> None:
        """`fetch` may block, and raises MirrorErrors; `name` is for threads and the log."""
        self._name = name
        self._fetch = fetch
        self._clock = clock
        self._schedule = schedule
        self._lock = threading.Lock()
        self._item: Item | None = None
        self._renew_at = 0.0
        self._waiting: list[Future[Item]] = []
        self._fetching = False

    def get(self) -> Future[Item]:
        """One that is valid: at once, or as soon as it is there."""
        future: Future[Item] = Future()
        with self._lock:
            if self._item is not None and self._clock() < self._renew_at:
                future.set_result(self._item)
                return future
            self._waiting.append(future)
            is_first, self._fetching = not self._fetching, True
        if is_first:
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
        return future

    def _run(self) -> None:
        item: Item | None = None
        failure: MirrorError | None = None
        try:
            item = self._fetch()
        except MirrorError as error:
            failure = error
        except BaseException:  # callers that wait must get the error; the thread ends as it would
            self._notify(None, AuthenticationError(f"{self._name}: failed, see the log"))
            raise
        if item is not None:
            self._keep(item)
        else:
            item = self._still_valid(failure)
        self._notify(item, failure)

    def _keep(self, item: Item) -> None:
        with self._lock:
            self._item = item
            # A clock that differs from the issuer's must not make us ask in a loop.
            soonest = self._clock() + 1.0
            self._renew_at = max(self._schedule.renew_at(item.starts_at, item.expires_at), soonest)

    def _still_valid(self, failure: MirrorError | None) -> Item | None:
        """The last one, while its life lasts."""
        with self._lock:
            now = self._clock()
            if self._item is None or now >= self._item.expires_at:
                return None
            item = self._item
            self._renew_at = now + RENEWAL.wait(1)
        log.warning(
            "%s; the last credential is used for another %d s",
            failure,
            item.expires_at - self._clock(),
        )
        return item

    def _notify(self, item: Item | None, failure: MirrorError | None) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
            self._fetching = False
        for future in waiting:
            if item is not None:
                future.set_result(item)
            else:
                future.set_exception(failure or AuthenticationError(f"{self._name}: nothing came"))


def then(future: Future[Item], make: Callable[[Item], Result]) -> Future[Result]:
    """The future of `make(item)`; a failure of either fails it."""
    result: Future[Result] = Future()

    def finish(done: Future[Item]) -> None:
        try:
            result.set_result(make(done.result()))
        except MirrorError as error:
            result.set_exception(error)

    future.add_done_callback(finish)
    return result
