"""From fetched bytes to batches for the target: the hot path of the program. Runs on: executor.

`plan` walks the batches of one fetched partition. A batch that can go as it is gets a few header
bytes changed in the receive buffer, and is not looked into. The others are dropped, merged with
their neighbours (merger), or rewritten (rewriter); each is counted with its Reason. `stamp` writes
what is known at sending time only: producer id, epoch, sequence, and the CRC over all of it.

    fetched   | data 128 KB | marker | data 2 KB | data 1 KB | data with gaps  | cut he
    planned   | in place    | -      | merged into one       | rewritten       | -
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from itertools import pairwise

import numpy as np
from crc32c import crc32c

from sparkmirror.batches.bounds import Bounds, find_tiny_batches
from sparkmirror.batches.crc_shift import difference
from sparkmirror.batches.header import (
    ATTRIBUTES,
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL,
    COUNT_AT,
    CRC,
    CRC_AT,
    HEADER_BYTES,
    LARGEST_OFFSET,
    LOG_APPEND_TIME,
    OFFSET_LENGTH_EPOCH,
    PRODUCER,
    PRODUCER_AT,
    READ_HEADER,
    TRANSACTIONAL,
    Header,
    check_crc,
    check_header,
    read_header,
    read_leader_epoch,
)
from sparkmirror.batches.merging import merger, singles
from sparkmirror.batches.merging.merger import MergePiece
from sparkmirror.batches.message_set import MessageSet
from sparkmirror.batches.outgoing import ForwardRules, OutgoingBatch, Plan, Reason
from sparkmirror.batches.rewriter import rewrite, split
from sparkmirror.batches.transactions import AbortedTransactions

__all__ = ["ForwardRules", "OutgoingBatch", "Plan", "Reason", "plan", "split", "stamp"]

Slow = MutableMapping[Reason, int]

# The CRC of a smaller batch is computed faster than it is derived from the old one.
DERIVE_FROM_BYTES = 32 << 10


def stamp(view: memoryview | bytearray, producer_id: int, epoch: int, sequence: int) -> None:
    """Write producer id, epoch and sequence, then the CRC. May be repeated.

    A CRC other than 0 fits the bytes as they are: then the new one is made from it.
    """
    (crc,) = CRC.unpack_from(view, CRC_AT)
    if crc == 0 or len(view) < DERIVE_FROM_BYTES:
        PRODUCER.pack_into(view, PRODUCER_AT, producer_id, epoch, sequence)
        crc = crc32c(memoryview(view)[ATTRIBUTES_AT:])
    else:
        producer = PRODUCER.pack(producer_id, epoch, sequence)
        crc ^= difference(view[PRODUCER_AT:COUNT_AT], producer, len(view) - COUNT_AT)
        view[PRODUCER_AT:COUNT_AT] = producer
    CRC.pack_into(view, CRC_AT, crc)


def plan(
    records: memoryview,
    next_offset: int,
    aborted: Sequence[tuple[int, int]],
    rules: ForwardRules,
    slow: Slow,
) -> Plan:
    """Prepare what one fetch brought of one partition; changes `records`, and counts in `slow`.

    `aborted` holds (producer id, first offset) of aborted transactions as the response lists them.

    Raises:
        BatchError: bytes that are not batches, or damaged ones; names the offset.
    """
    bounds, cut_bytes = find_tiny_batches(records)
    if len(bounds) == 1:
        return Plan(next_offset=next_offset, cut_bytes=cut_bytes)
    epoch = read_leader_epoch(records, int(bounds[-2]))  # before it is overwritten
    planned = _Planner(records, next_offset, aborted, rules, slow).run(bounds)
    planned.leader_epoch = epoch
    return planned


class _Planner:
    """One run over the batches of one fetched partition."""

    __slots__ = (
        "_aborted", "_batches", "_bounds", "_next_offset", "_old", "_pending", "_plan", "_records",
        "_rules", "_slow",
    )  # fmt: skip

    def __init__(
        self,
        records: memoryview,
        next_offset: int,
        aborted: Sequence[tuple[int, int]],
        rules: ForwardRules,
        slow: Slow,
    ) -> None:
        self._records = records
        self._bounds: Bounds = []
        self._next_offset = next_offset
        self._aborted = AbortedTransactions(aborted) if rules.read_committed and aborted else None
        self._rules = rules
        self._slow = slow
        self._batches: list[OutgoingBatch] = []
        self._plan = Plan(self._batches)
        self._pending: list[MergePiece] = []  # small ones that may find a neighbour
        self._old: MessageSet | None = None  # messages of the old formats, likewise

    def run(self, bounds: Bounds) -> Plan:
        self._bounds = bounds
        done = 0
        for run in singles.find_runs(self._records, bounds, self._rules):
            self._walk(done, run.first)
            done = self._merge_run(run)
        self._walk(done, len(bounds) - 1)
        self._flush()
        self._plan.next_offset = self._next_offset
        return self._plan

    def _walk(self, first: int, after: int) -> None:
        """Take batches one by one; those that can go as they are never leave this loop."""
        records, rules = self._records, self._rules
        bounds = self._bounds[first : after + 1]
        if not isinstance(bounds, list):
            bounds = bounds.tolist()
        unpack, write_front = READ_HEADER.unpack_from, OFFSET_LENGTH_EPOCH.pack_into
        odd = self._odd_attributes()
        codec = None if rules.codec is None else int(rules.codec)
        smallest = self._smallest_alone()
        many = rules.merge_below_records
        largest = rules.max_batch_bytes or (1 << 31)
        far = LARGEST_OFFSET - (1 << 31)
        check = rules.check_crcs
        next_offset = self._next_offset
        append = self._batches.append
        for start, end in pairwise(bounds):
            size = end - start
            if size < HEADER_BYTES:
                self._next_offset = next_offset
                self._take_old(start, end)
                next_offset = self._next_offset
                continue
            fields = unpack(records, start)
            base, length, magic, crc, attributes, last, base_time, max_time, _, count = fields
            if (
                magic == 2
                and not attributes & odd
                and count == last + 1 > 0
                and far > base >= next_offset
                and (size >= smallest[attributes & CODEC_MASK > 0] or count >= many)
                and size <= largest
                and (codec is None or attributes & CODEC_MASK == codec)
            ):
                if check and crc32c(records[start + ATTRIBUTES_AT : end]) != crc:
                    check_crc(records[start:end], Header._make(fields))
                if self._pending or self._old:
                    self._flush()
                write_front(records, start, 0, length, -1)
                if attributes & ~CODEC_MASK:
                    _set_attributes(records, start, attributes & CODEC_MASK)
                view = records[start:end]
                append(
                    OutgoingBatch(view, base, base + last, count, base_time, max_time, None, size)
                )
                next_offset = base + count
            else:
                self._next_offset = next_offset
                self._take_unusual(Header._make(fields), start, end)
                next_offset = self._next_offset
        self._next_offset = next_offset

    def _odd_attributes(self) -> int:
        """Name the attribute bits that take a batch off the fast path."""
        odd = CONTROL
        if self._rules.keep_append_time:
            odd |= LOG_APPEND_TIME
        if self._aborted:
            odd |= TRANSACTIONAL
        return odd

    def _smallest_alone(self) -> tuple[int, int]:
        """Return the sizes from which batches go alone: uncompressed, compressed.

        The only batch of a fetch always does.
        """
        if len(self._bounds) == 2:
            return 0, 0
        return self._rules.merge_below_bytes, self._rules.merge_compressed_below_bytes

    def _take_unusual(self, header: Header, start: int, end: int) -> None:
        """Drop, keep for merging, or rewrite one batch."""
        if header.magic < 2:
            self._take_old(start, end)
            return
        check_header(header)
        batch = self._records[start:end]
        if self._rules.check_crcs:
            check_crc(batch, header)
        next_offset = self._next_offset
        self._next_offset = max(next_offset, header.last_offset + 1)
        if self._is_dropped(header, batch) or header.last_offset < next_offset:
            return
        piece = MergePiece(header, batch, next_offset)
        if self._is_small(header):
            if self._old:
                self._flush()
            self._pending.append(piece)
        else:
            self._flush()
            self._settle(piece)

    def _is_small(self, header: Header) -> bool:
        rules = self._rules
        below = rules.merge_compressed_below_bytes if header.codec_id else rules.merge_below_bytes
        return header.size < below and header.record_count < rules.merge_below_records

    def _is_dropped(self, header: Header, batch: memoryview) -> bool:
        reason = self._reason_to_drop(header, batch)
        if reason is None:
            return False
        self._count(reason)
        return True

    def _reason_to_drop(self, header: Header, batch: memoryview) -> Reason | None:
        if self._aborted and self._aborted.holds(header, batch):
            self._plan.aborted_records += header.record_count
            return Reason.ABORTED
        if header.attributes & CONTROL:
            return Reason.CONTROL
        return None if header.record_count else Reason.EMPTY

    def _settle(self, piece: MergePiece) -> None:
        """Emit one batch alone, changed as little as possible."""
        header, batch, next_offset = piece
        reasons = self._reasons_to_rewrite(header, next_offset)
        if not reasons:
            self._emit(_in_place(header, batch))
            return
        for reason in reasons:
            self._count(reason)
        out = rewrite(header, batch, next_offset, self._rules)
        if out:
            self._emit(out)

    def _reasons_to_rewrite(self, header: Header, next_offset: int) -> list[Reason]:
        rules = self._rules
        reasons = {
            Reason.RESUME: header.base_offset < next_offset,
            Reason.OFFSET_GAPS: not header.is_contiguous,
            Reason.LOG_APPEND_TIME: header.has_append_time and rules.keep_append_time,
            Reason.RECODED: rules.codec is not None and rules.codec != header.codec_id,
        }
        return [reason for reason, holds in reasons.items() if holds]

    def _emit(self, batch: OutgoingBatch) -> None:
        largest = self._rules.max_batch_bytes
        if largest is None or batch.size <= largest:
            self._batches.append(batch)
        else:
            self._count(Reason.TOO_LARGE)
            self._batches += split(batch, largest, self._rules.codec_level)

    def _take_old(self, start: int, end: int) -> None:
        if self._pending:
            self._flush()
        if self._old is None:
            self._old = MessageSet(self._next_offset)
        self._old.add(self._records[start:end], self._rules)
        self._next_offset = max(self._next_offset, self._old.last_offset + 1)
        self._count(Reason.OLD_MAGIC)

    def _flush(self) -> None:
        """Emit what waited for neighbours."""
        pending, self._pending = self._pending, []
        old, self._old = self._old, None
        if len(pending) == 1:
            self._settle(pending[0])
        elif pending:
            self._merge(pending)
        if old:
            for batch in old.batches(self._rules):
                self._emit(batch)

    def _merge(self, pending: list[MergePiece]) -> None:
        for group in merger.group(pending, self._rules):
            if len(group) == 1:
                self._settle(group[0].piece)
                continue
            self._count(Reason.MERGED, len(group))
            out = merger.merge(group, self._rules)
            if out:
                self._emit(out)

    def _merge_run(self, run: singles.SingleRun) -> int:
        """Merge very many tiny batches at once; returns the index of the next batch."""
        self._flush()
        if self._rules.check_crcs:
            self._check_run(run)
        aborted = self._aborted_in(run)
        wanted = run.has_data & (run.headers["base_offset"] >= self._next_offset) & ~aborted
        self._count_run(run, wanted, aborted)
        for batch in singles.merge_run(self._records, run, wanted, self._rules):
            self._emit(batch)
        last = run.headers[-1]
        self._next_offset = max(
            self._next_offset, int(last["base_offset"]) + int(last["last_delta"]) + 1
        )
        return run.after

    def _check_run(self, run: singles.SingleRun) -> None:
        damaged = singles.find_damaged(self._records, run)
        if damaged is not None:
            index = run.first + damaged
            batch = self._records[self._bounds[index] : self._bounds[index + 1]]
            check_crc(batch, read_header(batch))

    def _aborted_in(self, run: singles.SingleRun) -> singles.Flags:
        aborted = np.zeros(len(run.headers), np.bool_)
        if self._aborted:
            for index in range(run.first, run.after):
                batch = self._records[self._bounds[index] : self._bounds[index + 1]]
                aborted[index - run.first] = self._aborted.holds(read_header(batch), batch)
        return aborted

    def _count_run(
        self, run: singles.SingleRun, wanted: singles.Flags, aborted: singles.Flags
    ) -> None:
        markers = int(run.is_marker.sum())
        self._count(Reason.CONTROL, markers)
        self._count(Reason.EMPTY, int((~run.has_data).sum()) - markers)
        self._count(Reason.ABORTED, int(aborted.sum()))
        self._count(Reason.MERGED, int(wanted.sum()))
        self._plan.aborted_records += int(aborted.sum())

    def _count(self, reason: Reason, times: int = 1) -> None:
        if times:
            self._slow[reason] = self._slow.get(reason, 0) + times


def _set_attributes(records: memoryview, start: int, attributes: int) -> None:
    """Change them, and forget the CRC, which fits no longer."""
    CRC.pack_into(records, start + CRC_AT, 0)
    ATTRIBUTES.pack_into(records, start + ATTRIBUTES_AT, attributes)


def _in_place(header: Header, batch: memoryview) -> OutgoingBatch:
    """Change the few header bytes that the target must not see."""
    OFFSET_LENGTH_EPOCH.pack_into(batch, 0, 0, header.length, -1)
    if header.attributes != header.codec_id:
        _set_attributes(batch, 0, header.codec_id)
    return OutgoingBatch(
        batch, header.base_offset, header.last_offset, header.record_count,
        header.base_timestamp, header.max_timestamp, None, header.size,
    )  # fmt: skip
