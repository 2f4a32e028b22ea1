"""Decides which worker runs which task: equal shares, and only tasks that must move stop.

Runs on: worker, the leader of the group, once per generation. Pure. Mirrors:
org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeAssignor (KIP-415). A task moves
in two rounds: its owner stops it and reports that by joining again, then another worker gets it.
In between it belongs to no worker, so no two workers ever run it. There is no
scheduled.rebalance.max.delay.ms: the tasks of a lost worker move at once.

Connect counts all tasks alike. Here the tasks that copy are shared first, those of each connector
as evenly as possible: a checkpoint task is almost no work, so counting it could leave all the
copying to one worker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from sparkmirror.connect.group.connect_protocol import Assignment, MemberState
from sparkmirror.types import ConnectorTaskId

__all__ = ["Assignment", "MemberState", "assign"]

Owned = dict[str, set[ConnectorTaskId]]


def assign(
    members: Mapping[str, MemberState],
    configured: Collection[ConnectorTaskId],
    last: Mapping[str, Assignment],
    *,
    config_offset: int,
    copying: Collection[ConnectorTaskId] | None = None,
) -> dict[str, Assignment]:
    """The assignment of each member, by member id.

    `configured`: all tasks, as of `config_offset`. Tasks that must run on one worker (those of a
    checkpoint connector are one thread) are represented by one of them.
    `copying`: the tasks that take a slot each; None: all.
    `last`: the assignments of the previous generation, as far as this worker knows them. The caller
    adds the URLs of the leader and of the members.
    """
    owned = _without_conflicts(members, last)
    if any(member.config_offset > config_offset for member in members.values()):
        # Tasks that this leader has not read yet would look deleted. It reads on and rejoins.
        return _assignments(members, owned, config_offset, follow_up=True)
    known = set(configured)
    slotted = known if copying is None else known.intersection(copying)
    running = known.intersection(task for member in members.values() for task in member.tasks)
    shared: Owned = {name: set() for name in members}
    for part in (slotted, known - slotted):
        limits = _limits(members, None if part is slotted else len(part))
        own = {name: tasks & part for name, tasks in owned.items()}
        shares = _shares(members, own, limits, len(part), shared)
        own = {name: _kept(tasks, shares[name]) for name, tasks in own.items()}
        _give(sorted(part - running), own, shares)
        shared = {name: shared[name] | own[name] for name in members}
    is_moving = not running <= set().union(*shared.values())
    return _assignments(members, shared, config_offset, follow_up=is_moving)


def _without_conflicts(members: Mapping[str, MemberState], last: Mapping[str, Assignment]) -> Owned:
    """Who owns which tasks. If two members claim a task, the one that was assigned it keeps it.

    If the last assignment is unknown, both stop the task: one of them may be a process that was
    frozen and would restart it from positions that the other is about to pass.
    """
    owners = Counter(task for member in members.values() for task in member.tasks)
    assigned = Counter(
        task
        for name, member in members.items()
        if name in last
        for task in member.tasks & last[name].tasks
    )

    def keeps(name: str, task: ConnectorTaskId) -> bool:
        is_believed = name in last and task in last[name].tasks and assigned[task] == 1
        return owners[task] == 1 or is_believed

    return {
        name: {task for task in member.tasks if keeps(name, task)}
        for name, member in members.items()
    }


def _limits(members: Mapping[str, MemberState], most: int | None) -> dict[str, int]:
    """How many tasks each member has room for; `most`: the limit for tasks that take no slots.

    A member without slots has not read the config topic yet, or waits for executors.
    """

    def room(member: MemberState) -> int:
        slots = 0 if member.draining else max(0, member.slots)
        return slots if most is None or not slots else most

    return {name: room(member) for name, member in members.items()}


def _shares(
    members: Mapping[str, MemberState],
    owned: Owned,
    limits: Mapping[str, int],
    total: int,
    beside: Owned,
) -> dict[str, int]:
    """How many tasks each member may have: all the same or one more, within the limits.

    Members that already have one more keep it; then those with the fewest tasks `beside` get it.
    Tasks beyond all slots wait on the workers that have slots: executors may be added, and until
    then these workers log what is missing.
    """
    order = sorted(members, key=lambda name: (len(beside[name]), name))
    shares = dict.fromkeys(members, 0)
    shares = _filled(shares, owned, limits, order, min(total, sum(limits.values())))
    left = total - sum(shares.values())
    staying = [name for name in order if not members[name].draining]
    waiting = [name for name in staying if limits[name]] or staying
    if left and waiting:
        shares = _filled(shares, owned, dict.fromkeys(waiting, total), waiting, left)
    return shares


def _filled(
    shares: Mapping[str, int],
    owned: Owned,
    limits: Mapping[str, int],
    order: Sequence[str],
    left: int,
) -> dict[str, int]:
    """Distribute `left` more within the limits: fewest tasks first, then by `order`."""
    shares = dict(shares)
    while left:
        below = [name for name in order if shares[name] < limits[name]]
        each, rest = divmod(left, len(below))
        if not each:
            below.sort(key=lambda name: len(owned[name]) <= shares[name])
            for name in below[:rest]:
                shares[name] += 1
            break
        for name in below:
            added = min(each, limits[name] - shares[name])
            shares[name] += added
            left -= added
    return shares


def _kept(tasks: Collection[ConnectorTaskId], count: int) -> set[ConnectorTaskId]:
    """Choose `count` of these tasks, equally many of each connector."""
    ranks: Counter[str] = Counter()
    ranked = []
    for task in sorted(tasks):
        ranked.append((ranks[task.connector], task))
        ranks[task.connector] += 1
    return {task for _, task in sorted(ranked)[:count]}


def _give(tasks: Collection[ConnectorTaskId], owned: Owned, shares: Mapping[str, int]) -> None:
    """Give each task to the member with the fewest of its connector, as long as there is room."""
    for task in tasks:
        free = [name for name in sorted(owned) if len(owned[name]) < shares[name]]
        if not free:
            return

        def load(name: str, connector: str = task.connector) -> tuple[int, int]:
            return sum(each.connector == connector for each in owned[name]), len(owned[name])

        owned[min(free, key=load)].add(task)


def _assignments(
    members: Mapping[str, MemberState], owned: Owned, config_offset: int, *, follow_up: bool
) -> dict[str, Assignment]:
    return {
        name: Assignment(
            config_offset=config_offset,
            tasks=frozenset(owned[name]),
            revoked=member.tasks - owned[name],
            follow_up=follow_up,
        )
        for name, member in members.items()
    }
