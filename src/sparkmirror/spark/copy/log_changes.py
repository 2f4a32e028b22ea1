"""What the copy does when a source log is not, or is no longer, the one that was read.

Runs on: executor, on the copy loop's thread. Each change is logged, and the position that was
decided on is stored at once: until then a crash would bring back the old one, which may lie ahead
of records that were never copied.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.errors import DataLossError
from sparkmirror.events import EventKind, event
from sparkmirror.spark.copy.copy_partition import CopyPartition, choose_offset
from sparkmirror.spark.offsets.offset_sync_emitter import OffsetSyncEmitter
from sparkmirror.spark.offsets.positions import Positions
from sparkmirror.types import TopicPartition
from sparkmirror.wire.fetch.offset_fetcher import Range

log = logging.getLogger(__name__)


class LogChanges:
    """Truncated, deleted by retention, recreated: for all partitions of one task."""

    def __init__(
        self,
        config: SourceConfig,
        positions: Positions,
        emitter: OffsetSyncEmitter,
        commit: Callable[[], None],
    ) -> None:
        self._alias = config.source_alias
        self._reset = config.consumer.auto_offset_reset
        self._positions = positions
        self._emitter = emitter
        self._commit = commit
        self.lost_records = 0

    def choose(self, partition: CopyPartition, position: int | None, log_range: Range) -> int:
        """Where to continue in a log of this range; what is lost is counted and logged.

        Raises:
            DataLossError: auto.offset.reset=none.
        """
        choice = choose_offset(partition.source, position, log_range, self._reset)
        self.lost_records += choice.lost_records
        partition.counts.lost_records += choice.lost_records
        if choice.warning:
            kind = EventKind.LOST if choice.lost_records else EventKind.RECREATED
            log.warning("%s", choice.warning, extra=_about(kind, partition.source))
        has_moved = position is not None and choice.next_offset != position
        if choice.is_of_now or has_moved:
            self._store(partition, choice.next_offset)
        return choice.next_offset

    def truncate(self, partition: CopyPartition, position: int, next_offset: int) -> None:
        """The log lost offsets from `next_offset` to `position` to an unclean election (KIP-320).

        Raises:
            DataLossError: auto.offset.reset=none.
        """
        last = partition.target_offset
        where = f"in {partition.target}, at offsets that this task does not know"
        if last is not None:
            last += partition.pending_records
            first = max(0, last - (position - next_offset) + 1)
            where = f"within offsets {first} to {last} of {partition.target}"
        text = (
            f"{partition.source} on '{self._alias}' was truncated by an unclean leader election: "
            f"source offsets {next_offset} to {position - 1}, which were copied, are gone there; "
            f"their records exist only on the target, {where}"
        )
        if self._reset == "none":
            raise DataLossError(
                f"{text}. auto.offset.reset=none forbids continuing; set it to earliest or latest "
                f"to continue at offset {next_offset}, or reset the connector's offsets"
            )
        log.warning(
            "%s. Copying continues at source offset %d",
            text,
            next_offset,
            extra=_about(EventKind.RECREATED, partition.source),
        )
        self._store(partition, next_offset)

    def recreate(self, partition: CopyPartition) -> None:
        """The source topic is another one under the same name."""
        partition.disown_pending()
        self.start_over(partition.source)
        self._commit()

    def start_over(self, tp: TopicPartition) -> None:
        """`tp` was deleted and recreated: drop the state of the old topic."""
        log.warning(
            "%s on '%s' was deleted and recreated: copying starts over by auto.offset.reset; "
            "the target keeps the old records too",
            tp,
            self._alias,
            extra=_about(EventKind.RECREATED, tp),
        )
        self._positions.restarted(tp)
        self._emitter.restarted(tp)

    def _store(self, partition: CopyPartition, next_offset: int) -> None:
        """What is in flight is of the old log: its acknowledgements yield no position."""
        partition.disown_pending()
        self._positions.moved(partition.source, next_offset - 1)
        self._commit()


def _about(kind: EventKind, tp: TopicPartition) -> Mapping[str, object]:
    return event(kind, topic=tp.topic, partition=tp.partition)
