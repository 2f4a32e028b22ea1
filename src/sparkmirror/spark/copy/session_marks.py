"""Notes in the exact offset map where a task begins, before it copies anything.

Runs on: executor, on the copy loop's thread.

A task that crashes before its first flush of the map has copied records that are in no chunk.
The next task copies them again, behind the first copy:

    target   | 0 1 2 3 4 5 6 7 | 0 1 2
    map                          (0, 8, 3)      where does a group at 5 continue?

Without a trace of the first copy the map would yield 11, ahead of records 5 to 7 if the source is
lost now. The mark of the first task, (0, 0) without records, shows that there may be some. So a
partition is fetched once its mark is stored; or without it after a while, because a topic that
cannot be written must not stop the copy.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.errors import KafkaError
from sparkmirror.spark.copy.copy_partition import CopyPartition
from sparkmirror.spark.offsets.offset_sync_emitter import OffsetSyncEmitter
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.fetch.fetcher import Fetcher
from sparkmirror.wire.fetch.offset_fetcher import OffsetFetcher, Range
from sparkmirror.wire.protocol.error_codes import UNKNOWN_TOPIC_OR_PARTITION

# After this long the copy starts without its mark.
MARK_SECONDS = 2.0


@dataclass(slots=True)
class _Held:
    """A partition that waits for its mark."""

    partition: CopyPartition
    next_offset: int
    is_asked: bool = False


class SessionMarks:
    """Holds partitions of one task until the map has their start."""

    def __init__(self, target: NetworkClient, fetcher: Fetcher, emitter: OffsetSyncEmitter) -> None:
        self._target = target
        self._fetcher = fetcher
        self._emitter = emitter
        self._ranges = OffsetFetcher(target, False, self._range_known)
        self._held: dict[TopicPartition, _Held] = {}
        # Marks that became known in this turn of the loop.
        self._due: list[tuple[_Held, int]] = []
        target.listeners.append(self)

    def begin(self, partition: CopyPartition, next_offset: int) -> None:
        """The copy of `partition` is about to begin here; once in its life."""
        if partition.is_marked or not self._emitter.has_map:
            return
        partition.is_marked = True
        held = self._held[partition.target] = _Held(partition, next_offset)
        self._fetcher.pause(partition.source)
        self._target.loop.call_later(MARK_SECONDS, lambda: self._release(held))
        self._ask(held)

    # -- from the cluster ------------------------------------------------------------------------

    def on_connected(self, node: int) -> None:
        """A connection is ready."""
        self._ranges.send_ready()

    def on_metadata(self) -> None:
        """Leaders may be known by now."""
        for held in list(self._held.values()):
            self._ask(held)

    # -- one after the other ---------------------------------------------------------------------

    def _ask(self, held: _Held) -> None:
        tp = held.partition.target
        leader = self._target.metadata.leaders.get(tp)
        if held.is_asked:
            return
        if leader is not None:
            held.is_asked = True
            self._ranges.ask(tp, leader.node)
        elif self._target.metadata.topic_errors.get(tp.topic) == UNKNOWN_TOPIC_OR_PARTITION:
            held.is_asked = True
            self._end_known(held, 0)  # the worker creates it, empty

    def _range_known(self, tp: TopicPartition, found: Range | KafkaError) -> None:
        held = self._held.get(tp)
        if held is None:
            return
        if isinstance(found, KafkaError):
            held.is_asked = False
            self._target.metadata.refresh()
        else:
            self._end_known(held, found.end)

    def _end_known(self, held: _Held, end_offset: int) -> None:
        if not self._due:
            self._target.loop.call_later(0.0, self._write)
        self._due.append((held, end_offset))

    def _write(self) -> None:
        """All of them together, except those that started without and may have copied something."""
        due, self._due = self._due, []
        waiting = [(held, end) for held, end in due if self._is_held(held)]
        marks = {held.partition.source: (held.next_offset, end) for held, end in waiting}
        if marks:
            self._emitter.begin(marks, lambda: self._release(*(held for held, _ in waiting)))

    def _is_held(self, held: _Held) -> bool:
        return self._held.get(held.partition.target) is held

    def _release(self, *stored: _Held) -> None:
        for held in stored:
            if self._is_held(held):
                del self._held[held.partition.target]
                self._fetcher.resume(held.partition.source)
