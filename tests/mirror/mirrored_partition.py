"""A copied partition in memory: crashes, gaps, markers, and the topic of its offset map."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

from sparkmirror.batches.outgoing import Runs
from sparkmirror.mirror.translation.offset_map import OffsetMap
from sparkmirror.mirror.translation.offset_map_chunks import Chunk, ChunkStart
from sparkmirror.mirror.translation.offset_map_writer import OffsetMapWriter
from sparkmirror.mirror.translation.offsets import OffsetPair

MAX_CHUNK_RUNS = 3
"""Small, so that maps have several chunks."""


class MirroredPartition:
    """One source partition, its copy, and a reader of its offset map that follows live."""

    def __init__(self, max_runs: int = 1 << 16) -> None:
        self.source: list[int] = []
        self.next_upstream = 0
        self.target: list[int | None] = []
        self.map_topic: list[tuple[OffsetPair, bytes]] = []
        self.position = self.committed = 0
        self._max_runs = max_runs
        self.map = OffsetMap(max_runs)
        self.writer = self._new_writer()

    def produce(self, count: int, missing: int = 0) -> None:
        """Records on the source, after offsets that no consumer will ever see."""
        first = self.next_upstream + missing
        self.source += range(first, first + count)
        self.next_upstream = first + count

    def compact(self, every: int) -> None:
        """Remove every n-th record but the last."""
        self.source = [
            offset
            for n, offset in enumerate(self.source)
            if (n + 1) % (every + 2) or offset == self.source[-1]
        ]

    def copy(self, count: int) -> None:
        """Copy one batch of at most this many records."""
        start = bisect_left(self.source, self.position)
        batch = self.source[start : start + count]
        if not batch:
            return
        runs = _runs(batch)
        base = len(self.target)
        self.target += batch
        self.position = batch[-1] + 1
        self.writer.append(batch[0], runs if len(runs) > 1 else None, len(batch), base)

    def put_marker(self) -> None:
        """Something else takes an offset of the target."""
        self.target.append(None)

    def flush(self) -> None:
        """Write the map; the reader sees it at once."""
        for first, value in self.writer.take_changed():
            self.map_topic.append((first, value))
            self.map.apply(Chunk.decode(value))

    def commit(self) -> None:
        """Store the position."""
        self.committed = self.position

    def crash(self) -> None:
        """Lose what was neither flushed nor committed, and start again."""
        self.position = self.committed
        self.writer = self._new_writer()

    def mark_start(self) -> None:
        """Say where a task begins."""
        self.writer.append(self.position, None, 0, len(self.target))
        self.flush()

    def reload(self) -> None:
        """A new reader reads the map's topic."""
        self.map = OffsetMap(self._max_runs)
        for _, value in self.map_topic:
            self.map.apply(Chunk.decode(value))

    def compact_map_topic(self) -> None:
        """Keep the last record of each key, where it is."""
        last = {first: at for at, (first, _) in enumerate(self.map_topic)}
        self.map_topic = [self.map_topic[at] for at in sorted(last.values())]

    def prune(self, upstream_log_start: int) -> None:
        """The source deletes its first records; the map's topic gets tombstones and is cleaned."""
        self.source = self.source[bisect_left(self.source, upstream_log_start) :]
        unneeded = set(self.map.prune(upstream_log_start))
        self.map_topic = [record for record in self.map_topic if record[0] not in unneeded]

    def read_from(self, downstream: int) -> list[int]:
        """What a consumer sees that starts there."""
        return [offset for offset in self.target[downstream:] if offset is not None]

    def check_nothing_is_missed(self) -> None:
        """Invariants A, B, C and D, for every offset that the map covers."""
        _check_runs(self.map)
        last_at = {u: at for at, u in enumerate(self.target) if u is not None}
        on_both = [u for u in self.source if u in last_at]
        # The latest position from which all records at or above the n-th one are seen.
        latest = [len(self.target)]
        for upstream in reversed(on_both):
            latest.append(min(latest[-1], last_at[upstream]))
        latest.reverse()
        before = -1
        for upstream in range(self.next_upstream + 3):
            position = self.map.translate(upstream)
            if position is None:
                assert before == -1, "invariant D: covered offsets follow each other"
                continue
            assert position >= before, f"invariant D at {upstream}"
            assert position <= latest[bisect_left(on_both, upstream)], f"invariant C at {upstream}"
            before = position

    def check_order(self, upstream: int) -> None:
        """A consumer at this offset sees each record from there on for the first time in order."""
        position = self.map.translate(upstream)
        if position is None:
            return
        seen = [u for u in dict.fromkeys(self.read_from(position)) if u >= upstream]
        assert seen == sorted(seen)

    def check_exact(self, from_upstream: int) -> None:
        """Nothing is read twice, from this offset on; all of the copy must be in the map."""
        for upstream in range(from_upstream, self.position + 1):
            position = self.map.translate(upstream)
            assert position is not None
            expected = self.source[bisect_left(self.source, upstream) :]
            copied = [u for u in expected if u < self.position]
            assert self.read_from(position) == copied, upstream

    def _new_writer(self) -> OffsetMapWriter:
        return OffsetMapWriter(ChunkStart.SESSION, max_runs=MAX_CHUNK_RUNS)


def _runs(offsets: list[int]) -> Runs:
    runs: list[tuple[int, int]] = []
    for offset in offsets:
        if runs and sum(runs[-1]) == offset:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((offset, 1))
    return tuple(runs)


def _check_runs(offset_map: OffsetMap) -> None:
    for left, right in pairwise(offset_map.runs):
        rises = right.upstream >= left.end_upstream and right.downstream >= left.end_downstream
        assert rises, f"invariant A: {left}, {right}"
        continues = right.first == left.end
        assert not continues, f"invariant B: {left}, {right}"
