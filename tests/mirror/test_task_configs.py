"""The settings of tasks are those that MirrorMaker 2 would write."""

from __future__ import annotations

import pytest

from sparkmirror.mirror.task_configs import checkpoint_tasks, complete_settings, source_tasks
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
