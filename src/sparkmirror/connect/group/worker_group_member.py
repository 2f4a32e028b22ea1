"""Joins the group of workers with our `group.id`; learns who leads and which tasks are ours.

Runs on: worker, on a thread of its own. Mirrors: org.apache.kafka.connect.runtime.distributed
.WorkerGroupMember. The coordinator picks the leader and keeps it as long as it stays a member.
Genuine Connect workers use other protocols, so the coordinator rejects the second kind to arrive.
`group_place` has what membership means for a leader and for tasks.

A member joins with the tasks that it runs and with those that it was assigned last, because they
may be about to start. The leader assigns none of them to another. So a generation that begins
within the lease does not interrupt tasks that stay, even if the leader changes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace

from sparkmirror.config.clients import ClientConfig
from sparkmirror.connect.group.group_place import GroupPlace, GroupView
from sparkmirror.connect.group.member_figures import MemberFigures
from sparkmirror.connect.group.member_protocols import (
    Describe,
    PlanAssignments,
    WorkSharing,
)
from sparkmirror.errors import BrokerError, KafkaError, TransportError, describe_error
from sparkmirror.mirror.permissions import NO_CONNECTORS
from sparkmirror.spark.link.lease import boot_clock
from sparkmirror.wire.client.blocking_client import BlockingClient, PendingRequest
from sparkmirror.wire.group_member import (
    JOIN_EXTRA_SECONDS,
    GroupMember,
    GroupSettings,
    RejoinError,
)
from sparkmirror.wire.net.outages import OUTAGES
from sparkmirror.wire.protocol.error_codes import INCONSISTENT_GROUP_PROTOCOL, REBALANCE_IN_PROGRESS
from sparkmirror.wire.protocol.group_messages import Joined

log = logging.getLogger(__name__)

PROTOCOL_TYPE = "connect"
# Release 0.1 used "sparkmirror": a leader of that release would run all tasks itself.
PROTOCOL = "sparkmirror-1"
OCCUPIED = (
    "Kafka Connect workers, or workers of sparkmirror 0.1, use this group.id: stop them first, or "
    "name another"
)
# The others learn of a lost member from their next heartbeat. Connect's default of 3 s is too slow.
MOST_HEARTBEAT_SECONDS = 0.5
# While tasks move: those that their owner has ended wait until all members have joined again.
FOLLOW_UP_SECONDS = 0.1
# Pause after an error that an operator must fix.
REFUSED_SECONDS = 5.0
STOP_SECONDS = 10.0
DRAIN_LOOK_SECONDS = 0.05


class WorkerGroupMember(GroupPlace):
    """Our place in the group of workers. Its properties are for any thread."""

    def __init__(
        self,
        client: ClientConfig,
        group_id: str,
        *,
        session_timeout_ms: int,
        heartbeat_interval_ms: int,
        rebalance_timeout_ms: int,
        own_url: str,
        protocol: str = PROTOCOL,
        occupied: str = OCCUPIED,
        denied: str = NO_CONNECTORS,
        describe: Describe | None = None,
        plan: PlanAssignments | None = None,
        has_claim: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = boot_clock,
    ) -> None:
        """`protocol`: only members with the same one share a group.

        `describe` returns what runs here, `plan` who must run what. `occupied` and `denied` explain
        the errors when members with another protocol are in the group, and when we may not join.
        """
        settings = GroupSettings(
            group_id, PROTOCOL_TYPE, protocol, session_timeout_ms, rebalance_timeout_ms
        )
        super().__init__(settings, own_url, client.alias, clock, has_claim)
        self._occupied = occupied
        self._denied = denied
        self.figures = MemberFigures(clock)
        # Why we are not a member; empty while we are.
        self.last_error = ""
        self._config = replace(
            client, request_timeout_ms=min(client.request_timeout_ms, session_timeout_ms)
        )
        self._protocol = WorkSharing(own_url, describe, plan)
        self._heartbeat_seconds = min(heartbeat_interval_ms / 1000, MOST_HEARTBEAT_SECONDS)
        self._rejoin = threading.Event()
        self._draining = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"member {own_url}", daemon=True)

    def start(self) -> None:
        """Start the thread, which joins the group and stays in it."""
        self._thread.start()

    def request_rejoin(self) -> None:
        """Join again at once, because `describe` or `plan` has something new; does not wait."""
        self._rejoin.set()

    def drain(self, seconds: float) -> bool:
        """Let the others take over all tasks, then leave; return whether that was done in time.

        A leader must have stopped its connectors before. Tasks end here as assignments revoke them.
        If that takes too long, this worker is still a member: end its tasks, then call `stop`.
        """
        self._draining.set()
        self.request_rejoin()
        deadline = self._clock() + seconds
        while not self._is_drained():
            if self._clock() >= deadline:
                return False
            self._stopping.wait(DRAIN_LOOK_SECONDS)
        self.stop()
        return True

    def _is_drained(self) -> bool:
        assignment = self._view.assignment
        return not (assignment and assignment.tasks) and not self._protocol.has_tasks()

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Leave the group, unless tasks that were assigned to us still run.

        A leader must have stopped its connectors before. Tasks that still run keep their lease: we
        do not leave, and the coordinator removes us after the lease has ended.
        """
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(seconds)

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._be_member()
            except Exception:  # the lease ends by itself; a worker without a group can do nothing
                log.exception("[%s] the member of the group died; it starts again", self._group)
                self._lose_place()
                self._stopping.wait(REFUSED_SECONDS)

    def _be_member(self) -> None:
        self._calls = BlockingClient(self._config, self._clock, self._pulse)
        self._member = GroupMember(self._calls, self._config.alias, self._settings)
        try:
            while not self._stopping.is_set():
                self._take_part()
        finally:
            was_member = bool(self._member.member_id)
            self._lose_place()  # from here on no task has a lease
            if was_member and not self._protocol.has_tasks():
                self._leave()
            self.figures.end_rebalance(is_done=False)
            self._calls.close()

    def _take_part(self) -> None:
        """One generation: from joining until the group changes."""
        try:
            self._sync(self._join())
            self._stay()
        except RejoinError as error:
            log.debug("%s", error)
            if not self._member.member_id:  # the coordinator has forgotten us
                self._doubt_place()
        except KafkaError as error:
            self._complain(error)

    def _join(self) -> Joined:
        # Before we describe ourselves: what changes after that needs another join.
        self._rejoin.clear()
        state = self._protocol.describe(self._view.assignment, draining=self._draining.is_set())
        self._claim(state.tasks)
        self.figures.begin_rebalance()
        call = self._member.begin_join(self._protocol.encode(state))
        self._await("join", call, self._settings.rebalance_seconds + JOIN_EXTRA_SECONDS)
        joined = self._member.end_join(call)
        self.figures.note_join()
        if joined.leader not in (joined.member, self._view.leader_id):
            # Another worker leads from now on; its URL comes with the assignment.
            self._publish(replace(self._view, leader_id=joined.leader, leader_url="", leads=False))
        return joined

    def _sync(self, joined: Joined) -> None:
        leads = joined.leader == joined.member
        assignments = self._protocol.assign(joined.members) if leads else {}
        call = self._member.begin_sync(assignments)
        self._await("sync", call, self._settings.session_seconds + JOIN_EXTRA_SECONDS)
        assignment = self._protocol.read(self._member.end_sync(call))
        self.last_error = ""
        view = GroupView(
            joined.member,
            joined.generation,
            joined.leader,
            assignment.leader_url,
            assignment.members,
            leads,
            assignment,
        )
        self._take_place(view, call.sent_at)
        self.figures.end_rebalance(is_done=True)

    def _await(self, what: str, call: PendingRequest, limit: float) -> None:
        """Wait for the other members, which may be dead; heartbeats keep our lease alive."""
        while not self._calls.wait(lambda: call.is_over, self._heartbeat_seconds):
            if self._stopping.is_set() or self._clock() - call.sent_at > limit:
                raise self._calls.too_late(
                    f"{what} group '{self._group}' on '{self._config.alias}'", limit
                )
            self._beat_beside(call)

    def _beat_beside(self, call: PendingRequest) -> None:
        if self._member.generation < 0:
            return
        response = self._member.heartbeat_beside(call)
        if response is not None:
            sent_at, code = response
            self.figures.note_heartbeat()
            if code in (0, REBALANCE_IN_PROGRESS):
                self._renew_lease(sent_at, is_stable=code == 0)

    def _stay(self) -> None:
        """Send heartbeats until the group changes or we ask to join again."""
        assignment = self._view.assignment
        is_moving = assignment is not None and assignment.follow_up
        usual = FOLLOW_UP_SECONDS if is_moving else self._heartbeat_seconds
        pause = usual
        while not self._stopping.is_set():
            if self._calls.wait(self._rejoin.is_set, pause):
                return
            if not self._stopping.is_set():
                pause = usual if self._beat() else 0.0

    def _beat(self) -> bool:
        """Send a heartbeat; return whether the coordinator accepted it."""
        try:
            self._renew_lease(self._member.heartbeat(), is_stable=True)
            self.figures.note_heartbeat()
        except RejoinError:
            raise
        except KafkaError as error:
            if not error.retriable:
                raise
            self._complain(error)
            return False
        self.last_error = ""
        return True

    def _leave(self) -> None:
        calls = BlockingClient(self._config, self._clock, lambda: False)
        try:
            self._member.move_to(calls)
            self._member.leave()
        except KafkaError as error:  # the coordinator removes us after the session timeout
            log.info("%s", error)
        finally:
            calls.close()

    def _pulse(self) -> bool:
        """Called ten times a second during waits, so that callbacks learn of the lease's end."""
        self._notify()
        return self._stopping.is_set()

    def _complain(self, error: KafkaError) -> None:
        text = describe_error(error, if_denied=self._denied)
        if isinstance(error, BrokerError) and error.code == INCONSISTENT_GROUP_PROTOCOL:
            text += f"; {self._occupied}"
        if text != self.last_error and not self._stopping.is_set():
            # Errors that pass: a coordinator that moves, a cluster that is new.
            is_passing = isinstance(error, BrokerError) and error.retriable
            # Of several connection errors in a row, only the first is a warning.
            is_passing = is_passing or (isinstance(error, TransportError) and self.last_error != "")
            self.last_error = text
            level = logging.INFO if is_passing else logging.WARNING
            if OUTAGES.is_lasting(self._config):  # the outage is logged already
                level = logging.DEBUG
            log.log(level, "[%s] trying again: %s", self._group, text)
        pause = self._config.retry_backoff_ms / 1000 if error.retriable else REFUSED_SECONDS
        self._calls.wait(lambda: False, pause)
