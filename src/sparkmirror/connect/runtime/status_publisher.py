"""Tells the cluster of workers how one connector is: its status, its tasks, its topics.

Runs on: worker, the leader, on the connector's own thread. Writes only what has changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.config.masking import mask
from sparkmirror.connect.entities import State
from sparkmirror.connect.runtime.running import StateAndTrace
from sparkmirror.connect.storage.backing_stores import StoredStatus, Stores

# A status that is not in the topic after so long was overwritten by somebody: it is written again.
REPEAT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """Who writes: `worker_id` is host:port of this worker's REST API."""

    worker_id: str
    version: str


class StatusPublisher:
    """Of one connector. What it has written is remembered: reading it back takes a moment."""

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
        self._clock = clock
        # Of the connector (None) and of each task: what was written last, and when.
        self._said: dict[int | None, tuple[StateAndTrace, float]] = {}
        self._tasks: list[dict[str, str]] | None = None

    def take_over(self) -> None:
        """Nobody runs what another worker has left behind, until it runs here."""
        nobody = StateAndTrace(State.UNASSIGNED)
        stored = self._statuses.connector(self._name)
        if self._is_left_behind(stored):
            self._say(None, nobody, stored)
        for at, task in self._statuses.tasks(self._name).items():
            if self._is_left_behind(task):
                self._say(at, nobody, task)

    def show(self, connector: StateAndTrace | None, tasks: Sequence[StateAndTrace]) -> None:
        """The states as they are now; None: nothing to say of the connector itself."""
        if connector is not None:
            self._say(None, connector, self._statuses.connector(self._name))
        stored = self._statuses.tasks(self._name)
        for at, view in enumerate(tasks):
            self._say(at, view, stored.get(at))
        for at in sorted({*stored, *self._numbers()}):
            if at >= len(tasks):
                self._forget_task(at, is_stored=at in stored)

    def put_tasks(self, tasks: list[dict[str, str]], stored: Sequence[Mapping[str, str]]) -> None:
        """Write the tasks' settings, if they are others than those `stored`."""
        if tasks != list(stored) and tasks != self._tasks:
            self._configs.put_tasks(self._name, tasks)
            self._tasks = tasks

    def stored_changed(self) -> None:
        """Somebody else may have written tasks: what was written from here counts no more."""
        self._tasks = None

    def add_topics(self, topics: Mapping[str, int]) -> None:
        """Remember topics that were written, each with the task that did."""
        if not topics:
            return
        known = self._statuses.topics(self._name)
        now_ms = time.time_ns() // 1_000_000
        for topic, task in topics.items():
            if topic not in known:
                self._statuses.put_topic(topic, self._name, task, now_ms)

    def forget(self) -> None:
        """The connector is deleted: nothing is known of it any more."""
        for at in self._numbers():
            self._statuses.forget_task(self._name, at)
        self._said.clear()
        self._tasks = None
        self._statuses.forget(self._name)

    def _say(self, at: int | None, view: StateAndTrace, stored: StoredStatus | None) -> None:
        last, when = self._said.get(at, (None, 0.0))
        is_lost = not self._is_stored(view, stored) and self._clock() - when > REPEAT_SECONDS
        if view != last or is_lost:
            self._put(at, view)
            self._said[at] = view, self._clock()

    def _is_left_behind(self, stored: StoredStatus | None) -> bool:
        return (
            stored is not None
            and stored.worker_id != self._identity.worker_id
            and stored.state in (State.RUNNING, State.FAILED, State.RESTARTING)
        )

    def _is_stored(self, view: StateAndTrace, stored: StoredStatus | None) -> bool:
        return (
            stored is not None
            and stored.state == view.state
            and stored.worker_id == self._identity.worker_id
        )

    def _put(self, at: int | None, view: StateAndTrace) -> None:
        who, generation = self._identity, self._group.generation
        trace = mask(view.trace)
        details = (str(view.state), who.worker_id, generation, trace, who.version)
        if at is None:
            self._statuses.put_connector(self._name, *details)
        else:
            self._statuses.put_task(self._name, at, *details)

    def _forget_task(self, at: int, *, is_stored: bool) -> None:
        """Once told, and again when it is still there after a while."""
        gone = StateAndTrace(State.STOPPED)
        last, when = self._said.get(at, (None, 0.0))
        if last == gone and not (is_stored and self._clock() - when > REPEAT_SECONDS):
            return
        self._statuses.forget_task(self._name, at)
        self._said[at] = gone, self._clock()

    def _numbers(self) -> Iterable[int]:
        return (at for at in self._said if at is not None)
