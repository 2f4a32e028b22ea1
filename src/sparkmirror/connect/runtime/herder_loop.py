"""Runs this worker's share of all tasks and, while it leads, all connectors.

Runs on: worker. One thread follows the config topic and the group, sends each connector's thread
its target, and starts, changes and stops the tasks that are assigned to this worker; it waits for
none of them. Mirrors: org.apache.kafka.connect.runtime.distributed.DistributedHerder.tick and its
work sharing (KIP-415).

    leader                                        every worker
    connectors --task configs--> config topic --> AssignedTasks: those of the last assignment
    TaskPlan   <--what runs----- group <--------- describe()
        `------- assignments --> group ---------> reconcile()

A worker joins the group again when its revoked tasks have ended; the leader also when other tasks
are configured.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from sparkmirror.connect.connector import Connector, Task, TaskConfigs, WorkerFactory
from sparkmirror.connect.entities import ConnectorProps
from sparkmirror.connect.group.connect_protocol import Assignment, MemberState
from sparkmirror.connect.group.group_place import GroupView
from sparkmirror.connect.group.tenure import Continuity
from sparkmirror.connect.runtime.assigned_tasks import AssignedTasks, stored_tasks, target_state
from sparkmirror.connect.runtime.config_claim import ConfigClaim
from sparkmirror.connect.runtime.connector_tasks import task_units
from sparkmirror.connect.runtime.spark_watch import SparkWatch
from sparkmirror.connect.runtime.status_publisher import (
    ConnectorStatuses,
    GoneTasks,
    TaskStatuses,
    WorkerIdentity,
)
from sparkmirror.connect.runtime.task_plan import TaskPlan
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.runtime.worker_connector import (
    ConnectorTarget,
    PendingRestart,
    WorkerConnector,
)
from sparkmirror.connect.start_counts import StartCounts
from sparkmirror.connect.storage.backing_stores import Stores
from sparkmirror.connect.storage.config_records import ConfigSnapshot
from sparkmirror.errors import MirrorError
from sparkmirror.events import EventKind, about_connector
from sparkmirror.types import ConnectorTaskId

log = logging.getLogger(__name__)

TICK_SECONDS = 0.2
# How long to wait for the other workers to take over; then this worker stops its tasks anyway.
DRAIN_SECONDS = 3.0
# How long to wait for what is still starting when the worker stops: it has nothing to store.
STARTING_SECONDS = 1.0
JOIN_SECONDS = 0.1
# How often a worker rejoins because its tasks cannot find topics, and how many topics it reports.
MISSING_SECONDS = 5.0
MOST_MISSING = 10
# When to repeat a rejoin that has led to no new generation.
REJOIN_SECONDS = 1.0


class HerderLoop:
    """The connectors and tasks of this worker, by the connector's name."""

    def __init__(
        self,
        stores: Stores,
        identity: WorkerIdentity,
        factory: WorkerFactory,
        spark: Worker,
        stop_seconds: float = 5.0,
        *,
        flow: str = "",
        file: Mapping[str, ConnectorProps] | None = None,
        release_spark: Callable[[], object] | None = None,
    ) -> None:
        """`flow`: the flow's name in the log, if there is only one. `file`: see `ConfigClaim`.

        `release_spark` is called while this worker is not a member of the group.
        """
        self.last_turn = time.monotonic()
        self._stores = stores
        self._configs, self._group = stores.configs, stores.group
        self._identity, self._factory = identity, factory
        self.connector_starts = StartCounts()
        self._spark, self._watch = spark, SparkWatch(spark)
        self._release_spark = release_spark or spark.close_if_elsewhere
        self._stop_seconds, self._flow = stop_seconds, flow
        self._tenure = Continuity(lambda: stores.group.tenure)
        self._membership = Continuity(lambda: stores.group.membership)
        self._wake = threading.Event()
        self._claim = ConfigClaim(stores.configs, None if file is None else dict(file), self.wake)
        self._plan = TaskPlan(stores.configs.snapshot, self._refresh_here, self._has_claimed)
        self._tasks = AssignedTasks(
            self._make_task, lambda name: TaskStatuses(name, stores, identity)
        )
        self._gone_tasks = GoneTasks(stores.statuses)
        self._lock = threading.Lock()
        self._connectors: dict[str, WorkerConnector] = {}
        self._leaving: list[WorkerConnector] = []
        self._restarts: list[tuple[str, PendingRestart]] = []
        # By connector, topics that tasks here cannot find, until a join reports them to the leader.
        self._missing: dict[str, tuple[str, ...]] = {}
        self._missing_at = 0.0
        self._view = GroupView()  # the one whose assignment is applied
        self._rejoined = ((0, -1), 0.0)  # the generation of the last rejoin request, and its time
        # The error of the last turn; empty if it succeeded.
        self.last_error = ""
        self._is_ending = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="herder", daemon=True)

    def start(self) -> None:
        """Start the thread; the config topic has been read."""
        self._configs.on_change(self._wake.set)
        self._group.on_change(self._wake.set)
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """Stop the connectors, hand the tasks over, leave the group.

        Returns whether everything with something to store has ended and stored it. Spark is left to
        its owner, but nothing here waits for it to start any more.
        """
        deadline = time.monotonic() + seconds
        self._tasks.count_ends()
        self._is_ending.set()
        self._wake.set()
        self._spark.give_up_start()
        if self._thread.is_alive() and self._group.lease_seconds() > 0:
            self._group.drain(min(DRAIN_SECONDS, seconds))
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(seconds)
        self._step_down("the worker ends")
        self._end_tasks(deadline)
        starting_until = time.monotonic() + STARTING_SECONDS
        for connector in self._leaving:
            until = starting_until if connector.is_starting else deadline
            connector.join(max(0.1, until - time.monotonic()))
        have_ended = all(each.has_ended or each.is_starting for each in self._leaving)
        return have_ended and not self._tasks.has_copied and self._tasks.ended_clean

    def _end_tasks(self, deadline: float) -> None:
        """Stop all tasks, with less time for those still starting: they have nothing to store."""
        snapshot = self._configs.snapshot()
        self._tasks.apply((), snapshot)
        starting_until = time.monotonic() + STARTING_SECONDS
        while self._tasks.held():
            if time.monotonic() >= (deadline if self._tasks.has_copied else starting_until):
                break
            self._tasks.join(JOIN_SECONDS)
        self._tasks.publish(snapshot)

    def wake(self) -> None:
        """Run the next turn now."""
        self._wake.set()

    # -- the group, on its member's thread ---------------------------------------------------------

    def describe(self) -> MemberState:
        """What the leader must know about this worker."""
        with self._lock:
            missing, self._missing = self._missing, {}
            if missing:
                self._missing_at = time.monotonic() + MISSING_SECONDS
        if self._thread.ident is None:  # not started
            return MemberState("", slots=self._watch.offer_nothing())
        snapshot, held = self._configs.snapshot(), self._tasks.held()
        slots = self._watch.offer(snapshot, len(held | self._group.view.tasks))
        return MemberState("", snapshot.end_offset, slots, held, missing=missing)

    def plan(self, members: Mapping[str, MemberState]) -> Mapping[str, Assignment]:
        """As the leader: what each member must run."""
        found = self._plan.make(members)
        self._wake.set()
        return found

    # -- for any thread ----------------------------------------------------------------------------

    @property
    def problem(self) -> str:
        """Why this worker must end; "" if it need not."""
        return self._watch.problem

    def leads(self) -> bool:
        """Whether this worker leads, and no other can."""
        return self._group.is_leader

    def _has_claimed(self) -> bool:
        return self._claim.is_done and self.leads()  # a claim is of the tenure it was made in

    def connector(self, name: str) -> WorkerConnector | None:
        """The connector `name`, if this worker has it."""
        with self._lock:
            return self._connectors.get(name)

    def connectors(self) -> dict[str, Connector]:
        """The connectors that run here, by their names."""
        with self._lock:
            found = {name: each.connector for name, each in self._connectors.items()}
        return {name: connector for name, connector in found.items() if connector is not None}

    def tasks(self) -> dict[str, list[Task]]:
        """The tasks that run here, by the names of their connectors."""
        return self._tasks.running()

    def is_idle(self, name: str) -> bool:
        """On the leader: whether no part of the connector runs, starts or ends on any worker."""
        connector = self.connector(name)
        return (connector is None or connector.is_idle) and not self._has_tasks(name)

    def worker_of(self, name: str, number: int) -> str:
        """On the leader: the URL of the worker that the task was assigned to, "" if none."""
        return self._plan.url_of(self._unit_of(name, number))

    def runs(self, name: str, number: int) -> bool:
        """Whether the task is assigned to this worker."""
        return self._unit_of(name, number) in self._group.view.tasks

    def _unit_of(self, name: str, number: int) -> ConnectorTaskId:
        tasks = dict(enumerate(stored_tasks(self._configs.snapshot(), name)))
        found = (key for key, unit in task_units(tasks).items() if number in unit)
        return ConnectorTaskId(name, next(found, number))

    def restart(self, name: str, restart: PendingRestart) -> bool:
        """Restart what `restart` names; False if the connector is not here, or not yet."""
        if restart.tasks:
            tasks = PendingRestart(connector=False, tasks=restart.tasks)
            with self._lock:
                self._restarts.append((name, tasks if restart.connector else restart))
            self._wake.set()
        if not restart.connector:
            return True
        return (connector := self.connector(name)) is not None and connector.restart(restart)

    def refresh_soon(self, name: str, topics: list[str]) -> None:
        """A task here cannot find topics: make the leader look for them."""
        if not self._refresh_here(name, topics):
            with self._lock:
                self._missing[name] = tuple(topics[:MOST_MISSING])

    def _refresh_here(self, name: str, topics: list[str]) -> bool:
        connector = self.connectors().get(name)
        if connector is not None:
            connector.refresh_soon(topics)
        return connector is not None

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                self.reconcile()
                self.last_error = ""
            except MirrorError as error:
                self._log_error(str(error))
            except Exception:  # the next turn may succeed; without a turn nothing would run
                log.exception("the herder failed; it retries")
            self.last_turn = time.monotonic()
            self._wake.wait(TICK_SECONDS)

    def _log_error(self, error: str) -> None:
        level = logging.DEBUG if error == self.last_error else logging.WARNING
        self._log(level, "the herder cannot start or change connectors and tasks: %s", error)
        self.last_error = error

    def _log(self, level: int, text: str, *values: object) -> None:
        prefix = f"[{self._flow}] " if self._flow else ""
        log.log(level, "%s%s", prefix, text % values if values else text)

    def _label(self, name: str) -> str:
        return f"{self._flow}|{name}" if self._flow else name

    def reconcile(self) -> None:
        """One turn: apply the group's view and the config topic."""
        # Read before the membership is compared: the assignment must not be of a later one.
        view = self._group.view
        self._leaving = [each for each in self._leaving if not each.has_ended]
        if self._membership.has_lapsed():
            self._tasks.abandon()
        if self._tenure.has_lapsed() or self._is_ending.is_set():
            self._step_down("the worker ends" if self._is_ending.is_set() else "another may lead")
        if self._group.membership is None:
            self._release_spark()
        elif self._group.membership == view.membership and self._group.lease_seconds() > 0:
            self._reconcile_tasks(view, self._configs.snapshot())
        # Last, so that an error here keeps no task from running.
        if self.leads() and not self._is_ending.is_set() and not self._leaving:
            has_claimed = self._claim.is_done
            if self._claim.advance(self._stopping):
                if not has_claimed:
                    self._log(logging.INFO, "this worker leads, and runs the connectors")
                self._reconcile_connectors(self._configs.snapshot())

    # -- connectors, on the leader -----------------------------------------------------------------

    def _reconcile_connectors(self, snapshot: ConfigSnapshot) -> None:
        for name in self._connectors.keys() - snapshot.connectors.keys():
            if not self._connectors[name].want(None):
                with self._lock:
                    del self._connectors[name]
        for name, config in snapshot.connectors.items():
            state, tasks = target_state(snapshot, name), stored_tasks(snapshot, name)
            self._want(name, ConnectorTarget(config, state, tasks))
        self._gone_tasks.delete(snapshot, self._plan.holds)

    def _want(self, name: str, desired: ConnectorTarget) -> None:
        connector = self._connectors.get(name)
        if connector is not None and connector.want(desired):
            return
        connector = WorkerConnector(
            name,
            self._factory.make_connector,
            ConnectorStatuses(name, self._stores, self._identity),
            self.leads,
            lambda: self._has_tasks(name),
            self._stop_seconds,
            self._label(name),
            self.connector_starts,
        )
        connector.want(desired)
        with self._lock:
            self._connectors[name] = connector
        connector.start()

    def _has_tasks(self, name: str) -> bool:
        """Whether a task of the connector runs, starts or ends on any worker."""
        here = any(task.connector == name for task in self._tasks.held())
        return here or self._plan.holds_any(name)

    def _step_down(self, why: str) -> None:
        self._claim.drop()
        with self._lock:
            connectors, self._connectors = list(self._connectors.values()), {}
        if connectors:
            self._log(logging.INFO, "%s: %d connectors stop here", why, len(connectors))
        for connector in connectors:
            connector.leave()
        self._leaving += connectors

    # -- tasks, on every worker --------------------------------------------------------------------

    def _reconcile_tasks(self, view: GroupView, snapshot: ConfigSnapshot) -> None:
        assignment = view.assignment
        if assignment is None:
            return
        self._view = view
        if not self._is_ending.is_set():
            self._watch.warm_up(snapshot)
        assigned = assignment.tasks
        if snapshot.end_offset < assignment.config_offset:
            # Tasks start only with the settings that the leader has read, or later ones.
            assigned &= self._tasks.held()
        self._tasks.apply(assigned, snapshot)
        self._restart_tasks()
        self._tasks.publish(snapshot)
        self._watch.look(task for tasks in self.tasks().values() for task in tasks)
        if self._has_news(view, assignment, snapshot):
            self._rejoin(view)

    def _make_task(self, name: str, configs: TaskConfigs) -> Task:
        task = ConnectorTaskId(name, min(configs))
        return self._factory.make_task(name, configs, self._group.lend_to(task, self._view))

    def _has_news(self, view: GroupView, assignment: Assignment, snapshot: ConfigSnapshot) -> bool:
        """Whether this worker has something to report, or the leader must plan again."""
        is_released = assignment.revoked and not assignment.revoked & self._tasks.held()
        if is_released or (view.leads and self._plan.is_outdated(snapshot)):
            return True
        with self._lock:
            has_missing = bool(self._missing) and time.monotonic() >= self._missing_at
        return has_missing or self._watch.has_changed(snapshot)

    def _rejoin(self, view: GroupView) -> None:
        """Once per generation: joining again reports everything and starts the next one."""
        generation, now = (view.membership, view.generation), time.monotonic()
        asked_in, asked_at = self._rejoined
        if generation != asked_in or now - asked_at > REJOIN_SECONDS:
            self._rejoined = generation, now
            self._group.request_rejoin()

    def _restart_tasks(self) -> None:
        with self._lock:
            restarts, self._restarts = self._restarts, []
        for name, restart in restarts:
            found = [self._tasks.restart(ConnectorTaskId(name, number)) for number in restart.tasks]
            restart.is_missed = not all(found)
            if any(found):
                text, mark = "connector %s: restart of %s", about_connector(EventKind.ACTION, name)
                log.info(text, self._label(name), restart, extra=mark)
            restart.done.set()
