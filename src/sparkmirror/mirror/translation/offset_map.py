"""Where every copied record of a partition is on the target: exact offset translation.

Runs on: worker, in the checkpoint connector. Pure: the reader of the map's topic applies its chunks
here, in order. The copy task writes them (offset_map_writer, offset_map_chunks).

MirrorMaker 2 keeps a few syncs and moves groups back to the nearest one. The map has all records,
as runs without gaps on either side:

    upstream     0 1 2 3 4     7 8     9 ...     compaction removed 5 and 6
    downstream   0 1 2 3 4     5 6   8 9 ...     7 is not ours: a marker, another producer
    runs         (0, 0, 5)  (7, 5, 2)  (9, 8, ...)

A group at upstream offset N continues after the last copied record below N, or at N's own record.
That is exact, and it stays safe when parts of the map are missing: consumers then read some records
twice, but miss none.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator

from sparkmirror.batches.outgoing import Runs
from sparkmirror.mirror.translation.offset_map_chunks import Chunk, ChunkStart, OffsetRun
from sparkmirror.mirror.translation.offsets import OffsetPair

# 24 bytes each. Only partitions with gaps have many: transactions, compaction.
MAX_RUNS = 1 << 16


class OffsetMap:
    """Upstream to downstream offsets of one partition.

    Invariant A: runs rise on both sides and do not overlap on either.
    Invariant B: a run does not continue the one before it: they would be one.
    Invariant C: every record at or above N that was copied, and that the source still had when it
                 was copied last, is on the target at or after translate(N).
    Invariant D: translate(N) does not fall when N rises.
    Exact: without a crash, no record below N is at or after translate(N), for N up to the end.

    After a crash records are copied again. The later copy is used, so that groups read nothing
    twice because of the crash, but only after it has caught up with the earlier one; if the source
    is lost before that, only the earlier copy is complete:

        target   | 0 1 2 3 4 5 6 7 | 4 5 6      | 4 5 6 7 8
        N = 5              ^                        ^           when the later copy ...
                           is behind, and           has caught up

    Records that the earlier task copied without writing a chunk also count as copied: as many as
    there are offsets between the known ones and the later task's start.

    One partition has one writer at a time. Owned by one thread.
    """

    def __init__(self, max_runs: int = MAX_RUNS) -> None:
        self._max_runs = max_runs
        self._chunks: dict[OffsetPair, None] = {}
        self._last_chunk: OffsetPair | None = None
        self.clear()

    def clear(self) -> None:
        """Forget all records: they belong to another topic of the same name."""
        self._used = _Copy(self._max_runs)
        self._later: _LaterCopy | None = None
        self._is_new_session = False
        # Whether the target stored something where it had stored other records before.
        self.target_lost_records = False

    @property
    def runs(self) -> tuple[OffsetRun, ...]:
        """The runs that `translate` uses."""
        return tuple(self._used)

    @property
    def end_upstream(self) -> int:
        """The upstream offset after the last record that `translate` knows of."""
        return self._used.end_upstream

    @property
    def has_records(self) -> bool:
        """Whether any record was copied, with or without a chunk; a started task is not enough."""
        return self._later is not None or self._used.has_records

    @property
    def is_catching_up(self) -> bool:
        """Whether records are being copied again and the later copy is not in use yet."""
        return self._later is not None

    def translate(self, upstream_offset: int) -> int | None:
        """The offset on the target where a consumer at this upstream offset continues.

        None if the offset is before everything that the map covers, unless the map begins with the
        target's first record: nothing can have been copied before that. Past the map's end it is
        the position after the last copied record: later records will be stored there or after it.
        """
        return self._used.position(upstream_offset)

    def begin_session(self) -> None:
        """A task starts: earlier records may have been copied without a chunk."""
        self._later = None
        self._is_new_session = True

    def append(
        self, first_upstream: int, runs: Runs | None, count: int, downstream_base: int
    ) -> None:
        """Add a batch: as in `OffsetMapWriter.append`, for a map that is filled without chunks."""
        downstream = downstream_base
        for upstream, length in runs or ((first_upstream, count),):
            self._add(OffsetRun(upstream, downstream, length))
            downstream += length

    def apply(self, chunk: Chunk) -> None:
        """Add the next record of the map's topic. Tombstones can be ignored."""
        known_end = self._newest.end_downstream
        is_known = chunk.first == self._last_chunk
        has_grown = is_known and chunk.runs[-1].end_downstream >= known_end
        if not has_grown:
            self._last_chunk = chunk.first
            self._chunks.pop(chunk.first, None)
            self._chunks[chunk.first] = None
            self._begin(chunk.start)
        for run in _after(chunk, known_end) if has_grown else chunk.runs:
            self._add(run)

    def prune(self, upstream_log_start: int) -> tuple[OffsetPair, ...]:
        """Remove runs that the source has deleted, except the last that begins at or before it.

        Returns where unneeded chunks begin: their keys may get tombstones.
        """
        self._used.forget_before(upstream_log_start)
        if self._later is not None:
            return ()
        needed = _needed_chunks(list(self._chunks), upstream_log_start)
        unneeded = tuple(first for first in self._chunks if first not in needed)
        for first in unneeded:
            del self._chunks[first]
        return unneeded

    @property
    def _newest(self) -> _Copy:
        return self._used if self._later is None else self._later.copy

    def _begin(self, start: ChunkStart) -> None:
        if start is ChunkStart.NEW_LOG:
            self.clear()
        elif start is ChunkStart.SESSION:
            self.begin_session()

    def _add(self, run: OffsetRun) -> None:
        self._forget_truncated(run.downstream)
        unreported = run.downstream - self._used.end_downstream
        copied_again = run.upstream < self._newest.end_upstream
        may_have_missed_some = self._is_new_session and unreported > 0
        if self._used and (copied_again or may_have_missed_some):
            self._later = _LaterCopy(self._max_runs, self._used.end_upstream, unreported)
        self._is_new_session = False
        if self._later is None:
            self._used.add(run)
            return
        self._later.add(run)
        if self._later.has_caught_up:
            self._used.replace_from(self._later.copy)
            self._later = None

    def _forget_truncated(self, downstream: int) -> None:
        """Forget records from this offset on: the target now stores something else there."""
        if self._used.end_downstream > downstream:
            self.target_lost_records = True
            self._used.cut_downstream(downstream)
        if self._later is not None and self._later.copy.end_downstream > downstream:
            self.begin_session()


class _Copy:
    """Runs of records in the order of copying, as three columns."""

    __slots__ = ("_downstream", "_lengths", "_max_runs", "_upstream")

    def __init__(self, max_runs: int) -> None:
        self._max_runs = max_runs
        self._upstream = array("q")
        self._downstream = array("q")
        self._lengths = array("q")

    def __len__(self) -> int:
        return len(self._upstream)

    def __iter__(self) -> Iterator[OffsetRun]:
        return map(OffsetRun, self._upstream, self._downstream, self._lengths)

    @property
    def has_records(self) -> bool:
        """Whether there are records, and not only the starts of tasks."""
        return any(self._lengths)

    @property
    def end_upstream(self) -> int:
        return self._upstream[-1] + self._lengths[-1] if self._upstream else 0

    @property
    def end_downstream(self) -> int:
        return self._downstream[-1] + self._lengths[-1] if self._upstream else 0

    def position(self, upstream_offset: int) -> int | None:
        """The position after the last record below the offset, or that of its own record."""
        index = bisect_right(self._upstream, upstream_offset) - 1
        if index < 0:
            is_whole = bool(self._upstream) and self._downstream[0] == 0
            return 0 if is_whole else None
        behind = upstream_offset - self._upstream[index]
        return self._downstream[index] + min(behind, self._lengths[index])

    def add(self, run: OffsetRun) -> None:
        if self._upstream and run.first == (self.end_upstream, self.end_downstream):
            self._lengths[-1] += run.length
            return
        self._upstream.append(run.upstream)
        self._downstream.append(run.downstream)
        self._lengths.append(run.length)
        if len(self._upstream) > self._max_runs:
            self._thin_out()

    def replace_from(self, later: _Copy) -> None:
        """Replace everything from the first record of `later` on."""
        start = later._upstream[0]
        while self._upstream and self.end_upstream > start:
            self._shorten(start - self._upstream[-1])
        for run in later:
            self.add(run)

    def cut_downstream(self, downstream: int) -> None:
        """Forget records at or above a downstream offset."""
        while self._upstream and self.end_downstream > downstream:
            self._shorten(downstream - self._downstream[-1])

    def forget_before(self, upstream_offset: int) -> None:
        """Forget runs below an offset, except the last that begins at or before it."""
        index = max(0, bisect_right(self._upstream, upstream_offset) - 1)
        for column in self._columns:
            del column[:index]

    @property
    def _columns(self) -> tuple[array[int], array[int], array[int]]:
        return self._upstream, self._downstream, self._lengths

    def _shorten(self, length: int) -> None:
        """Keep this many records in the last run, or drop it."""
        if length > 0:
            self._lengths[-1] = length
            return
        for column in self._columns:
            column.pop()

    def _thin_out(self) -> None:
        """Drop every second run of the older half: a missing run only makes groups go back."""
        for column in self._columns:
            del column[1 : self._max_runs // 2 : 2]


class _LaterCopy:
    """Records that are being copied again, and how far the copy must get before it is used."""

    def __init__(self, max_runs: int, used_end_upstream: int, unreported: int) -> None:
        self.copy = _Copy(max_runs)
        self._used_end_upstream = used_end_upstream
        self._unreported = unreported

    def add(self, run: OffsetRun) -> None:
        self.copy.add(run)
        beyond = run.end_upstream - max(run.upstream, self._used_end_upstream)
        self._unreported -= max(0, beyond)

    @property
    def has_caught_up(self) -> bool:
        return self.copy.end_upstream >= self._used_end_upstream and self._unreported <= 0


def _after(chunk: Chunk, downstream: int) -> Iterator[OffsetRun]:
    """The runs of a chunk beyond a downstream offset."""
    for run in chunk.runs:
        known = min(run.length, max(0, downstream - run.downstream))
        if known < run.length:
            yield OffsetRun(run.upstream + known, run.downstream + known, run.length - known)


def _needed_chunks(written: list[OffsetPair], upstream_log_start: int) -> set[OffsetPair]:
    """The chunks, in order of writing, that are needed and that no later one covers."""
    needed: list[OffsetPair] = []
    for first in reversed(written):
        if not needed or first.upstream < needed[-1].upstream:
            needed.append(first)
        if first.upstream <= upstream_log_start:
            break
    return set(needed)
