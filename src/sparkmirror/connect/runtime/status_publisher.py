"""Tells the cluster of workers how what runs here is: connectors, their tasks, their topics.

Runs on: worker. Writes only what has changed, and only of what is this worker's: connectors are the
leader's, tasks belong to the worker that they are assigned to.
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

# A status that is not in the topic after so long was overwritten by somebody: it is written again.
REPEAT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """Who writes: `worker_id` is host:port of this worker's REST API."""

    worker_id: str
    version: str


class _Said:
    """What was written last of a connector (None) or a task: reading it takes a moment."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._said: dict[int | None, tuple[StateAndTrace, float]] = {}

    def note(self, at: int | None, view: StateAndTrace, *, is_stored: bool) -> bool:
        """Note what is about to be written; False when the topic says so already."""
        last, when = self._said.get(at, (None, 0.0))
        now = self._clock()
        if view == last and (is_stored or now - when <= REPEAT_SECONDS):
            return False
        self._said[at] = view, now
        return True

    def clear(self) -> None:
        self._said.clear()


class ConnectorStatuses:
    """Of one connector, by the leader, on the connector's thread."""

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
        self._said = _Said(clock)
        self._tasks: list[dict[str, str]] | None = None

    def take_over(self) -> None:
        """Nobody runs what another worker has left behind, until it runs here."""
        stored = self._statuses.connector(self._name)
        if stored is not None and _is_left_behind(stored, self._identity):
            self.show(StateAndTrace(State.UNASSIGNED))

    def show(self, view: StateAndTrace) -> None:
        """The state as it is now."""
        is_stored = _is_stored(view, self._statuses.connector(self._name), self._identity)
        if self._said.note(None, view, is_stored=is_stored):
            who = self._identity
            self._statuses.put_connector(
                self._name,
                str(view.state),
                who.worker_id,
                self._group.generation,
                mask(view.trace),
                who.version,
            )

    def put_tasks(self, tasks: list[dict[str, str]], stored: Sequence[Mapping[str, str]]) -> None:
        """Write the tasks' settings, if they are others than those `stored`."""
        if tasks != list(stored) and tasks != self._tasks:
            self._configs.put_tasks(self._name, tasks)
            self._tasks = tasks

    def stored_changed(self) -> None:
        """Somebody else may have written tasks: what was written from here counts no more."""
        self._tasks = None

    def forget(self) -> None:
        """The connector is deleted: nothing is known of it any more."""
        self._said.clear()
        self._tasks = None
        self._statuses.forget(self._name)


class TaskStatuses:
    """Of those tasks of one connector that run here, on the herder's thread."""

    def __init__(
        self,
        name: str,
        stores: Stores,
        identity: WorkerIdentity,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._statuses = stores.statuses
        self._group = stores.group
        self._identity = identity
        self._said = _Said(clock)

    def show(self, at: int, view: StateAndTrace) -> None:
        """The state of task `at` as it is now."""
        is_stored = _is_stored(view, self._statuses.tasks(self._name).get(at), self._identity)
        if self._said.note(at, view, is_stored=is_stored):
            who = self._identity
            self._statuses.put_task(
                self._name,
                at,
                str(view.state),
                who.worker_id,
                self._group.generation,
                mask(view.trace),
                who.version,
            )

    def release(self, at: int) -> None:
        """Task `at` has ended here for another worker, which may have shown it already."""
        stored = self._statuses.tasks(self._name).get(at)
        if stored is not None and stored.worker_id == self._identity.worker_id:
            self.show(at, StateAndTrace(State.UNASSIGNED))

    def add_topics(self, task: int, topics: Iterable[str]) -> None:
        """Remember topics that a task has written."""
        new = set(topics)
        if new:
            new -= self._statuses.topics(self._name)
        now_ms = time.time_ns() // 1_000_000
        for topic in sorted(new):
            self._statuses.put_topic(topic, self._name, task, now_ms)


class GoneTasks:
    """Deletes the statuses of tasks that are no more; on the leader, on the herder's thread."""

    def __init__(
        self, statuses: StatusBackingStore, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._statuses = statuses
        self._clock = clock
        self._deleted: dict[ConnectorTaskId, float] = {}

    def delete(self, snapshot: ConfigSnapshot, is_held: Callable[[ConnectorTaskId], bool]) -> None:
        """Those beyond the configured tasks, once no worker holds them; again if need be."""
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


def _is_left_behind(stored: StoredStatus, who: WorkerIdentity) -> bool:
    running = (State.RUNNING, State.FAILED, State.RESTARTING)
    return stored.worker_id != who.worker_id and stored.state in running


def _is_stored(view: StateAndTrace, stored: StoredStatus | None, who: WorkerIdentity) -> bool:
    return stored is not None and stored.state == view.state and stored.worker_id == who.worker_id
