"""What this process knows of its place in the group of workers, and for how long that is certain.

Runs on: worker; read by any thread, changed by the member's thread alone. The lease
(`member_lease`): as long as it lasts, no other worker can lead in our place or run our tasks. When
it is over, what runs here holds still.

A coordinator that crashes lets the lease run out although no other worker took our place: its
successor counts every session from its own start. So the end of a lease only puts our tasks on
hold. A heartbeat that the coordinator accepts in the same generation proves that no generation
began without us: no other worker led, and none was assigned our tasks. They continue: the
*membership* lasts, and the *tenure* of a leader. A new generation after the lease begins another of
each, and tasks of the earlier membership write nothing more.

What is ours: the tasks that we joined with, then those of the assignment and those that it revokes,
which still have to store their positions. No other task is lent a moment here, also if a thread
that has seen an older assignment only now starts it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sparkmirror.connect.group.connect_protocol import Assignment
from sparkmirror.connect.group.member_lease import MemberLease
from sparkmirror.events import EventKind, event
from sparkmirror.types import ConnectorTaskId
from sparkmirror.wire.group_member import GroupSettings

log = logging.getLogger(__name__)

# How long after its lease a member may still hope to hear that no other took its place. A broker
# that crashed is replaced within its session timeout (9 s) and some seconds of loading the group.
DOUBT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class GroupView:
    """The group as of its last generation; `members` are the workers' URLs.

    `leads`: we were elected; `is_leader` tells whether that is certain at this moment. `assignment`
    is None until there is one, and where the leader runs everything. `membership` counts the times
    that this process was a member without a gap; 0 while it is none.
    """

    member_id: str = ""
    generation: int = -1
    leader_id: str = ""
    leader_url: str = ""
    members: tuple[str, ...] = ()
    leads: bool = False
    assignment: Assignment | None = None
    membership: int = 0

    @property
    def tasks(self) -> frozenset[ConnectorTaskId]:
        """What was assigned to us."""
        return frozenset() if self.assignment is None else self.assignment.tasks


class GroupPlace:
    """Our place in the group, as far as the coordinator has told us."""

    def __init__(
        self, settings: GroupSettings, own_url: str, alias: str, clock: Callable[[], float]
    ) -> None:
        self.own_url = own_url
        self._settings = settings
        self._alias = alias
        self._clock = clock
        self._view = GroupView()
        self._lease = MemberLease(settings, clock)
        # The tasks that no other member can be assigned, each with a number that stands for the
        # time since when that is so without a gap.
        self._claimed: Mapping[ConnectorTaskId, int] = {}
        self._claims = 0
        self._memberships = 0
        self._tenure = 0
        # The last view that callbacks know of, and whether its lease was good.
        self._told = (GroupView(), False)
        self._callbacks: list[Callable[[], None]] = []
        self._stopping = threading.Event()

    @property
    def view(self) -> GroupView:
        """All of the last generation at once."""
        return self._view

    @property
    def is_leader(self) -> bool:
        """Whether this worker leads now; false as soon as the lease is over."""
        # The lease first: one that was renewed as a follower must not meet an older view.
        return self.lease_seconds() > 0 and self._view.leads

    @property
    def leader_url(self) -> str:
        """Where writes go; empty while nobody is known to lead."""
        return self._view.leader_url

    @property
    def leader_id(self) -> str:
        return self._view.leader_id

    @property
    def member_id(self) -> str:
        return self._view.member_id

    @property
    def generation(self) -> int:
        """Of the group; -1 until we are a member."""
        return self._view.generation

    @property
    def term(self) -> int | None:
        """`tenure`, but None when it is in doubt."""
        is_sure, tenure = self.lease_seconds() > 0, self.tenure
        return tenure if is_sure else None

    @property
    def members(self) -> tuple[str, ...]:
        """URLs of all workers."""
        return self._view.members

    def lease_seconds(self) -> float:
        """For how long no other worker can lead in our place, or run our tasks; 0 for others."""
        return self._lease.seconds

    @property
    def tenure(self) -> int | None:
        """Counts the times that this worker led without a gap; None when it does not lead.

        It may be in doubt, when the lease is over: then nothing may be written.
        """
        is_recent = self._lease.ended_within(DOUBT_SECONDS)
        return self._tenure if is_recent and self._view.leads else None

    @property
    def membership(self) -> int | None:
        """Counts the times that this worker was a member without a gap; None when it is none.

        Tasks of an earlier membership may run elsewhere by now. In doubt like `tenure`.
        """
        is_recent, view = self._lease.ended_within(DOUBT_SECONDS), self._view
        return view.membership if is_recent and view.membership else None

    def lend(self) -> Callable[[], float]:
        """What is lent to tasks that start now; nothing after the end of this membership.

        For those that need no assignment, because they run where the leader is.
        """
        membership = self._view.membership

        def seconds() -> float:
            left = self.lease_seconds()  # before the comparison: it may be of the next membership
            return left if self._view.membership == membership else 0.0

        return seconds

    def lend_to(self, task: ConnectorTaskId, view: GroupView) -> Callable[[], float]:
        """What is lent to a task that starts because `view` assigns it to us.

        It is nothing after the end of that membership, or when another member can have the task,
        also if it is ours again later: this start of it may have been overtaken.
        """
        claim = self._claimed.get(task)

        def seconds() -> float:
            left = self.lease_seconds()
            is_same = claim is not None and self._claimed.get(task) == claim
            return left if is_same and self._view.membership == view.membership else 0.0

        return seconds

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call when anything of the above has changed; on our thread, so it must not block."""
        self._callbacks.append(callback)

    # -- the member's thread -----------------------------------------------------------------------

    @property
    def _group(self) -> str:
        return self._settings.group

    def _hear(self, sent_at: float, *, is_stable: bool) -> None:
        self._lease.hear(sent_at, is_stable=is_stable)
        self._count_lease()

    def _count_lease(self) -> None:
        if self._view.generation >= 0:
            self._lease.count()

    def _claim(self, tasks: frozenset[ConnectorTaskId]) -> None:
        """What the others cannot be assigned from now on."""
        self._claims += 1
        before = self._claimed
        self._claimed = {task: before.get(task, self._claims) for task in tasks}

    def _take_place(self, view: GroupView, sent_at: float) -> None:
        """An assignment has come, which was asked for at `sent_at`."""
        # Before anything is lent to tasks of an earlier membership or tenure.
        if self._lease.is_over:
            self._memberships += 1
        if view.leads and not self.is_leader:
            self._tenure += 1
        self._lease.hear(sent_at, is_stable=True)
        if view.assignment is not None:
            self._claim(view.assignment.tasks | view.assignment.revoked)
        self._publish(replace(view, membership=self._memberships))

    def _lose_place(self) -> None:
        self._lease.lose()
        self._publish(GroupView())

    def _publish(self, view: GroupView) -> None:
        self._view = view
        self._count_lease()
        self._tell()

    def _tell(self) -> None:
        is_sure = not self._lease.is_over
        now = replace(self._view, leads=self._view.leads and is_sure), is_sure
        before, self._told = self._told, now
        if now != before:
            self._log_change(before, now)
            for callback in self._callbacks:
                callback()

    def _log_change(self, before: tuple[GroupView, bool], now: tuple[GroupView, bool]) -> None:
        (old, was_sure), (new, is_sure) = before, now
        level = logging.INFO if self._stopping.is_set() else logging.WARNING
        who = f"[{self._group}] {self.own_url}"
        if new.leads and not old.leads:
            mark = event(EventKind.REBALANCED)
            log.info("%s leads, generation %d", who, new.generation, extra=mark)
        has_work = old.leads or (old.assignment is not None and bool(old.assignment.tasks))
        if was_sure and not is_sure and has_work and new.generation >= 0:
            log.log(
                level,
                "%s has not heard from the group's coordinator on '%s': its tasks hold still "
                "until the coordinator says that no other process leads",
                who,
                self._alias,
            )
        elif old.leads and not new.leads:
            log.log(level, "%s does not lead any more", who)
        elif has_work and new.generation < 0 and not self._stopping.is_set():
            mark = event(EventKind.REBALANCED)
            log.warning("%s has lost its place in the group: its tasks end", who, extra=mark)
