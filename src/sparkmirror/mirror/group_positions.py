"""Positions that a consumer group on the source keeps, as MirrorMaker 1's does.

Runs on: worker. Pure. The group is the truth, because MirrorMaker 1, or a person, may have
committed to it since; what our tasks stored on the target is newer only while the group still has
our own commit. Each of our commits is marked so in its metadata, which MirrorMaker 1 leaves empty.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

from sparkmirror.types import TopicPartition

Committed = Mapping[TopicPartition, tuple[int, str]]
Positions = Mapping[TopicPartition, int]

_BAD_IN_NAME = re.compile(r"[^A-Za-z0-9._-]")
# So that the topic named after the group and its cluster has at most 249 characters.
_MOST_CHARACTERS = 180
IDLE = ("Empty", "Dead")


def commit_mark(target_id: str) -> str:
    """The metadata of our commits: another target has other positions."""
    return f"sparkmirror {target_id}"


def group_name(group: str, source_id: str) -> str:
    """A name for this group of this cluster that a topic may have; no two share one."""
    safe = _BAD_IN_NAME.sub("_", group)[:_MOST_CHARACTERS]
    if safe != group:
        safe += "-" + hashlib.sha256(group.encode()).hexdigest()[:12]
    return f"{safe}.{source_id}"


def plan_seeds(stored: Positions, committed: Committed, mark: str) -> dict[TopicPartition, int]:
    """The positions to begin at where those that are stored on the target do not hold."""
    return {
        tp: offset
        for tp, (offset, metadata) in committed.items()
        if offset >= 0 and not (metadata == mark and tp in stored) and stored.get(tp) != offset
    }


def only_stored(stored: Positions, committed: Committed) -> list[TopicPartition]:
    """Partitions whose position the group has lost: brokers forget what nobody commits again."""
    return sorted(tp for tp in stored if committed.get(tp, (-1, ""))[0] < 0)


def plan_commit(
    wanted: Positions, committed: Committed, mark: str, *, everything: bool
) -> dict[TopicPartition, tuple[int, str]]:
    """What the group lacks of `wanted`; or all of it, so that brokers do not forget it."""
    return {
        tp: (offset, mark)
        for tp, offset in wanted.items()
        if everything or committed.get(tp) != (offset, mark)
    }


def changed_by_others(
    last: Positions, committed: Committed, mark: str, partitions: Iterable[TopicPartition]
) -> list[TopicPartition]:
    """Partitions in which somebody else has committed since we did."""
    return sorted(
        tp
        for tp in partitions
        if tp in last
        and tp in committed
        and committed[tp] != (last[tp], mark)
        and committed[tp][1] != mark
    )
