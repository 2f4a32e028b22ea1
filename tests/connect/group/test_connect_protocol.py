"""What workers write to each other when they join: the bytes, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.connect.group.connect_protocol import (
    Assignment,
    MemberState,
    decode_assignment,
    decode_member_state,
    encode_assignment,
    encode_member_state,
)
from sparkmirror.errors import RemoteProtocolError
from sparkmirror.types import ConnectorTaskId

STATE = {
    "version": 1,
    "url": "http://one:8083",
    "config_offset": 12,
    "slots": 256,
    "tasks": ["a->b.x-0", "a->b.x-10"],
    "draining": False,
    "missing": {"x": ["a.t", "a.u"]},
}
ASSIGNMENT = {
    "version": 1,
    "leader_url": "http://one:8083",
    "members": ["http://one:8083", "http://two:8083"],
    "config_offset": 12,
    "tasks": ["x-0"],
    "revoked": ["x-1", "x-2"],
    "follow_up": True,
}


def x(*tasks: int, connector: str = "x") -> frozenset[ConnectorTaskId]:
    return frozenset(ConnectorTaskId(connector, task) for task in tasks)


def test_the_bytes() -> None:
    missing = {"x": ("a.t", "a.u")}
    tasks = x(10, 0, connector="a->b.x")
    state = MemberState("http://one:8083", 12, 256, tasks, missing=missing)
    assert encode_member_state(state) == json.dumps(STATE, separators=(",", ":")).encode()
    urls = ("http://one:8083", "http://two:8083")
    assignment = Assignment(urls[0], urls, 12, x(0), x(2, 1), follow_up=True)
    assert encode_assignment(assignment) == json.dumps(ASSIGNMENT, separators=(",", ":")).encode()


def test_fields_of_later_releases_are_ignored() -> None:
    assert decode_member_state(json.dumps(STATE | {"rack": "r"}).encode()).slots == 256
    assert decode_assignment(json.dumps(ASSIGNMENT | {"delay": 5}).encode()).follow_up


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"version": "1"},
        {"url": None},
        {"config_offset": 1.5},
        {"slots": True},
        {"tasks": {"x-0": 1}},
        {"tasks": ["x-0", 1]},
        {"tasks": ["x"]},
        {"tasks": ["x-"]},
        {"tasks": ["x-007"]},
        {"tasks": ["x-\u0663"]},  # a digit, and none of a task
        {"tasks": ["x-" + "9" * 5000]},
        {"draining": 0},
        {"missing": []},
        {"missing": {"x": "a.t"}},
        {"missing": {"x": [1]}},
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any]) -> None:
    with pytest.raises(RemoteProtocolError, match="what a worker says of itself"):
        decode_member_state(json.dumps(STATE | change).encode())


@pytest.mark.parametrize("field", STATE)
def test_a_missing_field_is_named(field: str) -> None:
    document = {name: value for name, value in STATE.items() if name != field}
    with pytest.raises(RemoteProtocolError, match=f"'{field}' is no "):
        decode_member_state(json.dumps(document).encode())


@pytest.mark.parametrize("field", ASSIGNMENT)
def test_a_missing_field_of_an_assignment_is_named(field: str) -> None:
    document = {name: value for name, value in ASSIGNMENT.items() if name != field}
    with pytest.raises(RemoteProtocolError, match=f"'{field}' is no "):
        decode_assignment(json.dumps(document).encode())


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[]", b"1", b"null", b"{", b"[" * 100_000])
def test_what_is_no_json_object_is_refused(data: bytes) -> None:
    for decode in (decode_member_state, decode_assignment):
        with pytest.raises(RemoteProtocolError, match="no JSON"):
            decode(data)


names = st.text(max_size=8)
tasks = st.frozensets(st.builds(ConnectorTaskId, names, st.integers(0, 2**31 - 1)), max_size=4)


@given(st.builds(MemberState, names, st.integers(-1), st.integers(0), tasks, st.booleans()))
def test_a_state_is_read_as_it_was_written(state: MemberState) -> None:
    assert decode_member_state(encode_member_state(state)) == state


@given(
    st.builds(
        Assignment,
        names,
        st.lists(names, max_size=3).map(tuple),
        st.integers(-1),
        tasks,
        tasks,
        st.booleans(),
    )
)
def test_an_assignment_is_read_as_it_was_written(assignment: Assignment) -> None:
    assert decode_assignment(encode_assignment(assignment)) == assignment
