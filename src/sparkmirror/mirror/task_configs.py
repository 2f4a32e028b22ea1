"""The settings of a connector's tasks, as MirrorMaker 2 writes them to the config topic.

Runs on: worker. Pure. Mirrors: taskConfigs of org.apache.kafka.connect.mirror.
{MirrorSourceConnector,MirrorCheckpointConnector,MirrorHeartbeatConnector}. Each task has all of the
connector's settings as they were sent, and its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sparkmirror.types import TopicPartition

TaskSettings = dict[str, str]
MIRROR_PACKAGE = "org.apache.kafka.connect.mirror."
TASK_CLASS, TASK_INDEX = "task.class", "task.index"
# Java's partitions are ints.
MOST_DIGITS, LARGEST_PARTITION = 10, 2**31 - 1
COMMA, PERCENT = "%2C", "%25"
PARTITIONS, GROUPS = "task.assigned.partitions", "task.assigned.groups"
# Ours; MirrorMaker 2's tasks do not look at it.
STALE_OFFSETS = "task.sparkmirror.stale.offsets"
OWN = (TASK_CLASS, TASK_INDEX, PARTITIONS, GROUPS, STALE_OFFSETS)


def source_tasks(assignment: Sequence[Sequence[TopicPartition]]) -> list[TaskSettings]:
    """The settings of each copying task; tasks without partitions at the end are omitted."""
    used = list(assignment)
    while used and not used[-1]:
        used.pop()
    return [_numbered(at, PARTITIONS, partitions) for at, partitions in enumerate(used)]


def assigned_partitions(task: Mapping[str, str]) -> list[TopicPartition]:
    """The partitions of a task that copies. Raises ValueError for an invalid one."""
    found = []
    for part in filter(None, task.get(PARTITIONS, "").split(",")):
        topic, dash, partition = part.rpartition("-")
        is_number = partition.isascii() and partition.isdecimal() and len(partition) <= MOST_DIGITS
        if not dash or not topic or not is_number or int(partition) > LARGEST_PARTITION:
            raise ValueError(f"{PARTITIONS} has '{part}', which is no topic-partition")
        found.append(TopicPartition(topic, int(partition)))
    return found


def partitions_move(before: Sequence[Mapping[str, str]], now: Sequence[Mapping[str, str]]) -> bool:
    """Whether a partition goes from one task to another."""
    owners = {tp: at for at, task in enumerate(before) for tp in assigned_partitions(task)}
    return any(
        owners.get(tp, at) != at for at, task in enumerate(now) for tp in assigned_partitions(task)
    )


def assigned_groups(tasks: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """The groups of all these tasks."""
    return tuple(
        _unquoted(group)
        for task in tasks
        for group in filter(None, task.get(GROUPS, "").split(","))
    )


def connector_settings(task: Mapping[str, str]) -> TaskSettings:
    """The connector's part of a task's settings."""
    return {key: value for key, value in task.items() if key not in OWN}


def with_stale_offsets(
    task: Mapping[str, str], offsets: Mapping[TopicPartition, int]
) -> TaskSettings:
    """The same task; `offsets` are positions of deleted topics, at which it must not resume."""
    own = [tp for tp in assigned_partitions(task) if tp in offsets] if offsets else []
    if not own:
        return dict(task)
    return {**task, STALE_OFFSETS: ",".join(f"{tp}:{offsets[tp]}" for tp in own)}


def stale_offsets(task: Mapping[str, str]) -> dict[TopicPartition, int]:
    """By partition, the position that belongs to a deleted topic. Raises ValueError."""
    found = {}
    for part in filter(None, task.get(STALE_OFFSETS, "").split(",")):
        name, _, offset = part.rpartition(":")
        for tp in assigned_partitions({PARTITIONS: name}):
            found[tp] = int(offset)
    return found


def checkpoint_tasks(groups: Sequence[str], tasks_max: int) -> list[TaskSettings]:
    """Groups in equal shares; the first tasks get the remainder."""
    shares = _shares(groups, min(tasks_max, len(groups)))
    return [_numbered(at, GROUPS, map(_quoted, share)) for at, share in enumerate(shares)]


def _quoted(group: str) -> str:
    """Escape commas: MirrorMaker 2 loses groups with one. Other names stay unchanged."""
    if not any(part in group for part in (",", COMMA, PERCENT)):
        return group
    return group.replace("%", PERCENT).replace(",", COMMA)


def _unquoted(text: str) -> str:
    return text.replace(COMMA, ",").replace(PERCENT, "%")


def complete_settings(
    connector: Mapping[str, str | None], task_class: str, own: Mapping[str, str]
) -> TaskSettings:
    """All settings of one task."""
    given = {key: value for key, value in connector.items() if value is not None}
    return {**given, TASK_CLASS: MIRROR_PACKAGE + task_class, **own}


def _numbered(at: int, key: str, parts: Iterable[object]) -> TaskSettings:
    return {TASK_INDEX: str(at), key: ",".join(str(part) for part in parts)}


def _shares(items: Sequence[str], count: int) -> list[Sequence[str]]:
    shares, start = [], 0
    for at in range(count):
        end = start + len(items) // count + (at < len(items) % count)
        shares.append(items[start:end])
        start = end
    return shares
