"""Keeps one connector task running on Spark: starts it, talks to it, restarts it when it fails.

Runs on: worker. One thread per task, which blocks in Spark; messages come on the link's thread.
"""

from __future__ import annotations

import enum
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from sparkmirror.errors import KafkaError
from sparkmirror.spark.copy_task import Ticket
from sparkmirror.spark.link_frames import Message
from sparkmirror.spark.link_server import Link, LinkServer
from sparkmirror.spark.session import SparkEngine

log = logging.getLogger(__name__)

FIRST_BACKOFF_SECONDS = 1.0
LONGEST_BACKOFF_SECONDS = 60.0
# A task that ran this long was healthy: its next failure starts with the short wait again.
HEALTHY_SECONDS = 60.0
# How long a submitted task may lack a slot before the log says so.
SLOT_SECONDS = 10.0


class TaskState(enum.StrEnum):
    """Connect's words."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


class TaskRunner:
    """One task of one connector.

    `make_orders` is called on every (re)start, when the task has called in: it reads the stored
    positions.
    """

    def __init__(
        self,
        engine: SparkEngine,
        links: LinkServer,
        task: str,
        make_orders: Callable[[], Message],
        on_missing: Callable[[list[str]], None],
    ) -> None:
        self.task = task
        self.state = TaskState.UNASSIGNED
        self.trace = ""
        self.restarts = 0
        self.numbers: dict[str, Any] = {}
        # Totals of attempts that have ended; `numbers` counts from the start of the current one.
        self.base_records = 0
        self.base_bytes = 0
        self.changed = threading.Event()
        self._engine = engine
        self._links = links
        self._make_orders = make_orders
        self._on_missing = on_missing
        self._lock = threading.RLock()
        self._link: Link | None = None
        self._stopping = threading.Event()
        self._submitted = 0.0
        self._slot_said = False
        self._thread = threading.Thread(target=self._run, name=f"task {task}", daemon=True)

    @property
    def records(self) -> int:
        """Copied since the worker started."""
        return self.base_records + int(self.numbers.get("records", 0))

    @property
    def bytes(self) -> int:
        """Copied since the worker started."""
        return self.base_bytes + int(self.numbers.get("bytes", 0))

    def start(self) -> None:
        """Submit the task."""
        self._links.expect(self.task, self)
        self._thread.start()

    def send(self, message: Message) -> None:
        """Tell the running task; one that is not running gets it with its next orders."""
        with self._lock:
            link = self._link
        if link is None:
            return
        try:
            link.send(message)
        except KafkaError as error:
            log.debug("[%s] not told, it is ending: %s", self.task, error)

    def stop(self) -> None:
        """Ask the task to commit and end."""
        self._stopping.set()
        self.send({"type": "stop"})

    def join(self, seconds: float) -> bool:
        """Wait for the end; a task that is late is killed. Tells whether it was clean."""
        self._thread.join(seconds)
        if self._thread.is_alive():
            log.warning("[%s] does not end: killing it; its next start may copy twice", self.task)
            self._engine.cancel_task(self.task)
            self._thread.join(5.0)
        self._links.forget(self.task)
        self.state = TaskState.STOPPED
        return bool(self.numbers.get("clean"))

    def check_slot(self, tasks_wanted: int) -> None:
        """Say so when the task has been waiting for a Spark slot."""
        waiting = self.state is TaskState.UNASSIGNED and self._submitted
        if waiting and not self._slot_said and time.monotonic() - self._submitted > SLOT_SECONDS:
            self._slot_said = True
            slots = self._engine.slots
            log.warning(
                "[%s] UNASSIGNED: Spark (%s) has %d slots for %d tasks, %d missing; add executors "
                "or cores, or lower tasks.max",
                self.task,
                self._engine.master,
                slots,
                tasks_wanted,
                max(1, tasks_wanted - slots),
            )

    # -- from the control link ---------------------------------------------------------------------

    def on_hello(self, link: Link) -> None:
        """The task runs on some executor and wants its orders."""
        orders = self._make_orders()
        with self._lock:
            self._link = link
            link.send(orders)
            self.state = TaskState.RUNNING
        self.changed.set()
        if self._stopping.is_set():
            link.send({"type": "stop"})

    def on_message(self, link: Link, message: Message) -> None:
        """Numbers and log lines."""
        if link is not self._link:
            return
        if message.get("type") == "log":
            log.log(int(message["level"]), "[%s] %s", self.task, message["text"])
            return
        self.numbers = message
        if message.get("missing_topics"):
            self._on_missing(message["missing_topics"])

    def on_gone(self, link: Link) -> None:
        """The link is closed; the Spark job ends, or Spark runs the task again."""
        with self._lock:
            if self._link is link:
                self._link = None
                self.state = TaskState.UNASSIGNED
                self._fold_numbers()

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        backoff = FIRST_BACKOFF_SECONDS
        while not self._stopping.is_set():
            began = self._submitted = time.monotonic()
            self._slot_said = False
            ended = self._attempt()
            if self._stopping.is_set():
                break
            if time.monotonic() - began > HEALTHY_SECONDS:
                backoff = FIRST_BACKOFF_SECONDS
            self.restarts += 1
            log.error("[%s] %s; starting it again in %.0f s", self.task, ended, backoff)
            self._stopping.wait(backoff)
            backoff = min(backoff * 2, LONGEST_BACKOFF_SECONDS)
        self.state = TaskState.STOPPED

    def _attempt(self) -> str:
        ticket = Ticket(self._engine.driver_host, self._links.port, self._links.secret, self.task)
        try:
            ended = self._engine.run_task(ticket, f"copy task {self.task}")
        # One of the four places with a broad except: whatever ends a task becomes its state.
        except Exception as error:  # noqa: BLE001
            self.state = TaskState.FAILED
            self.trace = str(error)
            self.changed.set()
            return f"FAILED: {reason_of(self.trace)}"
        return f"ended by itself ({ended})"

    def _fold_numbers(self) -> None:
        self.base_records += int(self.numbers.get("records", 0))
        self.base_bytes += int(self.numbers.get("bytes", 0))
        self.numbers = {k: v for k, v in self.numbers.items() if k not in ("records", "bytes")}


def reason_of(trace: str) -> str:
    """The line of a Spark trace that names the Python error; the first line when there is none."""
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("sparkmirror.errors.")]
    if ours:
        return ours[-1].removeprefix("sparkmirror.errors.")
    return lines[0] if lines else "no reason given"
