"""Reads the offset map and the offset syncs until they cover what groups have just committed.

Runs on: worker, on the checkpoint task's thread. A copy task writes the offset map about once a
second, so a group that commits right behind the copy is ahead of the map for a moment. A checkpoint
made then would send it back to the map's end, and the next one is a minute away:

    source   |-----------------g|    g group's commit
    map      |-----------E           E end: written a second ago; the rest is on its way

So a round waits for the map, a few seconds at most. It does not wait if the map lacks the partition
(another program copied it) or cannot be read. If the map did not reach a commit in time (a stopped
task, transaction markers at the log's end), the reader waits again only for a later commit, or when
the map has moved.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from sparkmirror.connect.checkpoint.group_discovery import Committed
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.checkpoints import CommittedOffset
from sparkmirror.types import FlowName, TopicPartition

log = logging.getLogger(__name__)

READ_SECONDS = 60.0
# A map of usual size is written once a second, after the response to its last write.
WAIT_SECONDS = 3.0
LOOK_SECONDS = 0.2


class MapReader(Protocol):
    """The part of `OffsetTranslator` that is used here."""

    def catch_up(self, seconds: float) -> None:
        """Read what is new in both topics."""

    def map_end(self, tp: TopicPartition) -> int | None:
        """The source offset up to which a partition is mapped."""


class TranslationReader:
    """`error` names what could not be read last time. Owned by one thread.

    `rest` waits for the given seconds; it returns True at once if the task stops.
    """

    def __init__(
        self,
        flow: FlowName,
        rest: Callable[[float], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.error = ""
        self._flow = flow
        self._rest = rest
        self._clock = clock
        # The end of each map, and the offset that it did not reach in time.
        self._in_vain: dict[TopicPartition, tuple[int, int]] = {}

    def read(self, translator: MapReader, committed: Committed) -> None:
        """Catch up with both topics, and wait until the map covers what was committed."""
        deadline = self._clock() + WAIT_SECONDS
        self._catch_up(translator)
        wanted = _furthest(committed.values())
        while not self.error and (missing := self._behind(translator, wanted)):
            if self._clock() >= deadline:
                self._in_vain |= missing
                return
            if self._rest(LOOK_SECONDS):
                return
            self._catch_up(translator)

    def _behind(
        self, translator: MapReader, wanted: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, tuple[int, int]]:
        """Maps that may soon reach further: their ends, and the offsets to wait for."""
        behind: dict[TopicPartition, tuple[int, int]] = {}
        for tp, offset in wanted.items():
            end = translator.map_end(tp)
            if end is not None and end < offset and not self._was_in_vain(tp, end, offset):
                behind[tp] = (end, offset)
        return behind

    def _was_in_vain(self, tp: TopicPartition, end: int, offset: int) -> bool:
        last_end, last_offset = self._in_vain.get(tp, (-1, -1))
        return end == last_end and offset <= last_offset

    def _catch_up(self, translator: MapReader) -> None:
        """Read both topics. Unread records make translation less exact, never wrong."""
        try:
            translator.catch_up(READ_SECONDS)
        except KafkaError as error:
            # A read that `stop` cancelled is not logged.
            if str(error) != self.error and not self._rest(0.0):
                self.error = str(error)
                log.warning("[%s] may degrade offset translation: %s", self._flow, error)
        else:
            self.error = ""


def _furthest(
    committed: Iterable[Mapping[TopicPartition, CommittedOffset]],
) -> dict[TopicPartition, int]:
    """The largest offset that a group has in each partition."""
    found: dict[TopicPartition, int] = {}
    for offsets in committed:
        for tp, offset in offsets.items():
            found[tp] = max(found.get(tp, 0), offset.next_offset)
    return found
