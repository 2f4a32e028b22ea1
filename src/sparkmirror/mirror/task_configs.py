"""The settings of a connector's tasks, as MirrorMaker 2 writes them to the config topic.

Runs on: worker. Pure. Mirrors: taskConfigs of org.apache.kafka.connect.mirror.
{MirrorSourceConnector,MirrorCheckpointConnector,MirrorHeartbeatConnector}. Each task has all of the
connector's settings as they were sent, and what is its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparkmirror.types import TopicPartition

TaskSettings = dict[str, str]
MIRROR_PACKAGE = "org.apache.kafka.connect.mirror."
TASK_CLASS, TASK_INDEX = "task.class", "task.index"
PARTITIONS, GROUPS = "task.assigned.partitions", "task.assigned.groups"


def source_tasks(assignment: Sequence[Sequence[TopicPartition]]) -> list[TaskSettings]:
    """The settings of each copying task; tasks without partitions at the end are omitted."""
    used = list(assignment)
    while used and not used[-1]:
        used.pop()
    return [_numbered(at, PARTITIONS, partitions) for at, partitions in enumerate(used)]


def checkpoint_tasks(groups: Sequence[str], tasks_max: int) -> list[TaskSettings]:
    """Groups in equal shares; the first ones get what is left over."""
    shares = _shares(groups, min(tasks_max, len(groups)))
    return [_numbered(at, GROUPS, share) for at, share in enumerate(shares)]


def complete_settings(
    connector: Mapping[str, str | None], task_class: str, own: Mapping[str, str]
) -> TaskSettings:
    """The settings of one task, all of them."""
    given = {key: value for key, value in connector.items() if value is not None}
    return {**given, TASK_CLASS: MIRROR_PACKAGE + task_class, **own}


def _numbered(at: int, key: str, parts: Sequence[object]) -> TaskSettings:
    return {TASK_INDEX: str(at), key: ",".join(str(part) for part in parts)}


def _shares(items: Sequence[str], count: int) -> list[Sequence[str]]:
    shares, start = [], 0
    for at in range(count):
        end = start + len(items) // count + (at < len(items) % count)
        shares.append(items[start:end])
        start = end
    return shares
