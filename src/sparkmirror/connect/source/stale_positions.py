"""Positions of topics that were deleted and created anew, where only the worker can tell.

Runs on: worker; the leader notices, and the settings of the tasks carry it to the other workers.
A position that names its topic's id is judged by the copy task, which sees the
same ids: it may be of the new topic already. One without, as MirrorMaker 2 and REST write it, is
stale if it was there when the worker saw another id, until a task stores others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sparkmirror.connect.storage.offset_backing_store import StoredPosition, StoredPositions
from sparkmirror.mirror.task_configs import TaskSettings, stale_offsets, with_stale_offsets
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.admin import TopicView


class StalePositions:
    """What the worker knows of the source's topics, from round to round."""

    def __init__(self) -> None:
        self._topic_ids: dict[str, bytes] = {}
        # The next offsets of positions that do not name their topic's id.
        self._stale: dict[TopicPartition, int] = {}

    def note_ids(
        self, source: Mapping[str, TopicView], load: Callable[[], StoredPositions]
    ) -> None:
        """Look for topics that came back under another id; then `load` tells all positions."""
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
        # Brokers before 2.8, and some that have just been restarted, do not tell ids.
        known.update({name: view.topic_id for name, view in source.items() if view.topic_id})

    def hold(self, tp: TopicPartition, position: StoredPosition | None) -> bool:
        """Whether this position is of a topic that is gone."""
        return is_stale(position, self._stale.get(tp))

    def take_from(self, tasks: Iterable[Mapping[str, str]]) -> None:
        """What an earlier leader noticed."""
        for task in tasks:
            self._stale |= stale_offsets(task)

    def add_to(self, tasks: Iterable[TaskSettings]) -> list[TaskSettings]:
        """The same tasks, with what each has to know."""
        return [with_stale_offsets(task, self._stale) for task in tasks]


def is_stale(position: StoredPosition | None, stale_offset: int | None) -> bool:
    """Whether the position is the one that was there when its topic was found recreated."""
    if position is None or position.provenance.topic_id is not None:
        return False
    return position.next_offset == stale_offset
