"""Workers of one group.id find each other, and one of them leads: Kafka's group protocol.

Runs on: worker, on a thread of its own. The group's leader, as its coordinator chose it, is ours:
it stays while it lives. Genuine Connect workers use other protocols, so they and we never share a
group: the coordinator refuses whoever comes second.

No other worker can lead before the coordinator has missed us for the session timeout, or for the
rebalance timeout when others wait for us to join again. Both are counted from when our last
answered request was *sent*, and a second is left for those who must stop: this is the lease.

A coordinator that crashes lets the lease run out although no other worker leads: its successor
counts every session from its own start. So the end of a lease only puts our tasks on hold. A
heartbeat that the coordinator accepts in the same generation proves that there was no other leader,
and they continue: the *tenure* lasts. A new generation after the lease begins another tenure.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import (
    BrokerError,
    KafkaError,
    RemoteProtocolError,
    TransportError,
    describe_error,
)
from sparkmirror.foreign_json import parse_json
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
PROTOCOL = "sparkmirror"
OCCUPIED = "Kafka Connect workers use this group.id: stop them first, or name another"
LEASE_MARGIN_SECONDS = 1.0
# What the coordinator refuses for a reason that somebody has to remove.
REFUSED_SECONDS = 5.0
STOP_SECONDS = 10.0
# How long after its lease a leader may still hope to hear that there is no other. A broker that
# crashed is replaced within its session timeout (9 s) and some seconds of loading the group.
DOUBT_SECONDS = 30.0
NEVER = float("-inf")


@dataclass(frozen=True, slots=True)
class GroupView:
    """The group as of its last generation; `members` are the workers' URLs."""

    member_id: str = ""
    generation: int = -1
    leader_id: str = ""
    leader_url: str = ""
    members: tuple[str, ...] = ()
    leads: bool = False


class WorkerGroupMember:
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
        clock: Callable[[], float] = boot_clock,
    ) -> None:
        """`protocol`: only members with the same one share a group.

        `occupied` and `denied` say what it means when members with another protocol are in the
        group, and when we may not be.
        """
        self.own_url = own_url
        self._occupied = occupied
        self._denied = denied
        # What keeps us from being a member; empty while we are.
        self.last_error = ""
        self._config = replace(
            client, request_timeout_ms=min(client.request_timeout_ms, session_timeout_ms)
        )
        self._terms = GroupSettings(
            group_id, PROTOCOL_TYPE, protocol, session_timeout_ms, rebalance_timeout_ms
        )
        self._heartbeat_seconds = heartbeat_interval_ms / 1000
        self._clock = clock
        self._view = GroupView()
        # When the last answered request was sent; when the last that was answered "all is well".
        self._heard_at = NEVER
        self._stable_at = NEVER
        # One value, so that other threads never see half of a change.
        self._lease_end = NEVER
        self._tenure = 0
        self._told = GroupView()
        self._callbacks: list[Callable[[], None]] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"member {own_url}", daemon=True)

    @property
    def is_leader(self) -> bool:
        """Whether this worker leads now; false as soon as the lease is over."""
        return self.lease_seconds() > 0

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
        """The generation in which this worker leads; None when it does not."""
        generation = self._view.generation
        return generation if self.is_leader else None

    @property
    def members(self) -> tuple[str, ...]:
        """URLs of all workers."""
        return self._view.members

    def lease_seconds(self) -> float:
        """For how long nobody else can lead; 0 when this worker does not."""
        return max(0.0, self._lease_end - self._clock())

    @property
    def tenure(self) -> int | None:
        """Counts the times that this worker led without a gap; None when it does not lead.

        It may be in doubt, when the lease is over: then nothing may be written.
        """
        in_time = self._clock() < self._lease_end + DOUBT_SECONDS
        return self._tenure if self._view.leads and in_time else None

    def lend(self) -> Callable[[], float]:
        """What tasks that start now are lent; nothing after the end of this tenure."""
        tenure = self._tenure
        return lambda: self.lease_seconds() if self._tenure == tenure else 0.0

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call when anything of the above has changed; on our thread, so it must not block."""
        self._callbacks.append(callback)

    def start(self) -> None:
        """Start the thread, which joins the group and stays in it."""
        self._thread.start()

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Leave the group. Whoever leads must have stopped what it runs before."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(seconds)

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._be_member()
            except Exception:  # the lease ends by itself; a worker without a group is of no use
                log.exception("[%s] the member of the group died; it starts again", self._group)
                self._lose_place()
                self._stopping.wait(REFUSED_SECONDS)

    def _be_member(self) -> None:
        self._calls = BlockingClient(self._config, self._clock, self._pulse)
        metadata = json.dumps({"version": 0, "url": self.own_url}).encode()
        self._member = GroupMember(self._calls, self._config.alias, self._terms, metadata)
        try:
            while not self._stopping.is_set():
                self._take_part()
        finally:
            was_member = bool(self._member.member_id)
            self._lose_place()
            if was_member:
                self._leave()
            self._calls.close()

    def _take_part(self) -> None:
        """One generation: from joining to the moment when the group changes."""
        try:
            self._sync(self._join())
            self._stay()
        except RejoinError as error:
            log.debug("%s", error)
            if not self._member.member_id:  # the coordinator has forgotten us
                self._lose_place()
        except KafkaError as error:
            self._complain(error)

    def _join(self) -> Joined:
        call = self._member.begin_join()
        limit = self._terms.rebalance_seconds + JOIN_EXTRA_SECONDS
        while not self._calls.wait(lambda: call.is_over, self._heartbeat_seconds):
            if self._stopping.is_set() or self._clock() - call.sent_at > limit:
                raise self._calls.too_late(
                    f"join group '{self._group}' on '{self._config.alias}'", limit
                )
            self._beat_while_joining(call)
        joined = self._member.end_join(call)
        if joined.leader != joined.member:
            # Somebody else leads from now on; its URL comes with the assignment.
            self._publish(GroupView(joined.member, joined.generation, joined.leader))
        return joined

    def _beat_while_joining(self, join: PendingRequest) -> None:
        """A leader's lease goes on while the group waits for others, who may be dead."""
        if self._member.generation < 0:
            return
        heard = self._member.heartbeat_beside(join)
        if heard is not None:
            sent_at, code = heard
            if code in (0, REBALANCE_IN_PROGRESS):
                self._hear(sent_at, is_stable=code == 0)

    def _sync(self, joined: Joined) -> None:
        leads = joined.leader == joined.member
        assignments = {}
        if leads:
            assignments = dict.fromkeys(joined.members, self._assignment(joined))
        sent_at, assignment = self._member.sync(assignments)
        if leads and not self.is_leader:
            # Before anything is lent to tasks of an earlier tenure.
            self._tenure += 1
        self._hear(sent_at, is_stable=True)
        url, members = _read_assignment(assignment)
        self.last_error = ""
        self._publish(
            GroupView(joined.member, joined.generation, joined.leader, url, members, leads=leads)
        )

    def _assignment(self, joined: Joined) -> bytes:
        urls = sorted(_read_url(metadata) for metadata in joined.members.values())
        document = {"version": 0, "leader_url": self.own_url, "members": urls}
        return json.dumps(document).encode()

    def _stay(self) -> None:
        """Heartbeats, until the group changes."""
        pause = self._heartbeat_seconds
        while not self._stopping.is_set():
            self._calls.wait(lambda: False, pause)
            if not self._stopping.is_set():
                pause = self._heartbeat_seconds if self._beat() else 0.0

    def _beat(self) -> bool:
        """Whether the coordinator has heard it."""
        try:
            self._hear(self._member.heartbeat(), is_stable=True)
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
        except KafkaError as error:  # the others will miss us
            log.info("%s", error)
        finally:
            calls.close()

    # -- what we know ------------------------------------------------------------------------------

    @property
    def _group(self) -> str:
        return self._terms.group

    def _hear(self, sent_at: float, *, is_stable: bool) -> None:
        self._heard_at = max(self._heard_at, sent_at)
        if is_stable:
            self._stable_at = max(self._stable_at, sent_at)
        self._count_lease()

    def _count_lease(self) -> None:
        missed_at = self._heard_at + self._terms.session_seconds
        dropped_at = self._stable_at + self._terms.rebalance_seconds
        end = min(missed_at, dropped_at) - LEASE_MARGIN_SECONDS
        self._lease_end = end if self._view.leads else NEVER

    def _lose_place(self) -> None:
        self._heard_at = self._stable_at = NEVER
        self._publish(GroupView())

    def _publish(self, view: GroupView) -> None:
        self._view = view
        self._count_lease()
        self._tell()

    def _pulse(self) -> bool:
        """Called ten times a second whatever we wait for: the end of a lease is told in time."""
        self._tell()
        return self._stopping.is_set()

    def _tell(self) -> None:
        now = replace(self._view, leads=self.is_leader)
        if now == self._told:
            return
        if now.leads and not self._told.leads:
            log.info("[%s] %s leads, generation %d", self._group, self.own_url, now.generation)
        if self._told.leads and not now.leads:
            self._tell_end()
        self._told = now
        for callback in self._callbacks:
            callback()

    def _tell_end(self) -> None:
        level = logging.INFO if self._stopping.is_set() else logging.WARNING
        if self._view.leads and not self._stopping.is_set():
            log.log(
                level,
                "[%s] %s has not heard from the group's coordinator on '%s': its tasks hold still "
                "until the coordinator says that no other process leads",
                self._group,
                self.own_url,
                self._config.alias,
            )
        else:
            log.log(level, "[%s] %s does not lead any more", self._group, self.own_url)

    def _complain(self, error: KafkaError) -> None:
        text = describe_error(error, if_denied=self._denied)
        if isinstance(error, BrokerError) and error.code == INCONSISTENT_GROUP_PROTOCOL:
            text += f"; {self._occupied}"
        if text != self.last_error and not self._stopping.is_set():
            # A broker's passing words: a coordinator that moves, a cluster that is new.
            is_passing = isinstance(error, BrokerError) and error.retriable
            # A connection that fails in one way after the other: the first is told.
            is_passing = is_passing or (isinstance(error, TransportError) and self.last_error != "")
            self.last_error = text
            level = logging.INFO if is_passing else logging.WARNING
            if OUTAGES.is_lasting(self._config):  # the log says so, and when it is over
                level = logging.DEBUG
            log.log(level, "[%s] trying again: %s", self._group, text)
        pause = self._config.retry_backoff_ms / 1000 if error.retriable else REFUSED_SECONDS
        self._calls.wait(lambda: False, pause)


def _read_url(metadata: bytes) -> str:
    return str(_read(metadata).get("url", ""))


def _read_assignment(assignment: bytes) -> tuple[str, tuple[str, ...]]:
    document = _read(assignment)
    members = document.get("members", [])
    if not isinstance(members, list):
        raise RemoteProtocolError(f"read who is in the group: {assignment[:100]!r}")
    return str(document.get("leader_url", "")), tuple(map(str, members))


def _read(data: bytes) -> dict[str, Any]:
    try:
        document = parse_json(data)
    except ValueError as error:
        raise RemoteProtocolError(f"read what a worker says of itself: {data[:100]!r}") from error
    if not isinstance(document, dict):
        raise RemoteProtocolError(f"read what a worker says of itself: {data[:100]!r}")
    return document
