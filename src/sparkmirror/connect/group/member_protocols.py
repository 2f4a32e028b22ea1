"""What members of a group report to their leader, and what it assigns to them.

Runs on: worker, on the member's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sparkmirror.connect.group.connect_protocol import (
    Assignment,
    MemberState,
    decode_assignment,
    decode_member_state,
    encode_assignment,
    encode_member_state,
)

Describe = Callable[[], MemberState]
"""Returns what this worker runs now; called at each join, on the member's thread."""
PlanAssignments = Callable[[Mapping[str, MemberState]], Mapping[str, Assignment]]
"""Returns each member's assignment, by id. Called on the leader, on its member's thread."""

# The same as in local mode (sparkmirror.connect.runtime.worker).
ALL_SLOTS = 256


class WorkSharing:
    """The bytes of JoinGroup and SyncGroup. RemoteProtocolError: other members' are malformed."""

    def __init__(
        self, own_url: str, describe: Describe | None, plan: PlanAssignments | None
    ) -> None:
        self._own_url = own_url
        self._describe = describe or self._nothing
        self._plan = plan

    def describe(self, assigned: Assignment | None, *, draining: bool) -> MemberState:
        """Includes tasks assigned to us: they may be about to start, so no other may get them."""
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

    def read(self, data: bytes) -> Assignment:
        return decode_assignment(data)

    def has_tasks(self) -> bool:
        return bool(self._describe().tasks)

    def _nothing(self) -> MemberState:
        return MemberState(self._own_url, slots=ALL_SLOTS)
