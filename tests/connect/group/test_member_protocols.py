"""What members say to their leader, and what it assigns to them."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from sparkmirror.connect.group.connect_protocol import (
    Assignment,
    MemberState,
    decode_assignment,
    decode_member_state,
    encode_member_state,
)
from sparkmirror.connect.group.member_protocols import ALL_SLOTS, WorkSharing
from sparkmirror.connect.runtime.worker import SLOTS
from sparkmirror.errors import RemoteProtocolError
from tests.sharing_workers import tasks_of

X, Y = tasks_of("x", 2), tasks_of("y", 1)


def describing(state: MemberState) -> WorkSharing:
    return WorkSharing("u", lambda: state, None)


def test_a_worker_without_callbacks_has_no_tasks_and_gives_none() -> None:
    sharing = WorkSharing("u", None, None)
    state = sharing.describe(None, draining=False)
    assert state == MemberState("u", -1, ALL_SLOTS)
    assert SLOTS == ALL_SLOTS
    told = sharing.assign({"m": encode_member_state(MemberState("v", 3, 1, X))})
    assert sharing.read(told["m"]) == Assignment("u", ("v",))


def test_what_was_assigned_is_ours_though_it_does_not_run_yet() -> None:
    sharing = describing(MemberState("", 3, 8, X))
    state = sharing.describe(Assignment(tasks=Y, revoked=tasks_of("z", 1)), draining=False)
    assert state == MemberState("u", 3, 8, X | Y)


def test_a_member_drains_when_asked_to_and_when_it_says_so_itself() -> None:
    assert describing(MemberState("")).describe(None, draining=True).draining
    assert describing(MemberState("", draining=True)).describe(None, draining=False).draining


def test_a_member_has_tasks_until_all_have_ended() -> None:
    assert describing(MemberState("", tasks=X)).has_tasks()
    assert not describing(MemberState("")).has_tasks()


def test_the_leader_sends_each_member_what_was_planned_for_it() -> None:
    seen: dict[str, MemberState] = {}

    def plan(members: Mapping[str, MemberState]) -> Mapping[str, Assignment]:
        seen.update(members)
        return {"m1": Assignment(config_offset=4, tasks=X, follow_up=True)}

    states = {"m1": MemberState("b", 3, 8, X), "m2": MemberState("a", 4, 8, Y)}
    told = WorkSharing("b", None, plan).assign(
        {name: encode_member_state(state) for name, state in states.items()}
    )
    assert seen == states
    urls = ("a", "b")
    assert decode_assignment(told["m1"]) == Assignment("b", urls, 4, X, follow_up=True)
    assert decode_assignment(told["m2"]) == Assignment("b", urls)


def test_a_member_that_cannot_be_read_stops_the_plan() -> None:
    """It may run anything, so nothing can be given to the others."""
    good = encode_member_state(MemberState("a"))
    with pytest.raises(RemoteProtocolError):
        WorkSharing("u", None, None).assign({"m1": good, "m2": json.dumps({"url": "b"}).encode()})


def test_the_same_state_is_the_same_bytes() -> None:
    """A coordinator starts no rebalance for a follower that joins again with the same bytes."""
    sharing = describing(MemberState("", 3, 8, tasks_of("x", 20)))
    one, two = (sharing.encode(sharing.describe(None, draining=False)) for _ in range(2))
    assert one == two
    assert decode_member_state(one).tasks == tasks_of("x", 20)
