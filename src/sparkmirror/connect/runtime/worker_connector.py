"""Keeps one connector as its user wants it: running, paused, stopped or gone.

Runs on: worker, the leader, one thread per connector: whatever one of them waits for, the others
and the REST API do not. A connector that cannot start is FAILED, and is tried again with back-off.
Its tasks are not here: what they shall do goes to the config topic, from which workers start them.
Mirrors: org.apache.kafka.connect.runtime.WorkerConnector.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.config.masking import forget_owner, mask, owned_by
from sparkmirror.connect.connector import Connector, StateAndTrace
from sparkmirror.connect.entities import ConnectorProps, State, TargetState
from sparkmirror.connect.runtime.status_publisher import ConnectorStatuses
from sparkmirror.connect.start_counts import StartCounts
from sparkmirror.connect.start_failures import StartFailures
from sparkmirror.connect.states import ConnectorEvent, connector_states
from sparkmirror.errors import MirrorError
from sparkmirror.events import EventKind, about_connector
from sparkmirror.mirror.task_configs import complete_settings, partitions_move

log = logging.getLogger(__name__)

TICK_SECONDS = 0.5
TASKS_MAX = "tasks.max"
NOT_NOW = "this worker leads no more"
TARGET_EVENTS = {
    TargetState.STARTED: ConnectorEvent.TARGET_STARTED,
    TargetState.PAUSED: ConnectorEvent.TARGET_PAUSED,
    TargetState.STOPPED: ConnectorEvent.TARGET_STOPPED,
}
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
    """One connector; it is its connector's `ConnectorContext`.

    `make` parses the settings; `leads` tells whether this worker leads for sure; `has_tasks`
    whether tasks of the connector run or end on any worker.
    """

    def __init__(  # noqa: PLR0917
        self,
        name: str,
        make: Callable[[ConnectorProps], Connector],
        statuses: ConnectorStatuses,
        leads: Callable[[], bool],
        has_tasks: Callable[[], bool],
        stop_seconds: float,
        label: str = "",
        starts: StartCounts | None = None,
    ) -> None:
        """`label`: its name in the log."""
        self.name = name
        self._starts = starts or StartCounts()
        self._label = label or name
        self.connector: Connector | None = None
        self._make = make
        self._statuses = statuses
        self._leads = leads
        self._has_tasks = has_tasks
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
        self._states = connector_states()
        # Of an earlier connector of this name, which was deleted.
        self._must_forget = False
        self._failures = StartFailures()
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

    # -- the connector's context -------------------------------------------------------------------

    def request_task_reconfiguration(self) -> None:
        """Write the tasks' configurations soon, if they are others."""
        self._wake.set()

    def stored_tasks(self) -> Sequence[Mapping[str, str]]:
        """Tasks that there may be as many of as before."""
        desired = self._seen
        if desired is None:
            return ()
        most = desired.config.get(TASKS_MAX)
        return desired.tasks if all(task.get(TASKS_MAX) == most for task in desired.tasks) else ()

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        self._tell(self._statuses.take_over)
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
        if is_leaving:
            self._answer(restarts, NOT_NOW)
            self._leave(desired)
            return False
        if not self._leads():  # not for sure: nothing stops, and nothing begins
            self._answer(restarts, NOT_NOW)
            return True
        if desired is None:
            self._miss(restarts)
            return self._remove()
        if self._must_forget and not self._tell(self._forget):
            return True
        if desired is not self._seen:
            self._say_change(desired)
            self._seen = desired
            self._statuses.stored_changed()
        try:
            self._bring(desired, restarts)
        # Whatever ends a connector becomes its state; the others go on.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            self._starts.failed()
            self._failures.failed(error)
            self._states.fire(ConnectorEvent.START_FAILED)
            mark = about_connector(EventKind.FAILED, self.name, self._label)
            log.error("connector %s failed: %s", self._label, error, extra=mark)  # noqa: TRY400
        self._answer(restarts, self._failures.trace)
        self._tell(lambda: self._publish(desired))
        return True

    def _say_change(self, desired: ConnectorTarget) -> None:
        """What a user asked for leaves a trace in the log; of settings the names, no values."""
        seen = self._seen
        if desired.state is not (TargetState.STARTED if seen is None else seen.state):
            mark = about_connector(EventKind.ACTION, self.name, self._label)
            log.info("connector %s: %s", self._label, ASKED[desired.state], extra=mark)
        if seen is not None and desired.config != seen.config:
            keys = seen.config.keys() | desired.config.keys()
            changed = [key for key in keys if seen.config.get(key) != desired.config.get(key)]
            mark = about_connector(EventKind.ACTION, self.name)
            names = ", ".join(sorted(changed))
            log.info("connector %s: settings changed: %s", self._label, names, extra=mark)

    def _bring(self, desired: ConnectorTarget, restarts: Sequence[PendingRestart]) -> None:
        has_changed = desired.config != self._config
        if has_changed:
            self._failures.forgive()
            self._states.fire(ConnectorEvent.SETTINGS_CHANGED)
        self._states.fire(TARGET_EVENTS[desired.state])
        if has_changed or desired.state is not TargetState.STARTED:
            self._halt()
        if desired.state is not TargetState.STARTED:
            self._failures.forgive()
            return
        for restart in restarts:
            self._restart(restart)
        if self.connector is None and self._failures.is_due:
            self._start(desired)

    def _restart(self, restart: PendingRestart) -> None:
        """It runs on if its refresh fails, and tries again by itself."""
        mark = about_connector(EventKind.ACTION, self.name, self._label)
        log.info("connector %s: restart of %s", self._label, restart, extra=mark)
        with_tasks = bool(restart.tasks)
        event = ConnectorEvent.RESTART_WITH_TASKS if with_tasks else ConnectorEvent.RESTART
        self._states.fire(event)
        if with_tasks:
            self._tell(self._show)
        if self.connector is None:
            self._failures.forgive()
            return
        restart.error = mask(self.connector.refresh())
        self._states.fire(ConnectorEvent.STARTED)

    def _start(self, desired: ConnectorTarget) -> None:
        self._config = desired.config
        self._starts.begin()
        with owned_by(self):
            connector = self._make(desired.config)
        self._is_active = True
        self._is_starting = True
        try:
            connector.connect()
            # That may have taken long: somebody else may lead by now.
            if self._leads():
                connector.start(self)
                self.connector = connector
                self._states.fire(ConnectorEvent.STARTED)
                self._starts.succeeded()
                mark = about_connector(EventKind.STARTED, self.name, self._label)
                log.info("connector %s started", self._label, extra=mark)
        finally:
            self._is_starting = False
            if self.connector is not connector:
                self._end(connector)
        self._failures.forgive()

    def _halt(self) -> None:
        connector, self.connector = self.connector, None
        if connector is not None:
            self._end(connector)

    def _end(self, connector: Connector) -> None:
        try:
            connector.stop()
            if not connector.join(self._stop_seconds):
                log.warning("connector %s did not end in time", self._label)
        finally:
            self._is_active = False

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
        self._show()

    def _show(self) -> None:
        """What has not started yet has no state of its own, or the one that another worker left."""
        state = self._states.state
        if state is State.UNASSIGNED:
            return
        connector = self.connector
        notice = "" if connector is None or state is not State.RUNNING else connector.notice
        self._statuses.show(StateAndTrace(state, self._failures.trace or notice))

    def _tell(self, tell: Callable[[], None]) -> bool:
        """Whether others know; if they do not, they are told at the next turn."""
        try:
            tell()
        except MirrorError as error:
            log.warning("connector %s: its state cannot be stored: %s", self._label, error)
        except Exception:  # a mistake in what is told must not end what runs
            log.exception("connector %s: its state cannot be told", self._label)
        else:
            return True
        return False

    def _publish_tasks(self, desired: ConnectorTarget) -> None:
        """No partition may be given to another task before its own has ended, wherever that runs.

        So if one moves, there are no tasks for a moment, until none runs any more.
        """
        tasks = self._tasks(desired)
        if tasks is None or not self._leads():
            return
        is_new = not desired.tasks or partitions_move(desired.tasks, tasks)
        if tasks and is_new and self._has_tasks():
            tasks = []
        self._statuses.put_tasks(tasks, desired.tasks)

    def _tasks(self, desired: ConnectorTarget) -> list[dict[str, str]] | None:
        """The settings of all tasks; None: those that are stored stay."""
        if desired.state is TargetState.STOPPED:
            return []
        connector = self.connector
        own = None if connector is None else connector.task_configs()
        if connector is None or own is None:
            return None
        return [complete_settings(desired.config, connector.task_class, each) for each in own]

    # -- the end -----------------------------------------------------------------------------------

    def _remove(self) -> bool:
        """Deleted. Whether to go on: it is wanted again, its tasks end, or others are not told."""
        self._halt()
        self._failures.forgive()
        self._config = None
        self._must_forget = True
        if self._has_tasks() or not self._tell(self._forget):
            return True
        mark = about_connector(EventKind.STOPPED, self.name, self._label)
        log.info("connector %s deleted", self._label, extra=mark)
        with self._lock:
            self._has_ended = self._desired is None
            return not self._has_ended

    def _forget(self) -> None:
        self._statuses.forget()
        self._must_forget = False
        self._states.fire(ConnectorEvent.DELETED)
        self._states = connector_states()

    def _leave(self, desired: ConnectorTarget | None) -> None:
        self._halt()
        if not self._leads() or desired is None:
            self._states.fire(ConnectorEvent.DEPOSED)
            return
        if self._states.fire(ConnectorEvent.RELEASED) is State.UNASSIGNED:
            self._tell(lambda: self._statuses.show(StateAndTrace(State.UNASSIGNED)))
