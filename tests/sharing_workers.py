"""Workers that share tasks: real members and assignments, with tasks that only count their leases.

What stands in for Spark renews its lease as a copy task does, and tells a `Checker`, which fails as
soon as two workers may write for one task.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from sparkmirror.connect.group.assignor import Assignment, MemberState, assign
from sparkmirror.connect.group.group_place import GroupView
from sparkmirror.connect.group.tenure import Continuity
from sparkmirror.connect.group.worker_group_member import WorkerGroupMember
from sparkmirror.spark.link.lease import boot_clock
from sparkmirror.types import ConnectorTaskId
from tests.clusters import wait_for

TURN_SECONDS = 0.01
RENEW_SECONDS = 0.05
SLOTS = 256


def tasks_of(connector: str, count: int) -> frozenset[ConnectorTaskId]:
    return frozenset(ConnectorTaskId(connector, at) for at in range(count))


class Configs:
    """The config topic: which tasks there are, how often that has changed, who claimed it last."""

    def __init__(self, tasks: frozenset[ConnectorTaskId]) -> None:
        self.state = (0, tasks)
        self.claimed_by = ""

    def change(self, tasks: frozenset[ConnectorTaskId]) -> None:
        self.state = (self.state[0] + 1, tasks)


class Checker:
    """Knows until when each worker may write for each task."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        # When each task was last seen with a lease, and how often one began on another worker.
        self.written_at: dict[ConnectorTaskId, float] = {}
        self.owners: dict[ConnectorTaskId, str] = {}
        self.moves = 0
        self._ends: dict[ConnectorTaskId, dict[str, float]] = {}
        self._lock = threading.Lock()

    def grant(self, task: ConnectorTaskId, worker: str, end: float) -> None:
        """`worker` may write until `end`."""
        with self._lock:
            now = boot_clock()
            ends = self._ends.setdefault(task, {})
            others = [
                f"{name} for {at - now:.3f} s"
                for name, at in ends.items()
                if name != worker and at > now
            ]
            if others and end > now:
                self.violations.append(f"{worker} may write for {task}, and {others} too")
            ends[worker] = end
            self.written_at[task] = now
            if self.owners.get(task, worker) != worker:
                self.moves += 1
            self.owners[task] = worker

    def release(self, task: ConnectorTaskId, worker: str) -> None:
        """The task has ended there."""
        with self._lock:
            self._ends.get(task, {}).pop(worker, None)


class LeasedTask:
    """Stands in for a copy task, wherever it runs."""

    def __init__(self, lend: Callable[[], float]) -> None:
        self.lend = lend
        self.renew_at = 0.0
        self.end = float("-inf")
        self.ends_at = float("inf")  # when it has stored its positions after a stop


class SharingWorker:
    """One worker: its member, its herder, and what runs on it."""

    def __init__(
        self,
        name: str,
        make_member: Callable[..., WorkerGroupMember],
        configs: Configs,
        checker: Checker,
        stop_seconds: float = 0.05,
    ) -> None:
        self.name = name
        self.slots = SLOTS
        self._configs = configs
        self._checker = checker
        self._stop_seconds = stop_seconds
        self._lock = threading.Lock()
        self._tasks: dict[ConnectorTaskId, LeasedTask] = {}
        self._last: Mapping[str, Assignment] = {}
        self._planned: frozenset[ConnectorTaskId] = frozenset()
        self._held: frozenset[ConnectorTaskId] = frozenset()
        self._told_released: tuple[int, int] = (0, -1)
        self._member_runs, self._tasks_run = threading.Event(), threading.Event()
        self._ended = threading.Event()
        self.member = make_member(
            own_url=f"http://{name}:8083",
            describe=self._describe,
            plan=self._plan,
            has_claim=lambda: self._configs.claimed_by == self.name,
            clock=self._time,
        )
        self._continuity = Continuity(lambda: self.member.membership)
        self._tenure = Continuity(lambda: self.member.tenure)
        self._has_claimed = False
        self._threads = [
            threading.Thread(target=self._herd, name=f"herder {name}", daemon=True),
            threading.Thread(target=self._copy, name=f"tasks {name}", daemon=True),
        ]

    def start(self) -> None:
        self.thaw()
        self.member.start()
        for thread in self._threads:
            thread.start()

    def freeze(self, *, with_tasks: bool = True) -> None:
        """As SIGSTOP; tasks on a cluster run on, but the worker answers none of them."""
        self._member_runs.clear()
        if with_tasks:
            self._tasks_run.clear()

    def thaw(self) -> None:
        self._member_runs.set()
        self._tasks_run.set()

    def drain(self, seconds: float) -> bool:
        """Leave in order."""
        return self.member.drain(seconds)

    def close(self) -> None:
        """End everything, in whichever state it is."""
        self.thaw()
        self.member.stop()
        self._ended.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    @property
    def tasks(self) -> frozenset[ConnectorTaskId]:
        """What may write here now."""
        with self._lock:
            now = boot_clock()
            return frozenset(task for task, each in self._tasks.items() if each.end > now)

    @property
    def assigned(self) -> frozenset[ConnectorTaskId]:
        assignment = self.member.view.assignment
        return frozenset() if assignment is None else assignment.tasks

    def __str__(self) -> str:
        return f"{self.name}: {self.member.view} {self.member.last_error} runs {sorted(self.tasks)}"

    # -- callbacks of the member -------------------------------------------------------------------

    def _time(self) -> float:
        if threading.current_thread() is self.member._thread:
            self._member_runs.wait()
        return boot_clock()

    def _describe(self) -> MemberState:
        with self._lock:
            return MemberState("", self._configs.state[0], self.slots, frozenset(self._tasks))

    def _plan(self, members: Mapping[str, MemberState]) -> Mapping[str, Assignment]:
        offset = self._configs.state[0]
        held = frozenset(task for member in members.values() for task in member.tasks)
        allowed = self._allowed(held)
        self._last = assign(members, allowed, self._last, config_offset=offset)
        self._planned, self._held = allowed, held | allowed
        return self._last

    def _allowed(self, held: frozenset[ConnectorTaskId]) -> frozenset[ConnectorTaskId]:
        """As a leader: it gives tasks away that no worker runs only after its claim."""
        configured = self._configs.state[1]
        may_give = self._has_claimed and self.member.is_leader
        return configured if may_give else configured & held

    # -- the herder --------------------------------------------------------------------------------

    def _herd(self) -> None:
        while not self._ended.wait(TURN_SECONDS):
            self._member_runs.wait()
            self._reconcile()

    def _reconcile(self) -> None:
        view = self.member.view
        if self._continuity.has_lapsed():
            self._stop_all()
        if self._tenure.has_lapsed():
            self._has_claimed = False
        elif self.member.is_leader and not self._has_claimed:
            self._configs.claimed_by = self.name
            self._has_claimed = True
        if view.assignment is None:
            return
        for task, each in list(self._tasks.items()):
            if task not in view.assignment.tasks:
                self._stop(each)
        if self.member.membership == view.membership:
            self._start(view, view.assignment)
        self._rejoin_if_needed(view, view.assignment)

    def _start(self, view: GroupView, assignment: Assignment) -> None:
        with self._lock:
            for task in assignment.tasks - self._tasks.keys():
                self._tasks[task] = LeasedTask(self.member.lend_to(task, view))

    def _rejoin_if_needed(self, view: GroupView, assignment: Assignment) -> None:
        generation = (view.membership, view.generation)
        is_released = assignment.revoked and not assignment.revoked & self._tasks.keys()
        if is_released and self._told_released != generation:
            self._told_released = generation
            self.member.request_rejoin()
        if view.leads and self._planned != self._allowed(self._held):
            self.member.request_rejoin()

    def _stop_all(self) -> None:
        for each in list(self._tasks.values()):
            self._stop(each)

    def _stop(self, task: LeasedTask) -> None:
        task.ends_at = min(task.ends_at, boot_clock() + self._stop_seconds)

    # -- the tasks ---------------------------------------------------------------------------------

    def _copy(self) -> None:
        while not self._ended.wait(TURN_SECONDS):
            self._tasks_run.wait()
            for task, each in list(self._tasks.items()):
                self._turn(task, each)

    def _turn(self, task: ConnectorTaskId, each: LeasedTask) -> None:
        now = boot_clock()
        if now >= each.ends_at:
            self._checker.release(task, self.name)
            with self._lock, suppress(KeyError):
                del self._tasks[task]
        elif now >= each.renew_at and self._member_runs.is_set():
            each.renew_at = now + RENEW_SECONDS
            seconds = each.lend()
            if seconds > 0:
                each.end = now + seconds
                self._checker.grant(task, self.name, each.end)


class SharingGroup:
    """A config topic, and the workers of a test that share its tasks."""

    def __init__(self, make_member: Callable[..., WorkerGroupMember], tasks: int) -> None:
        self.configs = Configs(tasks_of("x", tasks))
        self.checker = Checker()
        self.workers: list[SharingWorker] = []
        self._make = make_member

    def add(self, name: str, stop_seconds: float = 0.05) -> SharingWorker:
        """One more worker, which joins at once."""
        worker = SharingWorker(name, self._make, self.configs, self.checker, stop_seconds)
        self.workers.append(worker)
        worker.start()
        return worker

    def remove(self, worker: SharingWorker) -> None:
        self.workers.remove(worker)
        worker.close()

    def settle(self, *workers: SharingWorker, within: float) -> None:
        """Wait until these share all tasks equally, and run them."""
        wait_for(
            lambda: self._is_settled(workers),
            within=within,
            describe=lambda: "\n".join(map(str, self.workers)),
        )

    def _is_settled(self, workers: Sequence[SharingWorker]) -> bool:
        configured = self.configs.state[1]
        loads = [len(worker.tasks) for worker in workers]
        has_all = sorted(task for each in workers for task in each.tasks) == sorted(configured)
        return has_all and max(loads) - min(loads) <= 1

    def close(self) -> None:
        """End all workers. No two may have written for one task."""
        for worker in self.workers:
            worker.close()
        assert self.checker.violations == []
