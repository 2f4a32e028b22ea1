"""Keeps one connector in its target state: running, paused, stopped or deleted.

Runs on: worker, the leader, one thread per connector, so that one that waits holds up neither the
others nor the REST API. A connector that cannot start is FAILED, and is retried with back-off. Its
tasks are not here: their settings go to the config topic, from which workers start them.
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
from sparkmirror.logs.places import enter_place, place_of
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
# Logged when a user has requested this state.
ASKED = {
    TargetState.STARTED: "resumed",
    TargetState.PAUSED: "paused",
    TargetState.STOPPED: "stopped, its tasks are taken away",
}


@dataclass(frozen=True, slots=True)
class ConnectorTarget:
    """A connector in the config topic; `tasks` are the settings of its tasks."""

    config: ConnectorProps
    state: TargetState
    tasks: Sequence[Mapping[str, str]] = ()


@dataclass(slots=True, eq=False)
class PendingRestart:
    """A requested restart; `done` is set after the attempt, `error` is why it failed.

    `is_missed`: there was no attempt because the connector had ended; a new one of the same name
    may exist.
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

    `make` parses the settings; `leads` returns whether this worker certainly leads, `has_tasks`
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
        self._label = label or name
        self.connector: Connector | None = None
        self._make, self._statuses = make, statuses
        self._leads, self._has_tasks = leads, has_tasks
        self._stop_seconds, self._lock = stop_seconds, threading.Lock()
        self._desired: ConnectorTarget | None = None
        self._restarts: list[PendingRestart] = []
        self._is_leaving = self._has_ended = False
        self._is_active = self._is_starting = False
        self._wake = threading.Event()
        self._seen: ConnectorTarget | None = None
        self._config: ConnectorProps | None = None
        self._states = connector_states()
        # Whether statuses remain of an earlier connector of this name, which was deleted.
        self._must_forget = False
        self._failures = StartFailures(starts)
        self._thread = threading.Thread(target=self._run, name=f"connector {name}", daemon=True)

    # -- for any thread ----------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread; `want` comes first."""
        self._thread.start()

    def want(self, desired: ConnectorTarget | None) -> bool:
        """Set the target, None: deleted. Return False if the thread has ended already."""
        with self._lock:
            if self._has_ended:
                return False
            if desired != self._desired:
                self._desired = desired
                self._wake.set()
            return True

    def restart(self, restart: PendingRestart) -> bool:
        """Restart soon. Return False if the thread has ended already."""
        with self._lock:
            if self._has_ended:
                return False
            self._restarts.append(restart)
            self._wake.set()
            return True

    def leave(self) -> None:
        """Stop: this worker ends or no longer leads; in the latter case write no status."""
        with self._lock:
            self._is_leaving = True
            self._wake.set()

    def join(self, seconds: float) -> bool:
        """Wait for the thread; return whether it ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def has_ended(self) -> bool:
        """Whether the thread has ended."""
        return self._has_ended and not self._thread.is_alive()

    @property
    def is_starting(self) -> bool:
        """Whether the connector is still starting and so has nothing to store."""
        return self._is_starting

    @property
    def is_idle(self) -> bool:
        """Whether the connector neither runs nor starts nor ends."""
        return not self._is_active

    # -- the connector's context -------------------------------------------------------------------

    def request_task_reconfiguration(self) -> None:
        """Write the tasks' configurations soon, if they have changed."""
        self._wake.set()

    def stored_tasks(self) -> Sequence[Mapping[str, str]]:
        """The stored tasks, if `tasks.max` has not changed since; else none."""
        desired = self._seen
        if desired is None:
            return ()
        most = desired.config.get(TASKS_MAX)
        return desired.tasks if all(task.get(TASKS_MAX) == most for task in desired.tasks) else ()

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        self._try_to_store(self._statuses.take_over)
        try:
            while self._step():
                self._wake.wait(TICK_SECONDS)
                self._wake.clear()
        finally:
            self._halt()
            with self._lock:
                self._has_ended = True
                restarts, self._restarts = self._restarts, []
            self._mark_missed(restarts)
            forget_owner(self)

    def _step(self) -> bool:
        """One turn; return False if it was the last."""
        with self._lock:
            desired, is_leaving = self._desired, self._is_leaving
            restarts, self._restarts = self._restarts, []
        if is_leaving:
            self._finish(restarts, NOT_NOW)
            self._leave(desired)
            return False
        if not self._leads():  # in doubt: nothing stops, and nothing starts
            self._finish(restarts, NOT_NOW)
            return True
        if desired is None:
            self._mark_missed(restarts)
            return self._remove()
        if self._must_forget and not self._try_to_store(self._forget):
            return True
        enter_place(place_of(self.name, desired.config))
        if desired is not self._seen:
            self._log_change(desired)
            self._seen = desired
            self._statuses.stored_changed()
        try:
            self._apply_target(desired, restarts)
        # Whatever ends a connector becomes its state; the others continue.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            self._failures.failed(error)
            self._states.fire(ConnectorEvent.START_FAILED)
            mark = about_connector(EventKind.FAILED, self.name, self._label)
            log.error("connector %s failed: %s", self._label, error, extra=mark)  # noqa: TRY400
        self._finish(restarts, self._failures.trace)
        self._try_to_store(lambda: self._publish(desired))
        return True

    def _log_change(self, desired: ConnectorTarget) -> None:
        """Log what a user has changed; of settings only the names, because values may be secret."""
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

    def _apply_target(self, desired: ConnectorTarget, restarts: Sequence[PendingRestart]) -> None:
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
        """Refresh a running connector; if that fails, it keeps running and retries by itself."""
        mark = about_connector(EventKind.ACTION, self.name, self._label)
        log.info("connector %s: restart of %s", self._label, restart, extra=mark)
        with_tasks = bool(restart.tasks)
        event = ConnectorEvent.RESTART_WITH_TASKS if with_tasks else ConnectorEvent.RESTART
        self._states.fire(event)
        if with_tasks:
            self._try_to_store(self._show)
        if self.connector is None:
            self._failures.forgive()
            return
        restart.error = mask(self.connector.refresh())
        self._states.fire(ConnectorEvent.STARTED)

    def _start(self, desired: ConnectorTarget) -> None:
        self._config = desired.config
        with owned_by(self):
            connector = self._make(desired.config)
        self._is_active = self._is_starting = True
        try:
            connector.connect()
            # Connecting may take long: another worker may lead by now.
            if self._leads():
                connector.start(self)
                self.connector = connector
                self._states.fire(ConnectorEvent.STARTED)
                self._failures.counts.succeeded()
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
    def _finish(restarts: Sequence[PendingRestart], failure: str) -> None:
        for restart in restarts:
            restart.error = restart.error or failure
            restart.done.set()

    @staticmethod
    def _mark_missed(restarts: Sequence[PendingRestart]) -> None:
        for restart in restarts:
            restart.is_missed = True
            restart.done.set()

    # -- what others see ---------------------------------------------------------------------------

    def _publish(self, desired: ConnectorTarget) -> None:
        self._publish_tasks(desired)
        self._show()

    def _show(self) -> None:
        """Publish the state, unless the connector has not started since this worker took over."""
        state = self._states.state
        if state is State.UNASSIGNED:
            return
        connector = self.connector
        notice = "" if connector is None or state is not State.RUNNING else connector.notice
        self._statuses.show(StateAndTrace(state, self._failures.trace or notice))

    def _try_to_store(self, store: Callable[[], None]) -> bool:
        """Call `store`; return whether it succeeded. The next turn retries."""
        try:
            store()
        except MirrorError as error:
            log.warning("connector %s: its state cannot be stored: %s", self._label, error)
        except Exception:  # a bug in publishing must not end a connector that runs
            log.exception("connector %s: its state cannot be told", self._label)
        else:
            return True
        return False

    def _publish_tasks(self, desired: ConnectorTarget) -> None:
        """Write the tasks' settings; while partitions move, first none.

        A partition may move to another task only when its old task has ended, on any worker. So
        there are no tasks until none runs any more.
        """
        tasks = self._tasks(desired)
        if tasks is None or not self._leads():
            return
        is_new = not desired.tasks or partitions_move(desired.tasks, tasks)
        if tasks and is_new and self._has_tasks():
            tasks = []
        self._statuses.put_tasks(tasks, desired.tasks)

    def _tasks(self, desired: ConnectorTarget) -> list[dict[str, str]] | None:
        """The settings of all tasks; None: keep the stored ones."""
        if desired.state is TargetState.STOPPED:
            return []
        connector = self.connector
        own = None if connector is None else connector.task_configs()
        if connector is None or own is None:
            return None
        return [complete_settings(desired.config, connector.task_class, each) for each in own]

    # -- the end -----------------------------------------------------------------------------------

    def _remove(self) -> bool:
        """Delete the connector. Return True if that must go on, or it has been created again.

        It must go on while its tasks end, and until its statuses are deleted.
        """
        self._halt()
        self._failures.forgive()
        self._config = None
        self._must_forget = True
        if self._has_tasks() or not self._try_to_store(self._forget):
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
            self._try_to_store(lambda: self._statuses.show(StateAndTrace(State.UNASSIGNED)))
