"""Which worker runs which task: rules as tables, and what must hold for any group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.connect.group.assignor import Assignment, MemberState, assign
from sparkmirror.types import ConnectorTaskId

Group = dict[str, MemberState]
Tasks = frozenset[ConnectorTaskId]


def ids(names: str) -> Tasks:
    """ "x0 y1" as task ids."""
    return frozenset(ConnectorTaskId(name[0], int(name[1:])) for name in names.split())


def worker(
    tasks: str = "", slots: int = 256, offset: int = 7, *, draining: bool = False
) -> MemberState:
    return MemberState("u", offset, slots, ids(tasks), draining)


def plan(
    members: Mapping[str, MemberState],
    configured: str,
    last: Mapping[str, Assignment] | None = None,
    offset: int = 7,
) -> dict[str, Assignment]:
    return assign(members, ids(configured), last or {}, config_offset=offset)


def given_to(found: Mapping[str, Assignment]) -> dict[str, Tasks]:
    return {name: each.tasks for name, each in found.items()}


def test_new_tasks_go_to_the_member_with_the_fewest() -> None:
    found = plan({"a": worker("x0 x1"), "b": worker("x2")}, "x0 x1 x2 x3 x4 x5")
    assert given_to(found) == {"a": ids("x0 x1 x4"), "b": ids("x2 x3 x5")}
    assert not any(each.revoked or each.follow_up for each in found.values())
    assert {each.config_offset for each in found.values()} == {7}


def test_a_member_that_joins_gets_the_surplus_only_when_its_owner_has_ended_it() -> None:
    first = plan({"a": worker("x0 x1 x2 x3"), "b": worker()}, "x0 x1 x2 x3")
    assert given_to(first) == {"a": ids("x0 x1"), "b": ids("")}
    assert (first["a"].revoked, first["b"].revoked) == (ids("x2 x3"), ids(""))
    assert all(each.follow_up for each in first.values())
    # The same comes out as long as it is still ending them.
    assert plan({"a": worker("x0 x1 x2 x3"), "b": worker()}, "x0 x1 x2 x3", first) == first
    second = plan({"a": worker("x0 x1"), "b": worker()}, "x0 x1 x2 x3", first)
    assert given_to(second) == {"a": ids("x0 x1"), "b": ids("x2 x3")}
    assert not any(each.revoked or each.follow_up for each in second.values())


def test_what_is_not_configured_any_more_ends_without_another_round() -> None:
    found = plan({"a": worker("x0 y0"), "b": worker("x1")}, "x0 x1")
    assert given_to(found) == {"a": ids("x0"), "b": ids("x1")}
    assert (found["a"].revoked, found["a"].follow_up) == (ids("y0"), False)


@pytest.mark.parametrize("idle", [worker("x0", draining=True), worker("x0", slots=0)])
def test_a_member_that_drains_or_has_no_slots_gives_all_away(idle: MemberState) -> None:
    members = {"a": idle, "b": worker("x1")}
    first = plan(members, "x0 x1 x2")
    assert given_to(first) == {"a": ids(""), "b": ids("x1 x2")}
    assert (first["a"].revoked, first["a"].follow_up) == (ids("x0"), True)
    second = plan(members | {"a": replace(idle, tasks=frozenset())}, "x0 x1 x2", first)
    assert given_to(second) == {"a": ids(""), "b": ids("x0 x1 x2")}


def test_no_member_gets_more_than_its_slots_while_others_have_some() -> None:
    found = plan({"a": worker(slots=1), "b": worker(slots=5)}, "x0 x1 x2 x3")
    assert [len(each.tasks) for each in found.values()] == [1, 3]
    assert not any(each.follow_up for each in found.values())


@pytest.mark.parametrize(
    ("slots", "shares"), [((1, 2), [2, 3]), ((0, 2), [0, 5]), ((0, 0), [3, 2])]
)
def test_tasks_beyond_all_slots_wait_where_there_are_some(
    slots: tuple[int, int], shares: list[int]
) -> None:
    members = {"a": worker(slots=slots[0]), "b": worker(slots=slots[1])}
    found = plan(members, "x0 x1 x2 x3 x4")
    assert [len(each.tasks) for each in found.values()] == shares
    assert plan(after(members, found), "x0 x1 x2 x3 x4", found) == found


def test_of_two_owners_the_one_that_was_assigned_the_task_keeps_it() -> None:
    members = {"a": worker("x0"), "b": worker("x0")}
    found = plan(members, "x0", {"b": Assignment(tasks=ids("x0"))})
    assert given_to(found) == {"a": ids(""), "b": ids("x0")}
    assert found["a"].revoked == ids("x0")


def test_two_owners_that_a_new_leader_cannot_tell_apart_both_end_the_task() -> None:
    found = plan({"a": worker("x0"), "b": worker("x0")}, "x0")
    assert given_to(found) == {"a": ids(""), "b": ids("")}
    assert [each.revoked for each in found.values()] == [ids("x0"), ids("x0")]
    assert found["a"].follow_up


def test_a_leader_that_has_read_less_than_a_member_moves_nothing() -> None:
    members = {"a": worker("x0 x1 y0"), "b": worker("x2", offset=9)}
    found = plan(members, "x0 x1 x2 x3")
    assert given_to(found) == {"a": ids("x0 x1 y0"), "b": ids("x2")}
    assert all(each.follow_up and not each.revoked for each in found.values())
    assert given_to(plan(members, "x0 x1 x2 x3", offset=9)) == {
        "a": ids("x0 x1"),
        "b": ids("x2 x3"),
    }


def test_tasks_that_copy_are_shared_first_and_others_go_where_fewer_copy() -> None:
    members = {"a": worker(), "b": worker()}
    found = assign(members, ids("c0 x0 x1 x2"), {}, config_offset=7, copying=ids("x0 x1 x2"))
    assert given_to(found) == {"a": ids("x0 x2"), "b": ids("c0 x1")}


def test_a_worker_without_a_slot_to_spare_still_gets_tasks_that_need_none() -> None:
    members = {"a": worker("x0", slots=1), "b": worker("x1", slots=1)}
    found = assign(members, ids("c0 h0 x0 x1"), {}, config_offset=7, copying=ids("x0 x1"))
    assert given_to(found) == {"a": ids("c0 x0"), "b": ids("h0 x1")}


def test_each_connectors_tasks_are_spread_when_it_comes_and_when_a_member_joins() -> None:
    found = plan({"a": worker("x0 x2"), "b": worker("x1 x3")}, "x0 x1 x2 x3 y0 y1")
    assert given_to(found) == {"a": ids("x0 x2 y0"), "b": ids("x1 x3 y1")}
    found = plan({"a": worker("x0 x1 y0 y1"), "b": worker()}, "x0 x1 y0 y1")
    assert found["a"].revoked == ids("x1 y1")


# -- what must hold for any group ------------------------------------------------------------------

task_ids = st.builds(ConnectorTaskId, st.sampled_from("xyz"), st.integers(0, 7))
states = st.builds(
    MemberState,
    url=st.just("u"),
    config_offset=st.just(7),
    slots=st.one_of(st.integers(0, 6), st.just(256)),
    tasks=st.frozensets(task_ids, max_size=12),
    draining=st.booleans(),
)
# Two may say that they own one task, and assignments of the past may say anything.
groups = st.dictionaries(st.sampled_from("abcde"), states, min_size=1)
configurations = st.frozensets(task_ids, max_size=20)
pasts = st.dictionaries(
    st.sampled_from("abcde"), st.builds(Assignment, tasks=st.frozensets(task_ids))
)


def after(members: Group, found: Mapping[str, Assignment]) -> Group:
    """The same members when each has done what it was assigned."""
    return {name: replace(each, tasks=found[name].tasks) for name, each in members.items()}


def limit(member: MemberState) -> int:
    return 0 if member.draining else member.slots


def room(members: Group) -> int:
    return sum(limit(each) for each in members.values())


def times_given(found: Mapping[str, Assignment]) -> Counter[ConnectorTaskId]:
    return Counter(task for each in found.values() for task in each.tasks)


def owners(members: Iterable[MemberState], task: ConnectorTaskId) -> int:
    return sum(task in each.tasks for each in members)


@given(groups, configurations, pasts)
def test_no_task_has_two_owners_nor_moves_while_it_has_one(
    members: Group, configured: Tasks, last: dict[str, Assignment]
) -> None:
    found = assign(members, configured, last, config_offset=7)
    assert found.keys() == members.keys()
    assert all(times == 1 for times in times_given(found).values())
    for name, each in found.items():
        before = members[name].tasks
        assert each.tasks <= configured
        if len(configured) <= room(members):
            assert len(each.tasks) <= limit(members[name])
        assert each.tasks == frozenset() or not members[name].draining
        assert each.revoked == before - each.tasks
        assert not any(owners(members.values(), task) for task in each.tasks - before)


@given(groups, configurations, pasts)
def test_two_rounds_make_all_equal_and_a_third_moves_nothing(
    members: Group, configured: Tasks, last: dict[str, Assignment]
) -> None:
    first = assign(members, configured, last, config_offset=7)
    again = after(members, first)
    second = assign(again, configured, first, config_offset=7)
    loads = {name: len(each.tasks) for name, each in second.items()}
    staying = [each for each in members.values() if not each.draining]
    assert sum(loads.values()) == (len(configured) if staying else 0)
    fullest = max(loads.values())
    for name, member in members.items():
        assert loads[name] >= min(limit(member), fullest - 1)
    assert not any(each.revoked or each.follow_up for each in second.values())
    settled = after(members, second)
    assert assign(settled, configured, second, config_offset=7) == second
    assert assign(settled, configured, {}, config_offset=7) == second  # under a new leader


@given(groups, configurations, configurations, pasts)
def test_both_kinds_of_tasks_are_equal_after_two_rounds(
    members: Group, copying: Tasks, others: Tasks, last: dict[str, Assignment]
) -> None:
    configured, others = copying | others, others - copying
    first = assign(members, configured, last, config_offset=7, copying=copying)
    assert all(times == 1 for times in times_given(first).values())
    again = after(members, first)
    second = assign(again, configured, first, config_offset=7, copying=copying)
    settled = after(members, second)
    assert assign(settled, configured, {}, config_offset=7, copying=copying) == second
    if any(limit(member) for member in members.values()):
        loads = [len(each.tasks & others) for name, each in second.items() if limit(members[name])]
        assert max(loads) - min(loads) <= 1
        assert sum(loads) == len(others)


@given(groups, configurations, st.integers(0, 6))
def test_what_a_leader_knows_too_little_of_stays_where_it_is(
    members: Group, configured: Tasks, offset: int
) -> None:
    found = assign(members, configured, {}, config_offset=offset)
    for name, each in found.items():
        assert each.follow_up
        assert each.tasks == {
            task for task in members[name].tasks if owners(members.values(), task) == 1
        }
