"""The settings of tasks are those that MirrorMaker 2 would write."""

from __future__ import annotations

import pytest

from sparkmirror.mirror.task_configs import (
    STALE_OFFSETS,
    assigned_groups,
    assigned_partitions,
    checkpoint_tasks,
    complete_settings,
    connector_settings,
    partitions_move,
    source_tasks,
    stale_offsets,
    with_stale_offsets,
)
from sparkmirror.types import TopicPartition


def test_a_task_that_copies_knows_its_partitions() -> None:
    heartbeats, *parts = (
        TopicPartition("heartbeats", 0),
        TopicPartition("ho-t1", 0),
        TopicPartition("ho-t1", 1),
    )
    assert source_tasks([[heartbeats, *parts]]) == [
        {"task.index": "0", "task.assigned.partitions": "heartbeats-0,ho-t1-0,ho-t1-1"}
    ]


def test_only_tasks_at_the_end_may_have_nothing_and_are_left_out() -> None:
    tasks = source_tasks([[], [TopicPartition("t", 0)], [], []])
    assert [task["task.assigned.partitions"] for task in tasks] == ["", "t-0"]
    assert source_tasks([]) == []


@pytest.mark.parametrize(
    ("groups", "tasks_max", "shares"),
    [
        ("", 3, []),
        ("a", 3, ["a"]),
        ("abcde", 2, ["a,b,c", "d,e"]),
        ("abcdefgh", 3, ["a,b,c", "d,e,f", "g,h"]),
        ("abc", 1, ["a,b,c"]),
    ],
)
def test_groups_are_shared_in_order(groups: str, tasks_max: int, shares: list[str]) -> None:
    tasks = checkpoint_tasks(list(groups), tasks_max)
    assert [task["task.assigned.groups"] for task in tasks] == shares
    assert [task["task.index"] for task in tasks] == [str(at) for at in range(len(shares))]


def test_a_task_has_all_that_its_connector_has() -> None:
    connector = {"name": "n", "topics": "${file:x:y}", "nothing": None}
    assert complete_settings(connector, "MirrorSourceTask", {"task.index": "0"}) == {
        "name": "n",
        "topics": "${file:x:y}",
        "task.class": "org.apache.kafka.connect.mirror.MirrorSourceTask",
        "task.index": "0",
    }


def test_partitions_are_read_back_as_they_were_assigned() -> None:
    assigned = [[TopicPartition("a-b", 10), TopicPartition("t", 0)], [TopicPartition("1-2", 3)]]
    assert [assigned_partitions(task) for task in source_tasks(assigned)] == assigned
    assert assigned_partitions({}) == []


@pytest.mark.parametrize(
    "text", ["t", "t-", "-1", "t-x", "t-0,u", "t--1-", "t-2147483648", "t-\u0661"]
)
def test_text_that_is_no_partition_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="which is no topic-partition"):
        assigned_partitions({"task.assigned.partitions": text})


@pytest.mark.parametrize("tasks_max", [1, 3])
def test_groups_are_read_back_as_they_were_assigned(tasks_max: int) -> None:
    groups = ["a", "a%b", "a,b", "a%2Cb", "a%252Cb", ",", "%25", "a-b c"]
    tasks = checkpoint_tasks(groups, tasks_max)
    assert assigned_groups(tasks) == tuple(groups)
    # Names without a comma are written as MirrorMaker 2 does.
    assert tasks[0]["task.assigned.groups"].startswith("a,a%b")


def test_a_task_has_the_settings_of_its_connector() -> None:
    connector = {"name": "c", "topics": "t"}
    for own in (source_tasks([[TopicPartition("t", 0)]])[0], checkpoint_tasks(["g"], 1)[0]):
        task = complete_settings(connector, "MirrorSourceTask", own)
        assert connector_settings(task) == connector


T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t-1", 1), TopicPartition("u", 0)


def test_a_task_knows_which_positions_of_its_partitions_are_of_deleted_topics() -> None:
    (task,) = source_tasks([[T0, T1]])
    extended = with_stale_offsets(task, {T1: 42, U0: 7})
    assert stale_offsets(extended) == {T1: 42}
    assert with_stale_offsets(task, {U0: 7}) == task
    assert stale_offsets(task) == {}
    assert STALE_OFFSETS not in connector_settings(extended)


@pytest.mark.parametrize(
    ("before", "now", "moves"),
    [
        ([[T0], [T1]], [[T0], [T1]], False),
        ([[T0], [T1]], [[T0, U0], [T1]], False),
        ([[T0], [T1]], [[T0]], False),
        ([], [[T0], [T1]], False),
        ([[T0, T1]], [[T0], [T1]], True),
        ([[T0], [T1]], [[T0, T1]], True),
    ],
)
def test_a_partition_that_another_task_gets_moves(
    before: list[list[TopicPartition]], now: list[list[TopicPartition]], moves: bool
) -> None:
    assert partitions_move(source_tasks(before), source_tasks(now)) == moves
