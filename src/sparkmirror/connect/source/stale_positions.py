"""Finds positions of deleted and recreated topics that only the worker can recognize.

Runs on: worker; the leader finds them, and task settings carry them to the other workers. The copy
task checks positions with a topic id (KIP-516) itself, because it sees the same ids. A position
without one, as MirrorMaker 2 and the REST API write it, is stale if it existed when the worker saw
a new id, until a task stores a new position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sparkmirror.connect.storage.offset_backing_store import StoredPosition, StoredPositions
from sparkmirror.mirror.task_configs import TaskSettings, stale_offsets, with_stale_offsets
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.admin import TopicView


class StalePositions:
    """The topic ids of the source, and the positions that became stale with them."""

    def __init__(self) -> None:
        self._topic_ids: dict[str, bytes] = {}
        # The next offsets of positions that do not name their topic's id.
        self._stale: dict[TopicPartition, int] = {}

    def note_ids(
        self, source: Mapping[str, TopicView], load: Callable[[], StoredPositions]
    ) -> None:
        """Look for topics whose id has changed; if there are any, `load` returns all positions."""
        known = self._topic_ids
        recreated = {
            name
            for name, view in source.items()
            if view.topic_id and known.get(name, view.topic_id) != view.topic_id
        }
        if recreated:
            self._stale |= {
                tp: position.next_offset
                for tp, position in load().items()
                if tp.topic in recreated and position.provenance.topic_id is None
            }
        # Brokers before 2.8, and some that have just been restarted, return no ids.
        known.update({name: view.topic_id for name, view in source.items() if view.topic_id})

    def hold(self, tp: TopicPartition, position: StoredPosition | None) -> bool:
        """Whether this position belongs to a deleted topic."""
        return is_stale(position, self._stale.get(tp))

    def take_from(self, tasks: Iterable[Mapping[str, str]]) -> None:
        """Take over what an earlier leader found."""
        for task in tasks:
            self._stale |= stale_offsets(task)

    def add_to(self, tasks: Iterable[TaskSettings]) -> list[TaskSettings]:
        """The same tasks, with the stale positions of their partitions."""
        return [with_stale_offsets(task, self._stale) for task in tasks]


def is_stale(position: StoredPosition | None, stale_offset: int | None) -> bool:
    """Whether the position is the one that existed when its topic was found recreated."""
    if position is None or position.provenance.topic_id is not None:
        return False
    return position.next_offset == stale_offset
