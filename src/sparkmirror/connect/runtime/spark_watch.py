"""Watches the worker's Spark for the herder: whether it is up, and how many task slots it has.

Runs on: worker, on the herder's thread; `slots`, `problem` and `offer` are for any thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence

from sparkmirror.connect.connector import Task
from sparkmirror.connect.runtime.connector_tasks import SOURCE_TASK
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.storage.config_records import ConfigSnapshot
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.task_configs import TASK_CLASS

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
# A restarted executor may be back by then, so that its tasks need not move to another worker.
LOST_SECONDS = 3.0
# Executors that cannot be reached count as lost for this long: by then Spark has noticed too
# (spark.storage.blockManagerHeartbeatTimeoutMs), or they can be reached again.
CUT_OFF_SECONDS = 30.0


class SparkWatch:
    """`problem`: why this worker must end: Spark is gone, and nothing here can restart it.

    `slots`: how many tasks this worker has room for. On a Spark cluster there are none until
    executors have started: another worker may hold them all.
    """

    def __init__(self, spark: Worker) -> None:
        self.problem = ""
        self.slots = spark.slots
        self._spark = spark
        # What the group knows: the slots, and whether Spark had still to start.
        self._offered = self.slots, False
        self._look_at = 0.0
        # Since when there are fewer slots than were reported.
        self._fewer_since: float | None = None
        # The share of the tasks whose executors can be reached, and until when that counts.
        self._reachable, self._counts_until = 1.0, 0.0

    def warm_up(self, snapshot: ConfigSnapshot) -> None:
        """Start Spark before the first task is assigned: a takeover must not wait for it."""
        if _needs_spark(snapshot):
            self._spark.begin()

    def offer(self, snapshot: ConfigSnapshot, owned: int) -> int:
        """How many tasks the group may assign to this worker, which owns some already.

        A task that moved here before Spark is up would copy nothing until then. So this worker
        keeps what it has, and gets more only if all others wait for Spark too.
        """
        self._offered = self.slots, self._is_cold(snapshot)
        slots, is_cold = self._offered
        return min(slots, owned) if is_cold else slots

    def offer_nothing(self) -> int:
        """No slots: before the config topic is read, Spark may have to start first."""
        self._offered = 0, False
        return 0

    def has_changed(self, snapshot: ConfigSnapshot) -> bool:
        """Whether the offer differs from what the group knows."""
        slots, was_cold = self._offered
        return slots != self.slots or (was_cold and not self._is_cold(snapshot))

    def _is_cold(self, snapshot: ConfigSnapshot) -> bool:
        return _needs_spark(snapshot) and not self._spark.is_up

    def look(self, tasks: Iterable[Task]) -> None:
        """About once a second: log which of these tasks lack a slot, and why."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_SECONDS
        found = (task.runner for task in tasks)
        runners = [runner for runner in found if runner is not None]
        try:
            self._spark.check_alive()
            self._count_reachable(now, [not runner.is_cut_off for runner in runners])
            self._count_slots(now)
            for runner in runners:
                runner.check_slot(len(runners))
        except MirrorError as error:
            self.problem = str(error)

    def _count_reachable(self, now: float, reachable: Sequence[bool]) -> None:
        if now >= self._counts_until:
            self._reachable = 1.0
        if not all(reachable):
            share = sum(reachable) / len(reachable)
            self._reachable, self._counts_until = min(share, self._reachable), now + CUT_OFF_SECONDS
            # The leases of those tasks have ended, so their slots are lost without a delay.
            self.slots = min(self.slots, self._reachable_slots)

    @property
    def _reachable_slots(self) -> int:
        """An estimate: Spark does not report which executors have the slots."""
        return int(self._spark.slots * self._reachable)

    def _count_slots(self, now: float) -> None:
        slots = self._reachable_slots
        if slots >= self.slots:
            self.slots, self._fewer_since = slots, None
        elif self._fewer_since is None:
            self._fewer_since = now
        elif now - self._fewer_since >= LOST_SECONDS:
            self.slots, self._fewer_since = slots, None


def _needs_spark(snapshot: ConfigSnapshot) -> bool:
    first_tasks = (tasks[0] for tasks in snapshot.tasks.values() if tasks)
    return any(task.get(TASK_CLASS) == SOURCE_TASK for task in first_tasks)
