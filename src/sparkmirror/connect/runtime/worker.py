"""The worker's Spark: started when the first source connector needs it, and kept.

Runs on: worker. Spark starts on a thread of its own, so that a stop need not wait for it: a Spark
that is still starting ends with the process, because its JVM reads the end of its input.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from sparkmirror.errors import MirrorError, StoppingError
from sparkmirror.events import EventKind, event
from sparkmirror.spark.link.server import LinkServer
from sparkmirror.spark.session import LOCAL, MASTER, SparkEngine

log = logging.getLogger(__name__)

# More than users will need. In local mode an unused slot costs only a waiting thread.
SLOTS = 256

Started = tuple[SparkEngine, LinkServer]


class Worker:
    """Spark and the control link of its tasks; for any thread."""

    def __init__(
        self,
        settings: Mapping[str, str],
        slots: int = SLOTS,
    ) -> None:
        self._settings = settings
        self._slots = slots
        self._is_local = settings.get(MASTER, LOCAL).startswith(LOCAL)
        self._lock = threading.Lock()
        self._start: _Start | None = None
        # The last start that was given up; the next one waits for it: a JVM has only one session.
        self._abandoned: _Start | None = None

    def get(self) -> Started:
        """Start Spark if necessary, and wait until it is up. Raises MirrorError."""
        start = self.begin()
        try:
            return start.wait()
        except MirrorError:
            with self._lock:
                if self._start is start:  # the next caller tries again
                    self._start = None
            raise

    def begin(self) -> _Start:
        """Start Spark unless it has been started; does not wait."""
        with self._lock:
            if self._start is None:
                self._start = _Start(self._make, self._abandoned)
                self._start.thread.start()
            return self._start

    def raise_failure(self) -> None:
        """Raise the error if Spark could not start, even before a task waits for it."""
        start = self._start
        if start is not None:
            start.raise_failure()

    @property
    def is_up(self) -> bool:
        """Whether Spark is up, so that tasks need not wait."""
        start = self._start
        return start is not None and start.started is not None

    @property
    def engine(self) -> SparkEngine | None:
        """The session, while Spark is up."""
        start = self._start
        started = None if start is None else start.started
        return None if started is None else started[0]

    @property
    def slots(self) -> int:
        """How many tasks there is room for now. On a cluster the executors provide the slots."""
        if self._is_local:
            return self._slots
        engine = self.engine
        if engine is None:
            return 0
        return self._slots if engine.has_dynamic_executors else engine.slots

    def give_up_start(self) -> None:
        """Release threads that wait for Spark to start; a Spark that is up stays."""
        start = self._start
        if start is not None and start.started is None:
            self.close()

    def close_if_elsewhere(self) -> None:
        """Stop Spark if it is up and holds executors of a cluster."""
        start = self._start
        if start is not None and start.started is not None and not start.started[0].is_local:
            self.close()

    def check_alive(self) -> None:
        """Raise MirrorError if Spark has ended by itself."""
        start = self._start
        if start is not None and start.started is not None:
            start.started[0].check_alive()

    def close(self) -> None:
        """Stop Spark, or give up its start; all tasks must have ended."""
        with self._lock:
            start, self._start = self._start, None
            if start is not None:
                self._abandoned = start
        if start is not None:
            start.give_up()

    def _make(self) -> Started:
        began = time.monotonic()
        engine = SparkEngine(self._settings, self._slots)
        links = LinkServer(*engine.link_address)
        engine.warm_up()
        mark, seconds = event(EventKind.STARTED), time.monotonic() - began
        log.info("Spark %s is up after %.1f s", engine.master, seconds, extra=mark)
        return engine, links


class _Start:
    """One run of Spark, from its start to its end."""

    def __init__(self, make: Callable[[], Started], earlier: _Start | None) -> None:
        self.started: Started | None = None
        self._make = make
        self._earlier = earlier
        self._error: Exception | None = None
        self._lock = threading.Lock()
        self._is_given_up = False
        self._done = threading.Event()
        self.thread = threading.Thread(target=self._run, name="spark-start", daemon=True)

    def wait(self) -> Started:
        """Wait until Spark is up; MirrorError if it cannot start or was given up."""
        self._done.wait()
        self.raise_failure()
        if self.started is None or self._is_given_up:
            raise StoppingError("Spark is not started: this process stops")
        return self.started

    def raise_failure(self) -> None:
        """Raise the error of the start, if there was one."""
        if self._error is not None:
            raise self._error

    def give_up(self) -> None:
        """Stop Spark; if it is still starting, it stops as soon as it is up."""
        with self._lock:
            self._is_given_up = True
            started, self.started = self.started, None
        self._done.set()
        _close(started)

    def _run(self) -> None:
        if self._earlier is not None:
            self._earlier.thread.join()
            self._earlier = None
        try:
            started = None if self._is_given_up else self._make()
        # Any error is kept: the threads that wait for Spark raise and report it.
        except Exception as error:  # noqa: BLE001
            self._error = error
        else:
            with self._lock:
                wanted = not self._is_given_up
                self.started = started if wanted else None
            if not wanted:
                _close(started)
        self._done.set()


def _close(started: Started | None) -> None:
    if started is not None:
        engine, links = started
        links.close()
        engine.stop()
