"""Runs the periodic jobs of a connector, one after the other, on one thread.

Runs on: worker. Mirrors: org.apache.kafka.connect.mirror.Scheduler. A job that fails runs again at
its next turn: a new error is logged, and the last one is kept for the connector's status.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from sparkmirror.errors import MirrorError
from sparkmirror.logs.places import carried

log = logging.getLogger(__name__)

# A shorter interval would keep a processor busy with nothing else.
SHORTEST_SECONDS = 0.01


@dataclass(slots=True, eq=False)
class Job:
    """A periodic job. `last_error` is empty when its last run succeeded."""

    what: str
    seconds: float
    run: Callable[[], object]
    due: float = math.inf
    last_error: str = ""
    begun: int = 0
    ended: int = 0


class Scheduler:
    """A few jobs at fixed rates. If a long run delays several turns, only one is made up for."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._jobs: list[Job] = []
        self._wake = threading.Event()
        self._ran = threading.Condition()
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=carried(self._run), name=f"scheduler {name}", daemon=True
        )

    def repeat(
        self,
        what: str,
        seconds: float,
        run: Callable[[], object],
        *,
        delayed: bool = False,
        enabled: bool = True,
    ) -> Job:
        """Call `run` at this interval, first at once or, if `delayed`, after one interval.

        A job that is not enabled, or whose interval is negative, runs only after `run_soon`.
        Must be called before `start`.
        """
        job = Job(what, max(seconds, SHORTEST_SECONDS), run)
        if enabled and seconds >= 0:
            job.due = self._clock() + (job.seconds if delayed else 0.0)
        else:
            job.seconds = math.inf
        self._jobs.append(job)
        return job

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def run_soon(self, job: Job) -> None:
        """Run the job as soon as the thread is free, then at its rate; from any thread."""
        job.due = self._clock()
        self._wake.set()

    def run_and_wait(self, job: Job, seconds: float) -> str:
        """Run the job on the thread and wait; return the error of that run, "" if none."""
        begun = job.begun
        self.run_soon(job)
        with self._ran:
            is_over = self._ran.wait_for(
                lambda: job.ended > begun or self._stopping.is_set(), seconds
            )
        if not is_over:
            return f"{job.what} takes longer than {seconds:.0f} s"
        return job.last_error

    def stop(self) -> None:
        """Start no further run."""
        self._stopping.set()
        self._wake.set()
        with self._ran:
            self._ran.notify_all()

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.is_set()

    def wait_for_stop(self, seconds: float) -> bool:
        """Wait, at most until `stop`; return whether that was called."""
        return self._stopping.wait(seconds)

    def join(self, seconds: float) -> bool:
        """After `stop`: wait for the current run; return whether it ended."""
        if self._thread.is_alive():
            self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def last_error(self) -> str:
        """The error of a job whose last run failed."""
        return next((job.last_error for job in self._jobs if job.last_error), "")

    def run_due(self) -> float:
        """Run all jobs that are due, once; return the seconds until the next one."""
        for job in self._jobs:
            now = self._clock()
            if job.due <= now and not self._stopping.is_set():
                missed = (now - job.due) // job.seconds
                job.due += (missed + 1) * job.seconds
                self._run_job(job)
        return max(0.0, min((job.due for job in self._jobs), default=math.inf) - self._clock())

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait(min(self.run_due(), threading.TIMEOUT_MAX))
            # Cleared before the next look at what is due: no later call of `set` is missed.
            self._wake.clear()

    def _run_job(self, job: Job) -> None:
        job.begun += 1
        self._try(job)
        with self._ran:
            job.ended = job.begun
            self._ran.notify_all()

    def _try(self, job: Job) -> None:
        try:
            job.run()
        except MirrorError as error:
            self._failed(job, str(error))
        # A bug in one job must not end the others, nor may a sys.exit in a user's own filter.
        except (Exception, SystemExit) as error:
            log.exception("[%s] %s failed", self._name, job.what)
            job.last_error = f"{type(error).__name__}: {error}"
        else:
            job.last_error = ""

    def _failed(self, job: Job, error: str) -> None:
        # A job that `stop` interrupted has not failed.
        is_news = error != job.last_error and not self._stopping.is_set()
        level = logging.WARNING if is_news else logging.DEBUG
        log.log(level, "[%s] %s failed: %s", self._name, job.what, error)
        job.last_error = error
