"""Keeps one connector as its user wants it: running, paused, stopped or gone.

Runs on: worker, the leader, one thread per connector: whatever one of them waits for, the others
and the REST API do not. A connector that cannot start is FAILED, and is tried again with back-off.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.config.keys.plugins import UnusableConnector
from sparkmirror.config.masking import forget_owner, mask, owned_by
from sparkmirror.connect.entities import ConnectorProps, State, TargetState
from sparkmirror.connect.runtime.running import Running, StateAndTrace, stop_now
from sparkmirror.connect.runtime.status_publisher import StatusPublisher
from sparkmirror.errors import ConfigError, ConfigErrors, MirrorError
from sparkmirror.mirror.task_configs import complete_settings

log = logging.getLogger(__name__)

TICK_SECONDS = 0.5
FIRST_BACKOFF_SECONDS = 1.0
LONGEST_BACKOFF_SECONDS = 60.0
# What the log says of each state that a user asked for.
ASKED = {
    TargetState.STARTED: "resumed",
    TargetState.PAUSED: "paused",
    TargetState.STOPPED: "stopped, its tasks are taken away",
}


@dataclass(frozen=True, slots=True)
class ConnectorTarget:
    """What the config topic says of a connector; `tasks` are the settings of its tasks."""

    config: ConnectorProps
    state: TargetState
    tasks: Sequence[Mapping[str, str]] = ()


@dataclass(slots=True, eq=False)
class PendingRestart:
    """Somebody asked for a restart; `done` is set when it was tried, `error` says how it failed.

    `is_missed`: it was not tried, for whom it met had ended; another of its name may be there.
    """

    connector: bool
    tasks: frozenset[int] = frozenset()
    done: threading.Event = field(default_factory=threading.Event)
    error: str = ""
    is_missed: bool = False

    def __str__(self) -> str:
        parts = ["the connector"] if self.connector else []
        parts += [f"task {task}" for task in sorted(self.tasks)]
        return ", ".join(parts) or "nothing"


class WorkerConnector:
    """One connector. `make` parses the settings; `leads` tells whether this worker still leads."""

    def __init__(
        self,
        name: str,
        make: Callable[[ConnectorProps], Running],
        publisher: StatusPublisher,
        leads: Callable[[], bool],
        stop_seconds: float,
    ) -> None:
        self.name = name
        self.running: Running | None = None
        self._make = make
        self._publisher = publisher
        self._leads = leads
        self._stop_seconds = stop_seconds
        self._lock = threading.Lock()
        self._desired: ConnectorTarget | None = None
        self._restarts: list[PendingRestart] = []
        self._is_leaving = False
        self._has_ended = False
        self._is_active = False
        self._is_starting = False
        self._wake = threading.Event()
        self._seen: ConnectorTarget | None = None
        self._config: ConnectorProps | None = None
        self._failure = ""
        self._retry_at = 0.0
        self._backoff = FIRST_BACKOFF_SECONDS
        self._thread = threading.Thread(target=self._run, name=f"connector {name}", daemon=True)

    # -- for any thread ----------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread; `want` comes first."""
        self._thread.start()

    def want(self, desired: ConnectorTarget | None) -> bool:
        """What it shall be from now on, None: gone; False when the thread has ended already."""
        with self._lock:
            if self._has_ended:
                return False
            if desired != self._desired:
                self._desired = desired
                self._wake.set()
            return True

    def restart(self, restart: PendingRestart) -> bool:
        """Restart what it names, soon; False when the thread has ended already."""
        with self._lock:
            if self._has_ended:
                return False
            self._restarts.append(restart)
            self._wake.set()
            return True

    def leave(self) -> None:
        """This worker leads no more, or ends: stop, without a word if somebody else leads now."""
        with self._lock:
            self._is_leaving = True
            self._wake.set()

    def join(self, seconds: float) -> bool:
        """Wait for the thread; tells whether it ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def has_ended(self) -> bool:
        """Whether the thread is done."""
        return self._has_ended and not self._thread.is_alive()

    @property
    def is_starting(self) -> bool:
        """Whether the connector has only begun to start: it has nothing to store."""
        return self._is_starting

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs, nor begins, nor ends."""
        return not self._is_active

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        self._tell(self._publisher.take_over)
        try:
            while self._step():
                self._wake.wait(TICK_SECONDS)
                self._wake.clear()
        finally:
            self._halt()
            with self._lock:
                self._has_ended = True
                restarts, self._restarts = self._restarts, []
            self._miss(restarts)
            forget_owner(self)

    def _step(self) -> bool:
        """Whether to go on."""
        with self._lock:
            desired, is_leaving = self._desired, self._is_leaving
            restarts, self._restarts = self._restarts, []
        if is_leaving or not self._leads():
            self._answer(restarts, "this worker leads no more")
            self._leave(desired)
            return False
        if desired is None:
            self._miss(restarts)
            return self._remove()
        if desired is not self._seen:
            self._say_change(desired)
            self._seen = desired
            self._publisher.stored_changed()
        try:
            self._bring(desired, restarts)
        # Whatever ends a connector becomes its state; the others go on.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            self._fail(error)
        self._answer(restarts, self._failure)
        self._tell(lambda: self._publish(desired))
        return True

    def _say_change(self, desired: ConnectorTarget) -> None:
        """What a user asked for leaves a trace in the log; of settings the names, no values."""
        seen = self._seen
        if desired.state is not (TargetState.STARTED if seen is None else seen.state):
            log.info("connector %s: %s", self.name, ASKED[desired.state])
        if seen is not None and desired.config != seen.config:
            keys = seen.config.keys() | desired.config.keys()
            changed = [key for key in keys if seen.config.get(key) != desired.config.get(key)]
            log.info("connector %s: settings changed: %s", self.name, ", ".join(sorted(changed)))

    def _bring(self, desired: ConnectorTarget, restarts: Sequence[PendingRestart]) -> None:
        if desired.config != self._config:
            self._forgive()
        if self._must_halt(desired, restarts):
            self._show_restarting(desired, restarts)
            self._halt()
        if desired.state is not TargetState.STARTED:
            self._failure = ""
            return
        self._restart_parts(restarts)
        if self.running is None and time.monotonic() >= self._retry_at:
            self._start(desired)

    def _must_halt(self, desired: ConnectorTarget, restarts: Sequence[PendingRestart]) -> bool:
        running = self.running
        if running is None:
            return False
        if desired.state is not TargetState.STARTED or desired.config != self._config:
            return True
        # Tasks that are no Spark tasks begin anew with the whole.
        return not running.has_own_tasks and any(restart.tasks for restart in restarts)

    def _restart_parts(self, restarts: Sequence[PendingRestart]) -> None:
        running = self.running
        for restart in restarts:
            log.info("connector %s: restart of %s", self.name, restart)
            if running is None:
                self._forgive()
                continue
            for task in restart.tasks:
                running.restart_task(task)
            if restart.connector:
                _refresh(running, restart)

    def _start(self, desired: ConnectorTarget) -> None:
        self._config = desired.config
        with owned_by(self):
            running = self._make(desired.config)
        self._is_active = True
        self._is_starting = True
        try:
            running.connect()
            # That may have taken long: somebody else may lead by now.
            if self._leads():
                running.start()
                self.running = running
                log.info("connector %s started", self.name)
        finally:
            self._is_starting = False
            if self.running is not running:
                self._end(running)
        self._forgive()

    def _halt(self) -> None:
        running, self.running = self.running, None
        if running is not None:
            self._end(running)
            # The last that its tasks told, maybe the first: they may have run for a moment only.
            if self._desired is not None and self._leads():
                self._tell(lambda: self._publisher.add_topics(running.take_topics()))

    def _end(self, running: Running) -> None:
        try:
            if not stop_now(running, self._stop_seconds):
                log.warning("connector %s did not end clean: some may be copied twice", self.name)
        finally:
            self._is_active = False

    def _fail(self, error: Exception | SystemExit) -> None:
        """Settings are not tried again by themselves: only other settings can be better."""
        is_final = isinstance(error, ConfigError | ConfigErrors | UnusableConnector)
        self._failure = _trace(error)
        self._retry_at = float("inf") if is_final else time.monotonic() + self._backoff
        self._backoff = min(self._backoff * 2, LONGEST_BACKOFF_SECONDS)
        log.error("connector %s failed: %s", self.name, error)

    def _forgive(self) -> None:
        self._failure = ""
        self._retry_at = 0.0
        self._backoff = FIRST_BACKOFF_SECONDS

    @staticmethod
    def _answer(restarts: Sequence[PendingRestart], failure: str) -> None:
        for restart in restarts:
            restart.error = restart.error or failure
            restart.done.set()

    @staticmethod
    def _miss(restarts: Sequence[PendingRestart]) -> None:
        for restart in restarts:
            restart.is_missed = True
            restart.done.set()

    # -- what others see ---------------------------------------------------------------------------

    def _publish(self, desired: ConnectorTarget) -> None:
        self._publish_tasks(desired)
        self._publisher.show(self._view(desired), self._task_views(desired))
        if self.running is not None:
            self._publisher.add_topics(self.running.take_topics())

    def _tell(self, tell: Callable[[], None]) -> bool:
        """Whether others know; if they do not, they are told at the next turn."""
        try:
            tell()
        except MirrorError as error:
            log.warning("connector %s: its state cannot be stored: %s", self.name, error)
        except Exception:  # a mistake in what is told must not end what runs
            log.exception("connector %s: its state cannot be told", self.name)
        else:
            return True
        return False

    def _publish_tasks(self, desired: ConnectorTarget) -> None:
        tasks = self._tasks(desired)
        if tasks is not None and self._leads():
            self._publisher.put_tasks(tasks, desired.tasks)

    def _tasks(self, desired: ConnectorTarget) -> list[dict[str, str]] | None:
        """The settings of all tasks; None: those that are stored stay."""
        if desired.state is TargetState.STOPPED:
            return []
        running = self.running
        own = None if running is None else running.tasks()
        if running is None or own is None:
            return None
        return [complete_settings(desired.config, running.task_class, each) for each in own]

    def _view(self, desired: ConnectorTarget) -> StateAndTrace | None:
        if desired.state is not TargetState.STARTED:
            return StateAndTrace(State(desired.state))
        if self._failure:
            return StateAndTrace(State.FAILED, self._failure)
        return (
            StateAndTrace(State.RUNNING, self.running.notice) if self.running is not None else None
        )

    def _task_views(self, desired: ConnectorTarget) -> list[StateAndTrace]:
        tasks = self._tasks(desired)
        count = len(desired.tasks if tasks is None else tasks)
        if desired.state is TargetState.PAUSED:
            return [StateAndTrace(State.PAUSED)] * count
        if tasks is None or self.running is None:
            return [StateAndTrace(State.UNASSIGNED)] * count
        return [self.running.view(at) for at in range(count)]

    def _show_restarting(
        self, desired: ConnectorTarget, restarts: Sequence[PendingRestart]
    ) -> None:
        if restarts:
            again = StateAndTrace(State.RESTARTING)
            views = [again] * len(self._task_views(desired))
            self._tell(lambda: self._publisher.show(again, views))

    # -- the end -----------------------------------------------------------------------------------

    def _remove(self) -> bool:
        """Deleted. Whether to go on: it is wanted again meanwhile, or others are not told yet."""
        self._halt()
        self._forgive()
        self._config = None
        if not self._tell(self._publisher.forget):
            return True
        log.info("connector %s deleted", self.name)
        with self._lock:
            self._has_ended = self._desired is None
            return not self._has_ended

    def _leave(self, desired: ConnectorTarget | None) -> None:
        count = 0 if desired is None else len(self._task_views(desired))
        self._halt()
        if desired is None or desired.state is TargetState.STOPPED or not self._leads():
            return
        nobody = StateAndTrace(State.UNASSIGNED)
        self._tell(lambda: self._publisher.show(nobody, [nobody] * count))


def _refresh(running: Running, restart: PendingRestart) -> None:
    """It runs on if that fails, and tries again by itself."""
    try:
        running.restart()
    except MirrorError as error:
        restart.error = mask(str(error))


def _trace(error: Exception | SystemExit) -> str:
    """For operators: what was meant to happen and did not; of our mistakes, where."""
    if isinstance(error, MirrorError):
        return mask(f"{type(error).__module__}.{type(error).__name__}: {error}")
    return mask("".join(traceback.format_exception(error)))
