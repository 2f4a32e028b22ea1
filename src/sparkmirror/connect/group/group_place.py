"""This process's place in the group of workers, and for how long it is certain.

Runs on: worker; read by any thread, changed only by the member's thread. The lease
(`member_lease`): as long as it lasts, no other worker can lead in our place or run our tasks. When
it ends, tasks and connectors here pause.

When a coordinator crashes, the lease may end although no other worker took our place: the next
coordinator counts every session from its own start. So the end of a lease only pauses our tasks. A
heartbeat that the coordinator accepts in the same generation proves that no generation began
without us: no other worker led, and none was assigned our tasks. They continue, and so do the
*membership* and a leader's *tenure*. A coordinator that was frozen for longer than a session has
forgotten us when it wakes; then a leader whose claim of the config topic is still valid, and that
leads again, knows the same: a leader gives tasks away only after its claim. Any other generation
after the lease begins a new membership and tenure, and tasks of the earlier membership write
nothing more.

Our tasks are those that we joined with, then those of the assignment, and those that it revokes
until they have stored their positions. No other task gets a lease here, not even one that a thread
starts late because it has seen an older assignment.
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

# How long after the end of its lease a member may still learn that no other took its place. A
# crashed broker is replaced within its session timeout (9 s), plus some seconds to load the group.
DOUBT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class GroupView:
    """The group as of its last generation; `members` are the workers' URLs.

    `leads`: we were elected; `GroupPlace.is_leader` is whether that is certain now. `assignment` is
    None until there is one. `membership` numbers the periods in which this process was a member
    without a gap; 0 while it is not a member.
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
        """The tasks that were assigned to us."""
        return frozenset() if self.assignment is None else self.assignment.tasks


class GroupPlace:
    """Our place in the group, according to the coordinator's responses."""

    def __init__(
        self,
        settings: GroupSettings,
        own_url: str,
        alias: str,
        clock: Callable[[], float],
        has_claim: Callable[[], bool] = lambda: False,
    ) -> None:
        """`has_claim`: whether no other leader could give tasks away since we led."""
        self.own_url = own_url
        self._has_claim = has_claim
        self._settings = settings
        self._alias = alias
        self._clock = clock
        self._view = GroupView()
        self._lease = MemberLease(settings, clock)
        # The tasks that no other member can be assigned, each with the number of the claim since
        # which this has held without a gap.
        self._claimed: Mapping[ConnectorTaskId, int] = {}
        self._claims = 0
        self._memberships = 0
        self._tenure = 0
        # The last view that callbacks were called for, and whether its lease was valid.
        self._announced = (GroupView(), False)
        self._callbacks: list[Callable[[], None]] = []
        self._stopping = threading.Event()

    @property
    def view(self) -> GroupView:
        """The last generation, as one consistent value."""
        return self._view

    @property
    def is_leader(self) -> bool:
        """Whether this worker leads now; false as soon as the lease is over."""
        # The lease is read first: one renewed as a follower must not be paired with an older view.
        return self.lease_seconds() > 0 and self._view.leads

    @property
    def leader_url(self) -> str:
        """The worker to send writes to; empty while no leader is known."""
        return self._view.leader_url

    @property
    def leader_id(self) -> str:
        return self._view.leader_id

    @property
    def member_id(self) -> str:
        return self._view.member_id

    @property
    def generation(self) -> int:
        """The group's generation; -1 until we are a member."""
        return self._view.generation

    @property
    def term(self) -> int | None:
        """`tenure`, but None when the lease is over."""
        is_sure, tenure = self.lease_seconds() > 0, self.tenure
        return tenure if is_sure else None

    @property
    def members(self) -> tuple[str, ...]:
        """URLs of all workers."""
        return self._view.members

    def lease_seconds(self) -> float:
        """For how long no other worker can lead in our place or run our tasks; 0 if no member."""
        return self._lease.seconds

    @property
    def tenure(self) -> int | None:
        """Numbers the periods in which this worker led without a gap; None when it does not lead.

        When the lease is over, the tenure is uncertain, and nothing may be written.
        """
        is_recent = self._lease.ended_within(DOUBT_SECONDS)
        return self._tenure if is_recent and self._view.leads else None

    @property
    def membership(self) -> int | None:
        """Numbers the periods in which this worker was a member without a gap; None if it is not.

        Tasks of an earlier membership may run elsewhere by now. Uncertain when `tenure` is.
        """
        is_recent, view = self._lease.ended_within(DOUBT_SECONDS), self._view
        return view.membership if is_recent and view.membership else None

    def lend(self) -> Callable[[], float]:
        """The lease of tasks that start now; it ends with this membership.

        For tasks that need no assignment because they run on the leader.
        """
        membership = self._view.membership

        def seconds() -> float:
            left = self.lease_seconds()  # read first: it may belong to the next membership
            return left if self._view.membership == membership else 0.0

        return seconds

    def lend_to(self, task: ConnectorTaskId, view: GroupView) -> Callable[[], float]:
        """The lease of a task that starts because `view` assigns it to us.

        It ends with that membership, or when another member can be assigned the task. It does not
        revive if the task becomes ours again: another worker may have run it in between.
        """
        claim = self._claimed.get(task)

        def seconds() -> float:
            left = self.lease_seconds()
            is_same = claim is not None and self._claimed.get(task) == claim
            return left if is_same and self._view.membership == view.membership else 0.0

        return seconds

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call `callback` after every change; on the member's thread, so it must not block."""
        self._callbacks.append(callback)

    # -- the member's thread -----------------------------------------------------------------------

    @property
    def _group(self) -> str:
        return self._settings.group

    def _renew_lease(self, sent_at: float, *, is_stable: bool) -> None:
        self._lease.renew(sent_at, is_stable=is_stable)
        self._extend_lease()

    def _extend_lease(self) -> None:
        if self._view.generation >= 0:
            self._lease.extend()

    def _claim(self, tasks: frozenset[ConnectorTaskId]) -> None:
        """Note the tasks that no other member can be assigned from now on."""
        self._claims += 1
        before = self._claimed
        self._claimed = {task: before.get(task, self._claims) for task in tasks}

    def _take_place(self, view: GroupView, sent_at: float) -> None:
        """An assignment has arrived; its request was sent at `sent_at`."""
        # Before the lease is renewed, so that tasks of an earlier membership or tenure get none.
        is_same = self._lease.is_over and self._is_unbroken(view)
        if self._lease.is_over and not is_same:
            self._memberships += 1
        if view.leads and not self.is_leader and not is_same:
            self._tenure += 1
        self._lease.renew(sent_at, is_stable=True)
        if view.assignment is not None:
            self._claim(view.assignment.tasks | view.assignment.revoked)
        self._publish(replace(view, membership=self._memberships))

    def _is_unbroken(self, view: GroupView) -> bool:
        """After the lease: whether no other worker led, so that our tasks may continue."""
        was_leader = self._view.leads and self._lease.ended_within(DOUBT_SECONDS)
        return was_leader and view.leads and self._has_claim()

    def _doubt_place(self) -> None:
        """The coordinator does not know us any more; a leader pauses until the next generation."""
        if self._view.leads:
            self._lease.doubt()
            self._notify()
        else:
            self._lose_place()

    def _lose_place(self) -> None:
        self._lease.lose()
        self._publish(GroupView())

    def _publish(self, view: GroupView) -> None:
        self._view = view
        self._extend_lease()
        self._notify()

    def _notify(self) -> None:
        is_sure = not self._lease.is_over
        now = replace(self._view, leads=self._view.leads and is_sure), is_sure
        before, self._announced = self._announced, now
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
