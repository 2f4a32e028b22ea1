"""Collects where records were copied to, as chunks of an exact offset map.

Runs on: executor, in the copy loop, one per partition. Pure: the caller writes the result
of `take_changed`. It keeps only the open chunk, so its memory is bounded, and a new task need not
read anything: its chunks replace earlier ones (see offset_map).
"""

from __future__ import annotations

from typing import NamedTuple

from sparkmirror.batches.outgoing import Runs
from sparkmirror.mirror.translation.offset_map_chunks import (
    ChunkStart,
    OffsetRun,
    encode_header,
    encode_run,
)
from sparkmirror.mirror.translation.offsets import OffsetPair

# A growing chunk is rewritten at every flush, so it must stay small; a topic without gaps needs one
# run, about ten bytes.
MAX_CHUNK_RUNS = 4096
MAX_CHUNK_BYTES = 32 << 10


class EncodedChunk(NamedTuple):
    """A record of the map's topic, without topic and partition in its key."""

    first: OffsetPair
    value: bytes


class OffsetMapWriter:
    """The map of what one task copied of one partition.

    `start` relates the first record to earlier ones: SESSION for a task that starts, CONTINUES if
    positions, map and records are written in one transaction, NEW_LOG if the source topic was
    recreated.

    Obligations: append only stored batches, in the order in which the target stored them. Flush
    regularly; records that were copied but not flushed before a crash may be read twice, but are
    never missed.
    """

    def __init__(
        self,
        start: ChunkStart,
        max_runs: int = MAX_CHUNK_RUNS,
        max_bytes: int = MAX_CHUNK_BYTES,
    ) -> None:
        self._max_runs = max_runs
        self._max_bytes = max_bytes
        self._next_start = start
        self._open: _OpenChunk | None = None
        self._changed: dict[OffsetPair, _OpenChunk] = {}

    def append(
        self, first_upstream: int, runs: Runs | None, count: int, downstream_base: int
    ) -> None:
        """Add a batch of `count` records that the target stored at `downstream_base`.

        Without `runs` its upstream offsets have no gaps; `runs` are (first, count) of each run.
        Count 0 marks where a task begins: the first offset that it will read, and the target's end.
        Flushed before anything is copied, this covers a crash before the first flush.
        """
        downstream = downstream_base
        for upstream, length in runs or ((first_upstream, count),):
            self._add(OffsetRun(upstream, downstream, length))
            downstream += length

    def start_new_log(self) -> None:
        """Treat later batches as those of another topic with the same name."""
        self._open = None
        self._next_start = ChunkStart.NEW_LOG

    def take_changed(self) -> list[EncodedChunk]:
        """Chunks to write, in this order, because they are new or have grown."""
        changed, self._changed = self._changed, {}
        return [EncodedChunk(first, chunk.encode()) for first, chunk in changed.items()]

    def _add(self, run: OffsetRun) -> None:
        chunk = self._open
        if chunk is None or not chunk.can_take(run) or self._is_full(chunk):
            chunk = self._open = _OpenChunk(self._next_start, run)
            self._next_start = ChunkStart.CONTINUES
            # Written last, even if an unwritten chunk begins at the same offsets.
            self._changed.pop(run.first, None)
        else:
            chunk.add(run)
        self._changed[chunk.first] = chunk

    def _is_full(self, chunk: _OpenChunk) -> bool:
        return chunk.run_count >= self._max_runs or chunk.size_bytes >= self._max_bytes


class _OpenChunk:
    """A chunk whose last run may still grow; the others are encoded already."""

    def __init__(self, start: ChunkStart, first: OffsetRun) -> None:
        self.first = first.first
        self.run_count = 1
        self._encoded = bytearray(encode_header(start))
        self._previous = OffsetRun(0, 0, 0)
        self._last = first

    @property
    def size_bytes(self) -> int:
        """Size without the last run."""
        return len(self._encoded)

    def can_take(self, run: OffsetRun) -> bool:
        """Whether a run rises on both sides: a chunk cannot express a copy that went back."""
        last = self._last
        return run.upstream >= last.end_upstream and run.downstream >= last.end_downstream

    def add(self, run: OffsetRun) -> None:
        last = self._last
        if run.first == last.end:
            self._last = last._replace(length=last.length + run.length)
            return
        self._encoded += encode_run(self._previous, last)
        self._previous, self._last = last, run
        self.run_count += 1

    def encode(self) -> bytes:
        return bytes(self._encoded) + encode_run(self._previous, self._last)
