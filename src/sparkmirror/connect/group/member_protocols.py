"""What members of a group tell their leader, and what it tells them: two protocols.

Runs on: worker, on the member's thread. Workers of a Connect cluster share its tasks
(`WorkSharing`). In dedicated mode the leader runs all of a flow, and the others stand by
(`StandBy`). The two never share a group: their names differ, so the coordinator refuses the second.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sparkmirror.connect.group.connect_protocol import (
    Assignment,
    MemberState,
    decode_assignment,
    decode_member_state,
    encode_assignment,
    encode_member_state,
)
from sparkmirror.errors import RemoteProtocolError
from sparkmirror.foreign_json import parse_json

Describe = Callable[[], MemberState]
"""What this worker runs now; called at each join, on the member's thread."""
PlanAssignments = Callable[[Mapping[str, MemberState]], Mapping[str, Assignment]]
"""By member id: what each of them shall run. Called on the leader, on its member's thread."""

# As sparkmirror.connect.runtime.worker has them in local mode.
ALL_SLOTS = 256


@dataclass(frozen=True, slots=True)
class Told:
    """What the leader has told a member; `assignment` is None where it runs all itself."""

    leader_url: str
    members: tuple[str, ...]
    assignment: Assignment | None = None


class MemberProtocol(Protocol):
    """The bytes of a join and of a sync. RemoteProtocolError says what is wrong with others'."""

    def describe(self, assigned: Assignment | None, *, draining: bool) -> MemberState:
        """What the leader shall know of us; `assigned` is what it has told us last."""

    def encode(self, state: MemberState) -> bytes:
        """As it goes into our join."""

    def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """As the leader: by member id, what each is told."""

    def read(self, data: bytes) -> Told:
        """What we are told."""

    def has_tasks(self) -> bool:
        """Whether anything that was assigned to us still runs here."""


class WorkSharing:
    """Tasks are assigned to all members."""

    def __init__(
        self, own_url: str, describe: Describe | None, plan: PlanAssignments | None
    ) -> None:
        self._own_url = own_url
        self._describe = describe or self._nothing
        self._plan = plan

    def describe(self, assigned: Assignment | None, *, draining: bool) -> MemberState:
        """What is assigned to us may be about to start, so no other may get it either."""
        state = self._describe()
        tasks = state.tasks if assigned is None else state.tasks | assigned.tasks
        draining = draining or state.draining
        return replace(state, url=self._own_url, tasks=tasks, draining=draining)

    def encode(self, state: MemberState) -> bytes:
        return encode_member_state(state)

    def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        states = {name: decode_member_state(data) for name, data in members.items()}
        found = self._plan(states) if self._plan is not None else {}
        urls = tuple(sorted(state.url for state in states.values()))
        return {
            name: encode_assignment(
                replace(found.get(name, Assignment()), leader_url=self._own_url, members=urls)
            )
            for name in members
        }

    def read(self, data: bytes) -> Told:
        assignment = decode_assignment(data)
        return Told(assignment.leader_url, assignment.members, assignment)

    def has_tasks(self) -> bool:
        return bool(self._describe().tasks)

    def _nothing(self) -> MemberState:
        return MemberState(self._own_url, slots=ALL_SLOTS)


class StandBy:
    """All members are told who leads, and nothing else."""

    def __init__(self, own_url: str) -> None:
        self._own_url = own_url

    def describe(self, assigned: Assignment | None, *, draining: bool) -> MemberState:
        del assigned, draining
        return MemberState(self._own_url)

    def encode(self, state: MemberState) -> bytes:
        return json.dumps({"version": 0, "url": state.url}).encode()

    def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        urls = sorted(str(_read(metadata).get("url", "")) for metadata in members.values())
        document = {"version": 0, "leader_url": self._own_url, "members": urls}
        return dict.fromkeys(members, json.dumps(document).encode())

    def read(self, data: bytes) -> Told:
        document = _read(data)
        members = document.get("members", [])
        if not isinstance(members, list):
            raise RemoteProtocolError(f"read who is in the group: {data[:100]!r}")
        return Told(str(document.get("leader_url", "")), tuple(map(str, members)))

    def has_tasks(self) -> bool:
        """Whoever leads has stopped all before it leaves."""
        return False


def _read(data: bytes) -> dict[str, Any]:
    try:
        document = parse_json(data)
    except ValueError as error:
        raise RemoteProtocolError(f"read what a worker says of itself: {data[:100]!r}") from error
    if not isinstance(document, dict):
        raise RemoteProtocolError(f"read what a worker says of itself: {data[:100]!r}")
    return document
