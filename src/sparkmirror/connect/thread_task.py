"""A task on a thread of this process: it starts, runs, fails, is retried, and ends.

Runs on: worker. A checkpoint or heartbeat task does its work on threads of the worker. For a source
task this is the worker's side, and Spark does the work. A task that waits holds up neither the
other tasks nor the herder.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from sparkmirror.config.masking import forget_owner, owned_by
from sparkmirror.connect.connector import TaskConfigs, TaskReport, TaskWork
from sparkmirror.connect.start_counts import StartCounts
from sparkmirror.connect.start_failures import StartFailures
from sparkmirror.connect.states import TaskEvent
from sparkmirror.errors import MirrorError, StoppingError
from sparkmirror.events import EventKind, event
from sparkmirror.logs.places import NOWHERE, LogPlace, enter_place
from sparkmirror.spark.task_runner import TaskRunner

log = logging.getLogger(__name__)

# How soon a failed reconfiguration is retried, and changed files are noticed.
LOOK_SECONDS = 5.0
# How soon to look again while this worker may not start tasks.
DOUBT_SECONDS = 0.5
# How often to check whether a killed task can still write.
RELEASE_SECONDS = 0.1


class ThreadTask:
    """One task, or all tasks of a connector that are one unit; it is a `Task`.

    `make` is called on its thread, for each of its runs. `may_run` returns whether this worker may
    start tasks now.
    """

    def __init__(
        self,
        name: str,
        configs: TaskConfigs,
        make: Callable[[TaskConfigs], TaskWork],
        may_run: Callable[[], bool],
        stop_seconds: float,
        *,
        place: LogPlace = NOWHERE,
        starts: StartCounts | None = None,
    ) -> None:
        """`place`: what the lines of its threads begin with."""
        self.name = name
        self.configs = configs
        self.is_clean = True
        self._make = make
        self._may_run = may_run
        self._stop_seconds = stop_seconds
        self._lock = threading.Lock()
        self._failures = StartFailures(starts)
        self._work: TaskWork | None = None
        self._is_work_stopped = False
        self._is_starting = False
        self._must_reconfigure = False
        self._topics: set[str] = set()
        self._restart = threading.Event()
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._has_ended = False
        self._place = place
        self._thread = threading.Thread(target=self._run, name=f"task of {name}", daemon=True)

    # -- for any thread ----------------------------------------------------------------------------

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(sorted(self.configs))

    @property
    def last_error(self) -> str:
        with self._lock:
            work = self._work
        return self._failures.trace if work is None else work.last_error

    @property
    def work(self) -> TaskWork | None:
        with self._lock:
            return self._work

    @property
    def runner(self) -> TaskRunner | None:
        work = self.work
        return None if work is None else work.runner

    @property
    def has_ended(self) -> bool:
        return self._has_ended and not self._thread.is_alive()

    @property
    def is_starting(self) -> bool:
        return self._is_starting

    def start(self) -> None:
        self._thread.start()

    def reconfigure(self, configs: TaskConfigs) -> None:
        with self._lock:
            self.configs = configs
            self._must_reconfigure = True
        self._wake.set()

    def restart(self) -> None:
        with self._lock:
            work = self._work
        if work is None or not work.restart():
            self._restart.set()
        self._wake.set()

    def stop(self) -> None:
        self._stopping.set()
        with self._lock:
            work = self._work
        if work is not None:
            self._stop_work(work)
        self._wake.set()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def report(self) -> TaskReport:
        with self._lock:
            work = self._work
        if work is not None and not self._restart.is_set():
            return work.report()
        trace = self._failures.trace
        return TaskReport(TaskEvent.RAISED, trace) if trace else TaskReport(TaskEvent.ENDED)

    def take_topics(self) -> set[str]:
        with self._lock:
            work, taken, self._topics = self._work, self._topics, set()
        return taken if work is None else taken | work.take_topics()

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        enter_place(self._place)
        try:
            while not self._stopping.is_set():
                if self._restart.is_set():
                    self._restart.clear()
                    self._failures.forgive()
                self._live()
                self._pause()
        finally:
            forget_owner(self)
            self._has_ended = True

    def _pause(self) -> None:
        """Wait for the next run, or until `restart` asks for it."""
        until = time.monotonic() + max(DOUBT_SECONDS, self._failures.seconds_left)
        while not self._stopping.is_set() and not self._restart.is_set():
            left = until - time.monotonic()
            if left <= 0:
                return
            self._wake.wait(min(left, threading.TIMEOUT_MAX))
            self._wake.clear()

    def _live(self) -> None:
        """One run of the task; an error that prevents or ends it becomes its state."""
        work: TaskWork | None = None
        self._is_starting = True
        try:
            with self._lock:
                configs, self._must_reconfigure = self.configs, False
            with owned_by(self):
                work = self._make(configs)
            work.connect()
            # Connecting may take long: the task may belong to another worker by now.
            if not self._stopping.is_set() and self._may_run():
                self._begin(work)
                self._stay(work)
        except StoppingError as error:
            log.debug("task %s does not start: %s", self.name, error)
        # Whatever ends a task becomes its state; the other tasks continue.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            self._failures.failed(error)
            mark = event(EventKind.FAILED, task=str(min(self.configs)))
            log.error("task %s failed: %s", self.name, error, extra=mark)  # noqa: TRY400
        finally:
            self._is_starting = False
            if work is not None:
                self._end(work)

    def _begin(self, work: TaskWork) -> None:
        work.start()
        with self._lock:
            self._work, self._is_work_stopped = work, False
        self._failures.forgive()
        self._failures.counts.succeeded()
        self._is_starting = False

    def _stay(self, work: TaskWork) -> None:
        while not self._stopping.is_set() and not self._restart.is_set():
            with self._lock:
                must_reconfigure, self._must_reconfigure = self._must_reconfigure, False
            if must_reconfigure:
                self._change(work)
            else:
                work.look()
            self._wake.wait(LOOK_SECONDS)
            self._wake.clear()

    def _change(self, work: TaskWork) -> None:
        try:
            work.reconfigure(self.configs)
        except MirrorError as error:
            log.warning("task %s does not have its new configuration yet: %s", self.name, error)
            with self._lock:
                self._must_reconfigure = True

    def _end(self, work: TaskWork) -> None:
        """Stop the task, and kill it if it does not end in time."""
        deadline = time.monotonic() + self._stop_seconds
        self._stop_work(work)
        self.is_clean = work.join(max(0.1, deadline - time.monotonic()))
        if not self.is_clean:
            log.warning("task %s did not end clean: some may be copied twice", self.name)
        while not work.is_released:
            time.sleep(RELEASE_SECONDS)
        with self._lock:
            self._topics |= work.take_topics()
            self._work = None

    def _stop_work(self, work: TaskWork) -> None:
        with self._lock:
            is_stopped = work is self._work and self._is_work_stopped
            if work is self._work:
                self._is_work_stopped = True
        if not is_stopped:
            work.stop()
