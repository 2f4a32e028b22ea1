"""Keeps one connector task running on Spark: starts it, sends it changes, restarts it on failure.

Runs on: worker. One thread per task, which blocks in Spark; messages come on the link's thread.
"""

from __future__ import annotations

import enum
import logging
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from sparkmirror.config.masking import mask
from sparkmirror.errors import KafkaError, MirrorError
from sparkmirror.logs.places import carried
from sparkmirror.retry import Backoff, RetryPolicy
from sparkmirror.spark.figures import FIGURES, TaskFigures
from sparkmirror.spark.link import task_log
from sparkmirror.spark.link.frames import LinkMessage
from sparkmirror.spark.link.lease import Lender
from sparkmirror.spark.link.server import LinkServer, TaskConnection
from sparkmirror.spark.reported_figures import ReportedFigures
from sparkmirror.spark.session import SparkEngine

log = logging.getLogger(__name__)

RESTARTS = RetryPolicy(1.0, 60.0)
# A task that ran this long was healthy: its next failure starts with the short wait again.
HEALTHY_SECONDS = 60.0
# How long a submitted task may wait for a slot, and with one for its start, before a warning.
SLOT_SECONDS = 10.0
CONNECT_SECONDS = 60.0
# What a cancelled job may take to end: Spark gives a Python worker two seconds.
CANCEL_SECONDS = 5.0
# For the end of a task that has not begun to copy.
IDLE_SECONDS = 0.5
# A task that missed so many of its reports, one a second, may be behind a cut line.
SILENT_SECONDS = 3.0
# Counted by a task since it began, and here since the worker began.
TOTALS = ("records", "bytes", "lost_records", "skipped_records", "polled_records")


class TaskState(enum.StrEnum):
    """Connect's words."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


class TaskRunner:
    """One task of one connector.

    `make_start_message` is called on every (re)start, when the task has connected: it reads the
    stored positions.
    """

    def __init__(
        self,
        engine: SparkEngine,
        links: LinkServer,
        task: str,
        make_start_message: Callable[[], LinkMessage],
        on_missing: Callable[[list[str]], None],
        *,
        lease: Lender | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.task = task
        # The name of its Spark job: one that was cancelled before it connected may still connect
        # when the same task of the same connector has been started again.
        self._job = f"{task}#{secrets.token_hex(4)}"
        self.state = TaskState.UNASSIGNED
        self.trace = ""
        self.restarts = 0
        # Whether the last attempt failed, and none has connected since.
        self.has_failed = False
        # How often it has connected.
        self.attempts = 0
        # The last report of the task; its TOTALS include those of its earlier attempts.
        self.numbers: dict[str, Any] = {}
        self.changed = threading.Event()
        self._engine = engine
        self._links = links
        self._make_start_message = make_start_message
        self._on_missing = on_missing
        self._lease = lease
        self._lock = threading.RLock()
        self._link: TaskConnection | None = None
        # What was sent while the start message of a new attempt was being made, which may lack it.
        self._sent_while_starting: list[LinkMessage] | None = None
        self._totals: Counter[str] = Counter()
        self._figures = ReportedFigures()
        self._topics: set[str] = set()
        self._restart_asked = threading.Event()
        self._is_clean = True
        self._killed_after: float | None = None
        self._was_cut_off = False
        self._stopping = threading.Event()
        self._submitted: float | None = None
        self._connected = False
        self._clock = clock
        self._backoff = Backoff(RESTARTS, clock, healthy_seconds=HEALTHY_SECONDS)
        self._wait_logged = False
        self._thread = threading.Thread(target=carried(self._run), name=f"task {task}", daemon=True)

    @property
    def has_connected(self) -> bool:
        """Whether its last attempt has its start message, and so may have copied something."""
        return self._connected

    @property
    def needs_files(self) -> bool:
        """Whether it runs on machines that do not have the worker's files."""
        return not self._engine.is_local

    @property
    def is_released(self) -> bool:
        """Whether nothing that its last attempt has sent can arrive any more.

        Spark may give up an executor as lost while it still writes: until the end of its last
        lease. On this machine a job that has ended writes no more.
        """
        if self._is_clean or (self._engine.is_local and not self._thread.is_alive()):
            return True
        return self._links.has_released(self._job)

    @property
    def is_cut_off(self) -> bool:
        """Whether its executor cannot be reached: its lease ended, and so it copies nothing."""
        is_silent = (link := self._link) is not None and link.silent_seconds > SILENT_SECONDS
        return is_silent and self._links.has_released(self._job)

    @property
    def records(self) -> int:
        """Copied since the worker started."""
        return int(self.numbers.get("records", 0))

    @property
    def bytes(self) -> int:
        """Copied since the worker started."""
        return int(self.numbers.get("bytes", 0))

    def figures(self) -> TaskFigures:
        """What it last reported of each partition, with totals over its attempts."""
        return self._figures.read(self.task)

    def start(self) -> None:
        """Submit the task."""
        self._links.expect(self._job, self, self._lease)
        self._thread.start()

    def send(self, message: LinkMessage) -> None:
        """Send to the running task; one that is not running gets it with its next start message."""
        with self._lock:
            link = self._link
            if self._sent_while_starting is not None:
                self._sent_while_starting.append(message)
        if link is None:
            return
        try:
            link.send(message)
        except KafkaError as error:
            log.debug("[%s] not sent, it is ending: %s", self.task, error)

    def stop(self) -> None:
        """Ask the task to commit and end; one that has not connected has nothing to commit."""
        with self._lock:
            self._stopping.set()
            waits = self._link is None
        self._restart_asked.set()
        if waits:
            self._engine.cancel_task(self._job)
        self.send({"type": "stop"})

    def join(self, seconds: float) -> bool:
        """Wait for the task to end, or kill it; return whether it ended cleanly."""
        if self.is_cut_off:
            self._was_cut_off = True
            self._engine.cancel_task(self._job)
        elif self._has_copied():
            self._wait_for_end(seconds)
        elif self._thread.ident is not None:
            # Spark may take long to start or cancel a task; there is nothing to store.
            self._thread.join(min(seconds, IDLE_SECONDS))
        self._links.forget(self._job)
        self.state = TaskState.STOPPED
        if not self._is_clean:
            log.warning("[%s] last positions not stored: %s", self.task, self._why_unclean())
        return self._is_clean

    def _has_copied(self) -> bool:
        """Whether an attempt has its start message and has not reported that all is stored."""
        with self._lock:
            return self._link is not None or not self._is_clean

    def _wait_for_end(self, seconds: float) -> None:
        self._thread.join(seconds)
        if self._thread.is_alive():
            log.warning(
                "[%s] did not stop in time; killing it: records since its last stored position "
                "are copied again",
                self.task,
            )
            self._killed_after = seconds
            self._engine.cancel_task(self._job)
            self._thread.join(CANCEL_SECONDS)

    def _why_unclean(self) -> str:
        """Why the last attempt could not store its positions, as far as known."""
        if self._was_cut_off:
            return "its executor cannot be reached"
        problems = self.numbers.get("problems") or {}
        waits = "; ".join(f"{tp}: {text}" for tp, text in problems.items())
        if self._killed_after is not None:
            why = f"; {waits}" if waits else ""
            return f"it did not end within {self._killed_after:.0f} s{why}"
        if "clean" in self.numbers:  # its last report
            return waits or "the cluster that keeps them did not respond in time"
        if self.trace:
            return reason_of(self.trace)
        return f"it ended without a last report; {self._engine.describe_end()}"

    def restart(self) -> None:
        """Start a new attempt now: a running one commits and ends; a pause after a failure ends."""
        self._restart_asked.set()
        self.send({"type": "stop"})

    def take_topics(self) -> set[str]:
        """Target topics that got records since the last call."""
        with self._lock:
            taken, self._topics = self._topics, set()
        return taken

    def check_slot(self, tasks_wanted: int) -> None:
        """Log that the task has been waiting for a Spark slot; called about once a second.

        Raises:
            MirrorError: Spark is gone, and no task will ever run again.
        """
        self._engine.check_alive()
        if self.state is not TaskState.UNASSIGNED or self._submitted is None or self._wait_logged:
            return
        waited = self._clock() - self._submitted
        if waited < SLOT_SECONDS:
            return
        missing = tasks_wanted - self._engine.slots
        if missing > 0 or waited > CONNECT_SECONDS:
            self._wait_logged = True
            log.warning("[%s] UNASSIGNED: %s", self.task, self._why_waiting(tasks_wanted, missing))

    # -- from the control link ---------------------------------------------------------------------

    def on_hello(self, link: TaskConnection) -> None:
        """The task runs on some executor and waits for its start message."""
        with self._lock:
            self._sent_while_starting = []
        start_message = self._make_start_message()
        with self._lock:
            if self._stopping.is_set():
                # Its job is being cancelled, and another one may follow at once.
                raise MirrorError("the task is stopping")
            self._keep_totals()
            self._figures.begin()
            self._link = link
            self._is_clean = False
            self._connected = True
            self._backoff.succeeded()
            self.attempts += 1
            self.state, self.has_failed = TaskState.RUNNING, False
            for message in (start_message, *self._sent_while_starting):
                link.send(message)
            self._sent_while_starting = None
        if self.restarts:
            mark = task_log.running_event(self.task)
            log.info("[%s] RUNNING again, after %d restarts", self.task, self.restarts, extra=mark)
        self.changed.set()

    def on_message(self, link: TaskConnection, message: LinkMessage) -> None:
        """The task sent figures or a log line."""
        if link is not self._link:
            return
        if message.get("type") == task_log.LOG:
            task_log.log_line(log, self.task, message)
            return
        if message.get("type") == FIGURES:
            self._figures.take(message)
            return
        with self._lock:
            self._topics.update(message.pop("active_topics", ()))
        totals = {name: self._totals[name] + int(message.get(name, 0)) for name in TOTALS}
        self.numbers = message | totals
        self._is_clean = bool(message.get("clean"))
        self._figures.heard()
        if message.get("missing_topics"):
            self._on_missing(message["missing_topics"])

    def on_gone(self, link: TaskConnection) -> None:
        """The link is closed; the Spark job ends, or Spark runs the task again."""
        with self._lock:
            if self._link is not link:
                return
            self._link = None
            self._keep_totals()
            if self.state is TaskState.RUNNING:
                self.state = TaskState.UNASSIGNED
        if link.was_silent and not self._stopping.is_set():
            log.warning("[%s] sends nothing any more: killing it", self.task)
            self._engine.cancel_task(self._job)

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            ended = self._attempt()
            if self._stopping.is_set():
                break
            self.restarts += 1
            self._pause(ended)
        self.state = TaskState.STOPPED

    def _pause(self, ended: str) -> None:
        """Wait before the next attempt; a requested restart ends the wait and the back-off."""
        with self._lock:
            seconds = self._backoff.failed()
        if not self._restart_asked.is_set():
            mark = task_log.failed_event(self.task)
            log.error("[%s] %s; starting it again in %.0f s", self.task, ended, seconds, extra=mark)
        if self._restart_asked.wait(seconds):
            self._restart_asked.clear()
            with self._lock:
                self._backoff.reset()

    def _attempt(self) -> str:
        """One Spark job; how it ended."""
        self.state = TaskState.UNASSIGNED
        self._submitted, self._connected, self._wait_logged = self._clock(), False, False
        token = self._links.token(self._engine.driver_host, self._job)
        try:
            ended = self._engine.run_task(token, task_log.describe_task(self.task))
        # One of the places with a broad except: any failure of a task becomes its state.
        except Exception as error:  # noqa: BLE001
            self.trace = mask(str(error))
            self.has_failed = True
            self.state = TaskState.FAILED
            self.changed.set()
            return f"FAILED: {reason_of(self.trace)}"
        return f"ended by itself ({ended})"

    def _keep_totals(self) -> None:
        """An attempt has ended: the next one continues from its figures."""
        self._totals = Counter({name: int(self.numbers.get(name, 0)) for name in TOTALS})

    def _why_waiting(self, tasks_wanted: int, missing: int) -> str:
        spark = f"Spark ({self._engine.master}) has {tasks_wanted - missing} slots"
        if missing > 0:
            return (
                f"{spark} for {tasks_wanted} tasks, {missing} missing; add executors or cores, "
                "or lower tasks.max"
            )
        return f"{spark}, enough for all, but has not started the task; see Spark's own page"


JAVA_ERROR = re.compile(r"^: (?:[\w.$]+: )?(?P<error>.*)$", re.MULTILINE)
JAVA_FRAMES = re.compile(r"^ SQLSTATE: |^\tat ", re.MULTILINE)
LOST = "most recent failure: "
NOT_INSTALLED = "No module named 'sparkmirror'"


def reason_of(trace: str) -> str:
    """The reason in a Spark trace, as one line: the Python error, else Spark's own text."""
    java = JAVA_ERROR.search(trace)
    reason = _python_error(trace) or (java["error"] if java else trace).rpartition(LOST)[2]
    if NOT_INSTALLED in reason:
        reason += " on the executors; docs/spark-clusters.md shows how to install it"
    return " ".join(reason.split()) or "no reason given"


def _python_error(trace: str) -> str:
    """The last Python error of a Java trace; "" if there is none.

    ...PythonException: [PYTHON_EXCEPTION] ...: Traceback (most recent call last):
      File ..., line ..., in ...                     indented frames, of one error or of several
    sparkmirror.errors.RefusedError: the message     which may have more lines
     SQLSTATE: 38000                                 and then the frames of Java
    """
    lines = JAVA_FRAMES.split(trace, maxsplit=1)[0].splitlines()
    frames = [at for at, line in enumerate(lines) if line.startswith("  ")]
    if not frames:
        return ""
    return "\n".join(lines[frames[-1] + 1 :]).removeprefix("sparkmirror.errors.")
