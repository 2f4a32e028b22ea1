"""Batches whose bytes are damaged on the source: what is copied, what waits, what is skipped.

Runs on: executor. Bytes damaged on the way are intact when they are fetched again. Bytes damaged on
the leader's disk are not, until another replica leads: only their partition waits, and retries.
With errors.tolerance=all they are skipped and logged.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, MutableMapping
from typing import NamedTuple

from sparkmirror.batches.forward import ForwardRules, Plan, Reason, plan
from sparkmirror.batches.header import LENGTH, MAGIC_AT, PREFIX_BYTES, check_header, read_header
from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.errors import BatchError, KafkaError
from sparkmirror.events import EventKind, event
from sparkmirror.spark.copy.copy_partition import CopyPartition
from sparkmirror.spark.copy.partition_problems import PartitionProblems
from sparkmirror.wire.fetch.fetcher import Fetcher, Records
from sparkmirror.wire.net.event_loop import EventLoop

log = logging.getLogger(__name__)

# After so many fetches a damaged batch counts as damaged on the source's disk.
RETRIES = 5
RETRY_SECONDS = 1.0
# After that, in case the disk was repaired or another replica leads.
LOOK_SECONDS = 15.0

# Of the batch format since Kafka 0.11. Where the next batch has it, the length before it is right.
MAGIC = 2

# Batches that are not copied (markers, aborted transactions) leave gaps too, far smaller ones.
MOST_GAP = 100_000
SKIPPING = "set errors.tolerance=all to skip and count what is damaged"
NOT_SKIPPED = "restore the segment (the end of the damage is unknown, so it is not skipped)"

SlowCounts = MutableMapping[Reason, int]


class DamagedBatch(NamedTuple):
    """A batch at bytes `start` to `end` of a response; `end` is None where its length is wrong."""

    start: int
    end: int | None
    error: BatchError


def find_damaged(records: Records, rules: ForwardRules) -> DamagedBatch | None:
    """Find the first batch that cannot be copied. The bytes stay as they are.

    One by one and on copies: planning a batch changes its bytes.
    """
    view, total = records.view, len(records.view)
    start, next_offset = 0, records.next_offset
    while start + MAGIC_AT < total:
        end = start + PREFIX_BYTES + LENGTH.unpack_from(view, start + 8)[0]
        if end > total:
            # Brokers send the first batch whole (KIP-74), and cut the last one anywhere.
            error = BatchError(f"read batch at offset {next_offset}: cut, or its length is wrong")
            return None if start else DamagedBatch(start, None, error)
        try:
            copy = memoryview(bytearray(view[start : max(end, start)]))
            planned = plan(copy, next_offset, (), rules, {})
            _check_offsets(planned, next_offset, records.end_offset)
        except BatchError as error:
            is_length_right = end == total or (
                start < end < total - MAGIC_AT and view[end + MAGIC_AT] == MAGIC
            )
            return DamagedBatch(start, end if is_length_right else None, error)
        start, next_offset = end, planned.next_offset
    return None


def check_progress(planned: Plan, records: Records) -> None:
    """Reject a response without a whole batch, and offsets that the log cannot have.

    A batch's base offset is outside its CRC. Wrong by one bit, it would send us far ahead.

    Raises:
        BatchError: damaged.
    """
    _check_offsets(planned, records.next_offset, records.end_offset)


def _check_offsets(planned: Plan, next_offset: int, end_offset: int) -> None:
    found = planned.next_offset
    if next_offset < found <= end_offset:
        return
    what = f"read batch at offset {next_offset}: "
    if found <= next_offset:
        raise BatchError(what + "no whole batch, or one of older offsets")
    if _gap_behind_end(planned, end_offset) > MOST_GAP:
        raise BatchError(f"{what}its offsets lead to {found}, but the log ends at {end_offset}")


def _gap_behind_end(planned: Plan, end_offset: int) -> int:
    """The most offsets in a row, behind the end of the log, that no batch has.

    A broker looks where its log ends before it reads it (Partition.readRecords), so the newest
    batches may lie behind that end. But compaction leaves them alone: they follow each other.
    """
    gap, next_offset = 0, planned.next_offset
    for batch in reversed(planned.batches):
        for first, count in reversed(batch.runs or ((batch.first_offset, batch.count),)):
            gap = max(gap, next_offset - max(first + count, end_offset))
            next_offset = first
            if next_offset <= end_offset:
                return gap
    return max(gap, next_offset - end_offset)


class Damages:
    """Decides by `errors.tolerance`; counts what it skipped."""

    def __init__(
        self, loop: EventLoop, config: SourceConfig, fetcher: Fetcher, problems: PartitionProblems
    ) -> None:
        self._loop = loop
        self._alias = config.source_alias
        self._skips = config.errors_tolerance == "all"
        self._fetcher = fetcher
        self._problems = problems
        self.skipped_records = 0

    def stand(self, partition: CopyPartition, next_offset: int, error: BatchError) -> int:
        """Fetch from `next_offset` again, a little later; after some attempts, much later.

        Also because planning may have changed bytes before it failed: they are fetched again.
        """
        partition.damaged += 1
        text = self._text(partition, next_offset, error)
        if partition.damaged == RETRIES + 1:
            log.error("%s", text, extra=_about(EventKind.STUCK, partition, key="damage"))
        source = partition.source
        self._problems.note(source, KafkaError(text))
        self._fetcher.pause(source)
        seconds = RETRY_SECONDS if partition.damaged <= RETRIES else LOOK_SECONDS
        self._loop.call_later(seconds, lambda: self._fetcher.resume(source))
        return next_offset

    def plan(self, partition: CopyPartition, records: Records, slow: SlowCounts) -> Plan:
        """Plan the batches before the damaged one; then wait there or skip it.

        Raises:
            BatchError: the whole cannot be planned, although each batch can.
        """
        found = find_damaged(records, partition.rules)
        if found is not None and found.start == 0:
            return Plan(next_offset=self._pass(partition, records, found))
        view = records.view if found is None else records.view[: found.start]
        planned = plan(view, records.next_offset, records.aborted, partition.rules, slow)
        check_progress(planned, records)
        if found is None:
            self._recover(partition)
        return planned

    def _pass(self, partition: CopyPartition, records: Records, found: DamagedBatch) -> int:
        after = _offset_after(records, found)
        if not self._skips or after is None or partition.damaged < RETRIES:
            return self.stand(partition, records.next_offset, found.error)
        self._skip(partition, records, found, after)
        return after

    def _skip(
        self, partition: CopyPartition, records: Records, found: DamagedBatch, after: int
    ) -> None:
        count = after - records.next_offset
        self.skipped_records += count
        partition.counts.skipped_records += count
        partition.damaged = 0
        self._problems.pop(partition.source, None)
        log.warning(
            "skipped, because errors.tolerance=all: offsets %d to %d of %s on '%s' (%d offsets): "
            "damaged on the source: %s",
            records.next_offset,
            after - 1,
            partition.source,
            self._alias,
            count,
            found.error,
            extra=_about(EventKind.SKIPPED, partition),
        )

    def _recover(self, partition: CopyPartition) -> None:
        if partition.damaged > RETRIES:
            # A warning, like the line that it revokes: tasks send nothing below that.
            log.warning(
                "%s on '%s' can be read again",
                partition.source,
                self._alias,
                extra=_about(EventKind.RECOVERED, partition, key="damage"),
            )
        partition.damaged = 0
        self._problems.pop(partition.source, None)

    def _text(self, partition: CopyPartition, next_offset: int, error: BatchError) -> str:
        what = f"fetch {partition.source} from {next_offset} on '{self._alias}': {error}"
        if partition.damaged <= RETRIES:
            return what
        return (
            f"{what}; FAILED, also after {RETRIES} more attempts: this partition waits at "
            f"offset {next_offset}, the others continue. Let a replica lead whose copy is whole, "
            f"{NOT_SKIPPED if self._skips else SKIPPING}, or move the connector's offset past it"
        )


def _about(kind: EventKind, partition: CopyPartition, key: str = "") -> Mapping[str, object]:
    topic, at = partition.source
    ends = kind is EventKind.RECOVERED
    return event(kind, topic=topic, partition=at, key=key and f"{key} {topic}-{at}", ends=ends)


def _offset_after(records: Records, found: DamagedBatch) -> int | None:
    """The first offset behind a damaged batch; None where it is unknown.

    The next batch has it; if there is none, only the damaged batch itself does.
    """
    view = records.view
    if found.end is None:
        return None
    if found.end < len(view):
        after = int.from_bytes(view[found.end : found.end + 8], "big", signed=True)
    else:
        try:
            header = read_header(view, found.start)
            check_header(header)
        except BatchError:
            return None
        after = header.last_offset + 1
    return after if records.next_offset < after <= records.end_offset + MOST_GAP else None
