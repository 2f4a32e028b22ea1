"""Partitions to tasks: MirrorMaker 2's round robin, and assignments that stay where they are."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.mirror.assignment import assign_partitions, extend_assignment
from sparkmirror.types import TopicPartition


def partitions(text: str) -> list[TopicPartition]:
    """Read `t0-0,t0-3`, the spelling of task configs."""
    names = (item.rpartition("-") for item in text.split(",") if item)
    return [TopicPartition(topic, int(number)) for topic, _, number in names]


def spelled(assignment: list[list[TopicPartition]]) -> list[str]:
    return [",".join(map(str, task)) for task in assignment]


PUBLISHED = [TopicPartition(t, p) for t, n in (("t0", 8), ("t1", 2), ("t2", 2)) for p in range(n)]


@pytest.mark.parametrize(
    ("wanted", "tasks_max", "expected"),
    [
        pytest.param(
            PUBLISHED,
            3,
            ["t0-0,t0-3,t0-6,t1-1", "t0-1,t0-4,t0-7,t2-0", "t0-2,t0-5,t1-0,t2-1"],
            id="MirrorSourceConnectorTest",
        ),
        pytest.param(partitions("t-0,t-1,t-2"), 4, ["t-0", "t-1", "t-2"], id="fewer than tasks"),
        pytest.param(partitions("t-0,t-1"), 1, ["t-0,t-1"], id="one task"),
        pytest.param([], 3, [], id="nothing to copy"),
    ],
)
def test_assign_deals_partitions_in_turn(
    wanted: list[TopicPartition], tasks_max: int, expected: list[str]
) -> None:
    assert spelled(assign_partitions(wanted, tasks_max)) == expected


@pytest.mark.parametrize(
    ("current", "wanted", "tasks_max", "expected"),
    [
        pytest.param(["a-0", "a-1"], "a-0,a-1", 2, ["a-0", "a-1"], id="no change"),
        pytest.param(["a-0", "a-1"], "a-1,a-0", 2, ["a-0", "a-1"], id="order of wanted is nothing"),
        pytest.param(["a-0", "a-1"], "a-0,a-1,b-0", 3, ["a-0", "a-1", "b-0"], id="new task"),
        pytest.param(["a-0", "a-1"], "a-0,a-1,b-0", 2, ["a-0,b-0", "a-1"], id="lowest on a tie"),
        pytest.param(["a-0,a-1", "a-2"], "a-0,a-1,a-2,b-0", 2, ["a-0,a-1", "a-2,b-0"], id="least"),
        pytest.param(["a-0", "b-0"], "a-0", 2, ["a-0"], id="last task vanishes"),
        pytest.param(["a-0", "b-0"], "b-0", 2, ["", "b-0"], id="first task keeps its number"),
        pytest.param(["a-0", "b-0"], "b-0,c-0", 2, ["c-0", "b-0"], id="empty task is used first"),
        pytest.param(["a-0", "b-0"], "b-0,c-0", 3, ["c-0", "b-0"], id="before a new one"),
        pytest.param(["a-0", "b-0"], "", 2, [], id="nothing left"),
        pytest.param(["a-0", "a-1", "a-2"], "a-0,a-1,a-2", 2, ["a-0,a-2", "a-1"], id="fewer tasks"),
        pytest.param([], "a-0,a-1,a-2", 2, ["a-0,a-2", "a-1"], id="first assignment"),
        pytest.param(["a-0", "a-0,a-1"], "a-0,a-1", 2, ["a-0", "a-1"], id="named twice"),
    ],
)
def test_extend_moves_no_partition(
    current: list[str], wanted: str, tasks_max: int, expected: list[str]
) -> None:
    result = extend_assignment([partitions(t) for t in current], partitions(wanted), tasks_max)
    assert spelled(result) == expected


topic_partitions = st.builds(TopicPartition, st.sampled_from("abcd"), st.integers(0, 15))
partition_lists = st.lists(topic_partitions, unique=True, max_size=40)
task_limits = st.integers(1, 8)
repeatable = settings(derandomize=True, deadline=None)


@repeatable
@given(partition_lists, task_limits)
def test_assign_places_each_once_and_evenly(wanted: list[TopicPartition], tasks_max: int) -> None:
    tasks = assign_partitions(wanted, tasks_max)
    assert sorted(p for task in tasks for p in task) == sorted(wanted)
    assert len(tasks) == min(tasks_max, len(wanted))
    loads = [len(task) for task in tasks] or [0]
    assert max(loads) - min(loads) <= 1


@repeatable
@given(partition_lists, task_limits)
def test_extending_nothing_is_the_first_assignment(
    wanted: list[TopicPartition], tasks_max: int
) -> None:
    assert extend_assignment([], wanted, tasks_max) == assign_partitions(wanted, tasks_max)


@repeatable
@given(st.lists(partition_lists, min_size=2, max_size=5), task_limits, st.integers(0, 4))
def test_extend_never_moves_a_partition_that_stays(
    rounds: list[list[TopicPartition]], tasks_max: int, more_tasks: int
) -> None:
    current = assign_partitions(rounds[0], tasks_max)
    for wanted in rounds[1:]:
        limit = tasks_max + more_tasks
        extended = extend_assignment(current, wanted, limit)
        before = {p: number for number, task in enumerate(current) for p in task}
        after = {p: number for number, task in enumerate(extended) for p in task}
        assert sorted(p for task in extended for p in task) == sorted(wanted)
        assert {p: after[p] for p in before if p in after} == {
            p: number for p, number in before.items() if p in wanted
        }
        assert len(extended) <= limit
        assert not extended or extended[-1]
        current = extended


@repeatable
@given(partition_lists, partition_lists, task_limits)
def test_extend_puts_new_partitions_where_there_is_least(
    first: list[TopicPartition], second: list[TopicPartition], tasks_max: int
) -> None:
    current = assign_partitions(first, tasks_max)
    both = list(dict.fromkeys(first + second))
    loads = [len(task) for task in extend_assignment(current, both, tasks_max)] or [0]
    assert max(loads) - min(loads) <= 1
    assert len(loads) == max(1, min(tasks_max, len(both)))


@repeatable
@given(partition_lists, task_limits, task_limits)
def test_extend_within_fewer_tasks_still_copies_everything(
    wanted: list[TopicPartition], tasks_max: int, fewer: int
) -> None:
    tasks = extend_assignment(assign_partitions(wanted, tasks_max), wanted, fewer)
    assert sorted(p for task in tasks for p in task) == sorted(wanted)
    assert len(tasks) <= fewer
