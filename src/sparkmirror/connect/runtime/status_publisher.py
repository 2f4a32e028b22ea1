"""Publishes the states of this worker's connectors and tasks, and the topics that they use.

Runs on: worker. Writes only changes, and only for what belongs to this worker: connectors belong to
the leader, tasks to the worker that they are assigned to.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.config.masking import mask
from sparkmirror.connect.connector import StateAndTrace
from sparkmirror.connect.entities import State
from sparkmirror.connect.storage.backing_stores import StatusBackingStore, StoredStatus, Stores
from sparkmirror.connect.storage.config_records import ConfigSnapshot
from sparkmirror.types import ConnectorTaskId

# A status that is not in the topic after this time was overwritten, so it is written again.
REPEAT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """The writer of a status: `worker_id` is host:port of this worker's REST API."""

    worker_id: str
    version: str


class _LastWritten:
    """The last status written for a connector (None) or task, until it has been read back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._written: dict[int | None, tuple[StateAndTrace, float]] = {}

    def note(self, at: int | None, view: StateAndTrace, *, is_stored: bool) -> bool:
        """Note what is about to be written; False if the topic has it already."""
        last, when = self._written.get(at, (None, 0.0))
        now = self._clock()
        if view == last and (is_stored or now - when <= REPEAT_SECONDS):
            return False
        self._written[at] = view, now
        return True

    def clear(self) -> None:
        self._written.clear()


class _Statuses:
    """Writes the statuses of one connector, or of its tasks."""

    def __init__(
        self,
        name: str,
        stores: Stores,
        identity: WorkerIdentity,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._configs = stores.configs
        self._statuses = stores.statuses
        self._group = stores.group
        self._identity = identity
        self._last_written = _LastWritten(clock)


class ConnectorStatuses(_Statuses):
    """The status of one connector; on the leader, on the connector's thread."""

    # What was written last, until the connector's tasks may have been changed by others.
    _tasks: list[dict[str, str]] | None = None

    def take_over(self) -> None:
        """Set a state that another worker left behind to UNASSIGNED until the connector runs."""
        stored = self._statuses.connector(self._name)
        if stored is not None and _is_left_behind(stored, self._identity):
            self.show(StateAndTrace(State.UNASSIGNED))

    def show(self, view: StateAndTrace) -> None:
        """Publish the connector's state."""
        is_stored = _is_stored(view, self._statuses.connector(self._name), self._identity)
        if self._last_written.note(None, view, is_stored=is_stored):
            status = _to_store(view, self._identity, self._group.generation)
            self._statuses.put_connector(self._name, status)

    def put_tasks(self, tasks: list[dict[str, str]], stored: Sequence[Mapping[str, str]]) -> None:
        """Write the tasks' settings if they differ from those `stored`."""
        if tasks != list(stored) and tasks != self._tasks:
            self._configs.put_tasks(self._name, tasks)
            self._tasks = tasks

    def stored_changed(self) -> None:
        """Forget the last write of tasks: another worker may have written since."""
        self._tasks = None

    def forget(self) -> None:
        """Delete everything about the connector, which was deleted."""
        self._last_written.clear()
        self._tasks = None
        self._statuses.forget(self._name)


class TaskStatuses(_Statuses):
    """The statuses of one connector's tasks that run here; on the herder's thread."""

    def show(self, at: int, view: StateAndTrace) -> None:
        """Publish the state of task `at`."""
        is_stored = _is_stored(view, self._statuses.tasks(self._name).get(at), self._identity)
        if self._last_written.note(at, view, is_stored=is_stored):
            status = _to_store(view, self._identity, self._group.generation)
            self._statuses.put_task(self._name, at, status)

    def release(self, at: int) -> None:
        """Task `at` ended here and moves to another worker, which may have published it already."""
        stored = self._statuses.tasks(self._name).get(at)
        if stored is not None and stored.worker_id == self._identity.worker_id:
            self.show(at, StateAndTrace(State.UNASSIGNED))

    def add_topics(self, task: int, topics: Iterable[str]) -> None:
        """Publish topics that a task has written (active topics, KIP-558)."""
        new = set(topics)
        if new:
            new -= self._statuses.topics(self._name)
        now_ms = time.time_ns() // 1_000_000
        for topic in sorted(new):
            self._statuses.put_topic(topic, self._name, task, now_ms)


class GoneTasks:
    """Deletes the statuses of tasks that no longer exist; on the leader, on the herder's thread."""

    def __init__(
        self, statuses: StatusBackingStore, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._statuses = statuses
        self._clock = clock
        self._deleted: dict[ConnectorTaskId, float] = {}

    def delete(self, snapshot: ConfigSnapshot, is_held: Callable[[ConnectorTaskId], bool]) -> None:
        """Delete statuses beyond the configured tasks, once no worker holds the task."""
        now = self._clock()
        gone = {
            ConnectorTaskId(name, at)
            for name in snapshot.connectors
            for at in self._statuses.tasks(name)
            if at >= len(snapshot.tasks.get(name, ()))
        }
        self._deleted = {task: when for task, when in self._deleted.items() if task in gone}
        for task in sorted(gone):
            is_due = now - self._deleted.get(task, -math.inf) > REPEAT_SECONDS
            if is_due and not is_held(task):
                self._deleted[task] = now
                self._statuses.forget_task(*task)


def _to_store(view: StateAndTrace, who: WorkerIdentity, generation: int) -> StoredStatus:
    trace = mask(view.trace) or None
    return StoredStatus(str(view.state), who.worker_id, generation, trace, who.version or None)


def _is_left_behind(stored: StoredStatus, who: WorkerIdentity) -> bool:
    running = (State.RUNNING, State.FAILED, State.RESTARTING)
    return stored.worker_id != who.worker_id and stored.state in running


def _is_stored(view: StateAndTrace, stored: StoredStatus | None, who: WorkerIdentity) -> bool:
    return stored is not None and stored.state == view.state and stored.worker_id == who.worker_id
