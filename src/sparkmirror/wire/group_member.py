"""A member of a classic group: its requests, and the coordinator that serves them.

Runs on: worker, on the thread of the member's owner. It keeps the member's identity; when to
join and what that means is decided above.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparkmirror.errors import KafkaError
from sparkmirror.mirror.permissions import Operation, group_permission
from sparkmirror.wire.access import response_error
from sparkmirror.wire.client.blocking_client import BlockingClient, PendingRequest
from sparkmirror.wire.protocol.api_versions import (
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    SYNC_GROUP,
    Api,
)
from sparkmirror.wire.protocol.error_codes import (
    ILLEGAL_GENERATION,
    MEMBER_ID_REQUIRED,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    error_code,
)
from sparkmirror.wire.protocol.group_messages import (
    GROUP,
    Joined,
    decode_code,
    decode_join,
    decode_sync,
    encode_heartbeat,
    encode_join,
    encode_leave,
    encode_sync,
)

# The response to a join comes late, and what follows on its connection waits.
SIDE_CONNECTION = 1
# Beyond the rebalance timeout, as Java's client waits.
# A response that takes longer will not come: behind a firewall that forgot the connection, only a
# new one helps.
MOST_PATIENCE_SECONDS = 3.0
JOIN_EXTRA_SECONDS = 5.0


class RejoinError(KafkaError):
    """Join again, at once: the group has changed, or gave us another id."""

    retriable = True


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The group, our protocol in it, and its times."""

    group: str
    protocol_type: str
    protocol: str
    session_timeout_ms: int
    rebalance_timeout_ms: int

    @property
    def session_seconds(self) -> float:
        return self.session_timeout_ms / 1000

    @property
    def rebalance_seconds(self) -> float:
        return self.rebalance_timeout_ms / 1000


class GroupMember:
    """Our place in a group. All methods raise KafkaError; RejoinError asks for a join."""

    def __init__(self, calls: BlockingClient, alias: str, settings: GroupSettings) -> None:
        self.member_id = ""
        self.generation = -1
        self._calls = calls
        self._alias = alias
        self._settings = settings
        self._coordinator: int | None = None
        self._patience_seconds = min(max(1.0, settings.session_seconds / 3), MOST_PATIENCE_SECONDS)

    def move_to(self, calls: BlockingClient) -> None:
        """Use other connections from now on."""
        self._calls = calls
        self._coordinator = None

    def begin_join(self, metadata: bytes) -> PendingRequest:
        """Ask for a place in the next generation; the response comes when all others asked too.

        `metadata` is for the leader.
        """
        settings = self._settings
        protocol = (settings.protocol_type, settings.protocol, metadata)
        body = encode_join(
            settings.group,
            self.member_id,
            protocol,
            settings.session_timeout_ms,
            settings.rebalance_timeout_ms,
        )
        seconds = settings.rebalance_seconds + JOIN_EXTRA_SECONDS
        return self._send(JOIN_GROUP, body, seconds)

    def end_join(self, call: PendingRequest) -> Joined:
        """Take the place in the response."""
        joined = decode_join(self._result(call))
        if joined.code == MEMBER_ID_REQUIRED:  # the id comes first (KIP-394); then join with it
            self.member_id = joined.member
        self._check("join", joined.code)
        self.member_id, self.generation = joined.member, joined.generation
        return joined

    def begin_sync(self, assignments: Mapping[str, bytes]) -> PendingRequest:
        """Send the assignments, if we lead; the response comes when the leader has sent them."""
        body = encode_sync(self._settings.group, self.generation, self.member_id, assignments)
        return self._send(SYNC_GROUP, body, self._settings.session_seconds + JOIN_EXTRA_SECONDS)

    def end_sync(self, call: PendingRequest) -> bytes:
        """Our assignment, from the leader."""
        code, assignment = decode_sync(self._result(call))
        self._check("sync", code)
        return assignment

    def heartbeat_beside(self, call: PendingRequest) -> tuple[float, int] | None:
        """While a join or sync is under way: when it was sent, and the error code of the response.

        None when the response to the other comes first. Without either, the coordinator is
        given up.
        """
        beat = self._send_heartbeat(SIDE_CONNECTION)
        if not self._calls.wait(lambda: beat.is_over or call.is_over, self._patience_seconds):
            self._coordinator = None
            raise self._calls.too_late(self._name("heartbeat"), self._patience_seconds)
        if not beat.is_over:
            return None
        return beat.sent_at, decode_code(self._result(beat))

    def heartbeat(self) -> float:
        """Send a heartbeat; return when it was sent."""
        call = self._send_heartbeat(0)
        self._await("heartbeat", call, self._patience_seconds)
        self._check("heartbeat", decode_code(self._result(call)))
        return call.sent_at

    def leave(self) -> None:
        """Leave, so that the others need not wait for our session timeout."""
        body = encode_leave(self._settings.group, self.member_id)
        call = self._send(LEAVE_GROUP, body, self._patience_seconds)
        self._await("leave", call, self._patience_seconds)
        self._check("leave", decode_code(self._result(call)))

    # -- inside ------------------------------------------------------------------------------------

    def _send_heartbeat(self, connection_index: int) -> PendingRequest:
        body = encode_heartbeat(self._settings.group, self.generation, self.member_id)
        return self._send(HEARTBEAT, body, self._patience_seconds, connection_index)

    def _send(
        self, api: Api, body: bytes, seconds: float, connection_index: int = 0
    ) -> PendingRequest:
        try:
            return self._calls.send(self._find(), api, [body], seconds, connection_index)
        except KafkaError:
            # A frozen broker is not reached; by now the group may have another coordinator.
            self._coordinator = None
            raise

    def _find(self) -> int:
        if self._coordinator is None:
            self._coordinator = self._calls.find_coordinator(
                self._settings.group, GROUP, self._patience_seconds
            )
        return self._coordinator

    def _await(self, what: str, call: PendingRequest, seconds: float) -> None:
        if not self._calls.wait(lambda: call.is_over, seconds):
            self._coordinator = None
            raise self._calls.too_late(self._name(what), seconds)

    def _result(self, call: PendingRequest) -> memoryview:
        try:
            return call.result()
        except KafkaError:
            self._coordinator = None
            raise

    def _check(self, what: str, code: int) -> None:
        if code == 0:
            return
        if error_code(code).refresh:
            self._coordinator = None
        if code == UNKNOWN_MEMBER_ID:
            self.member_id, self.generation = "", -1
        if code in (
            UNKNOWN_MEMBER_ID,
            ILLEGAL_GENERATION,
            REBALANCE_IN_PROGRESS,
            MEMBER_ID_REQUIRED,
        ):
            raise RejoinError(f"{self._name(what)}: {error_code(code).name}")
        needed = group_permission(Operation.READ, self._settings.group)
        raise response_error(self._calls.config, self._name(what), code, needed)

    def _name(self, what: str) -> str:
        return f"{what} group '{self._settings.group}' on '{self._alias}'"
