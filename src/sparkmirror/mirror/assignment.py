"""Which task of a source connector copies which partition.

Runs on: worker. Mirrors: MirrorSourceConnector.taskConfigs (4.4) for the first assignment. Later
ones differ on purpose: MirrorMaker 2 reassigns all partitions at every change, so all tasks
restart; here partitions stay with their tasks, so a new topic does not disturb the others.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from sparkmirror.types import TopicPartition

PartitionAssignment = list[list[TopicPartition]]
"""Partitions by task number."""


def assign_partitions(partitions: Sequence[TopicPartition], tasks_max: int) -> PartitionAssignment:
    """Assign partitions to at most `tasks_max` tasks in turn; every task gets at least one."""
    task_count = min(tasks_max, len(partitions))
    return [list(partitions[task::task_count]) for task in range(task_count)]


def extend_assignment(
    current: Sequence[Sequence[TopicPartition]],
    wanted: Iterable[TopicPartition],
    tasks_max: int,
) -> PartitionAssignment:
    """Assign exactly the `wanted` partitions, each to the task it has in `current` if it has one.

    New partitions go to the task with the fewest, starting with unused tasks. A task that
    loses all its partitions keeps its number with an empty list as long as later ones have work.
    When `tasks_max` is smaller than before, partitions of the tasks beyond it count as new.
    """
    unplaced = dict.fromkeys(wanted)
    tasks: PartitionAssignment = []
    for task in current[:tasks_max]:
        kept = [partition for partition in dict.fromkeys(task) if partition in unplaced]
        for partition in kept:
            del unplaced[partition]
        tasks.append(kept)
    _place(unplaced, tasks, tasks_max)
    while tasks and not tasks[-1]:
        tasks.pop()
    return tasks


def _place(
    partitions: Iterable[TopicPartition], tasks: PartitionAssignment, tasks_max: int
) -> None:
    """Append each partition to the task with the fewest, the lowest number first."""
    new = list(partitions)
    room = min(tasks_max, len(tasks) + len(new))
    tasks.extend([] for _ in range(room - len(tasks)))
    loads = [(len(task), number) for number, task in enumerate(tasks)]
    heapq.heapify(loads)
    for partition in new:
        load, number = loads[0]
        tasks[number].append(partition)
        heapq.heapreplace(loads, (load + 1, number))
