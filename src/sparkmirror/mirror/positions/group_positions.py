"""Positions in a consumer group on the source, as MirrorMaker 1 keeps them.

Runs on: worker. Pure. The group's offsets win, because MirrorMaker 1 or an operator may have
committed since; positions that our tasks stored on the target are newer only while the group still
has our own commit. Our commits are marked in their metadata, which MirrorMaker 1 leaves empty, with
the target and with the topic's id, because the topic may have been recreated.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Iterable, Mapping

from sparkmirror.mirror.positions.provenance import decode_topic_id, encode_topic_id
from sparkmirror.types import TopicPartition

CommittedPositions = Mapping[TopicPartition, tuple[int, str]]
GroupPositions = Mapping[TopicPartition, int]

_BAD_IN_NAME = re.compile(r"[^A-Za-z0-9._-]")
# Keeps the name of a topic named after the group and its cluster within 249 characters.
_MOST_CHARACTERS = 180
_MARK = "sparkmirror"
IDLE = ("Empty", "Dead")


def commit_mark(target_id: str, topic_id: bytes = b"") -> str:
    """The metadata of our commits: the target and the topic that they are for.

    Without the id, which brokers before 2.8 do not have, it is the prefix for that target.
    """
    words = [_MARK, target_id, *([encode_topic_id(topic_id)] if topic_id else [])]
    return " ".join(words)


def group_name(group: str, source_id: str) -> str:
    """A unique name for this group of this cluster, valid in topic names."""
    safe = _BAD_IN_NAME.sub("_", group)[:_MOST_CHARACTERS]
    if safe != group:
        safe += "-" + hashlib.sha256(group.encode()).hexdigest()[:12]
    return f"{safe}.{source_id}"


def plan_seeds(
    stored: GroupPositions, committed: CommittedPositions, mark: str, topic_ids: Mapping[str, bytes]
) -> dict[TopicPartition, int]:
    """The starting positions that replace those stored on the target.

    `stored` has no positions of deleted topics; `topic_ids` are the current ones of the source.
    """
    return {
        tp: offset
        for tp, (offset, metadata) in committed.items()
        if offset >= 0
        and not (_is_ours(metadata, mark) and tp in stored)
        and not _is_of_other_topic(metadata, topic_ids.get(tp.topic, b""))
        and stored.get(tp) != offset
    }


def only_stored(stored: GroupPositions, committed: CommittedPositions) -> list[TopicPartition]:
    """Partitions whose position the group has lost: brokers expire old offsets."""
    return sorted(tp for tp in stored if committed.get(tp, (-1, ""))[0] < 0)


def plan_commit(
    wanted: CommittedPositions, committed: CommittedPositions, *, everything: bool
) -> dict[TopicPartition, tuple[int, str]]:
    """The part of `wanted` that the group lacks; with `everything` all of it, against expiry."""
    return {tp: row for tp, row in wanted.items() if everything or committed.get(tp) != row}


def plan_corrections(
    committed: CommittedPositions,
    target_id: str,
    topic_ids: Mapping[str, bytes],
    partitions: Iterable[TopicPartition],
) -> dict[TopicPartition, tuple[int, str]]:
    """Offset 0 for partitions that were committed after their topic was recreated.

    Until the tasks store a position, MirrorMaker 1 would skip the records before such an offset.
    """
    return {
        tp: (0, commit_mark(target_id, topic_ids[tp.topic]))
        for tp in partitions
        if tp in committed and _is_of_other_topic(committed[tp][1], topic_ids.get(tp.topic, b""))
    }


def changed_by_others(
    ours: Container[TopicPartition],
    committed: CommittedPositions,
    mark: str,
    partitions: Iterable[TopicPartition],
) -> list[TopicPartition]:
    """Partitions, among `ours`, in which another client has committed after us."""
    return sorted(
        tp
        for tp in partitions
        if tp in ours and tp in committed and not _is_ours(committed[tp][1], mark)
    )


def _is_ours(metadata: str, mark: str) -> bool:
    """Whether it is our own commit, for any topic."""
    return metadata == mark or metadata.startswith(f"{mark} ")


def _is_of_other_topic(metadata: str, topic_id: bytes) -> bool:
    """Whether it is marked with the id of an earlier topic of this name."""
    words = metadata.split(" ")
    if words[0] != _MARK or len(words) != 3 or not topic_id:
        return False
    return decode_topic_id(words[2]) not in (None, topic_id)
