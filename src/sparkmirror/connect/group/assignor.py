"""Decides which worker runs which task: equal shares, and only what must move stops.

Runs on: worker, the leader of the group, once per generation. Pure. Mirrors:
org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeAssignor (KIP-415). A task moves
in two rounds: first its owner must end it, and says so by joining again; then another gets it.
Until then it belongs to none, so no two workers ever run it. There is no
scheduled.rebalance.max.delay.ms: the tasks of a lost worker move at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

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
) -> dict[str, Assignment]:
    """What each member (by its id) shall run.

    `configured`: all tasks, as of `config_offset`. Those that must run on one worker (the tasks of
    a checkpoint connector are one thread) are given as one of them, which stands for the rest.
    `last`: the assignments of the generation before, as far as this worker knows them. The URLs of
    the leader and of the members are added by whoever sends the assignments.
    """
    owned = _without_conflicts(members, last)
    if any(member.config_offset > config_offset for member in members.values()):
        # Tasks that this leader has not read of yet would look deleted. It reads on and rejoins.
        return _assignments(members, owned, config_offset, follow_up=True)
    known = set(configured)
    for tasks in owned.values():
        tasks.intersection_update(known)
    shares = _shares(members, owned, len(known))
    for name, tasks in owned.items():
        tasks.difference_update(sorted(tasks)[shares[name] :])
    running = known.intersection(task for member in members.values() for task in member.tasks)
    _give(sorted(known - running), owned, shares)
    is_moving = not running <= set().union(*owned.values())
    return _assignments(members, owned, config_offset, follow_up=is_moving)


def _without_conflicts(members: Mapping[str, MemberState], last: Mapping[str, Assignment]) -> Owned:
    """Who owns what. Of two owners the one that was assigned the task is believed.

    If that is not known, both end the task: one of them may be a process that was frozen and will
    start it again from positions that the other is about to pass.
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


def _shares(members: Mapping[str, MemberState], owned: Owned, total: int) -> dict[str, int]:
    """How many tasks each may have: all the same or one more, as far as there are slots.

    One more goes to those that have it already. Tasks beyond all slots wait on the workers that
    have some: their logs say what is missing, and executors may come.
    """
    limits = {name: 0 if each.draining else max(0, each.slots) for name, each in members.items()}
    shares = _filled(dict.fromkeys(members, 0), owned, limits, min(total, sum(limits.values())))
    left = total - sum(shares.values())
    staying = [name for name, each in members.items() if not each.draining]
    waiting = [name for name in staying if limits[name]] or staying
    if left and waiting:
        shares = _filled(shares, owned, dict.fromkeys(waiting, total), left)
    return shares


def _filled(
    shares: Mapping[str, int], owned: Owned, limits: Mapping[str, int], left: int
) -> dict[str, int]:
    """`left` more, within the limits; those who have less come first."""
    shares = dict(shares)
    while left:
        below = [name for name in sorted(limits) if shares[name] < limits[name]]
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


def _give(tasks: Collection[ConnectorTaskId], owned: Owned, shares: Mapping[str, int]) -> None:
    """Each of them to the member with the fewest; none where there is no room."""
    for task in tasks:
        free = [name for name in sorted(owned) if len(owned[name]) < shares[name]]
        if not free:
            return
        owned[min(free, key=lambda name: len(owned[name]))].add(task)


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
