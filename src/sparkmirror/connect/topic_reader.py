"""Reads a whole internal topic to its end.

Runs on: worker, blocking. The topics are compacted and small.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sparkmirror.batches.forward import find_batches
from sparkmirror.batches.header import CONTROL, read_header
from sparkmirror.batches.records import Record, decode
from sparkmirror.batches.transactions import AbortedTransactions
from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import KafkaError, TransportError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.buffers import BufferPool
from sparkmirror.wire.cluster import Cluster
from sparkmirror.wire.fetch_messages import Limits
from sparkmirror.wire.fetcher import Fetcher, Records
from sparkmirror.wire.loop import Loop

KEEP_BYTES = 4 << 20


class TopicReader:
    """One pass over all partitions of a topic, read_committed, to the ends found at its start."""

    def __init__(self, config: ClientConfig, topic: str, partitions: int) -> None:
        self._topic = topic
        self._alias = config.alias
        self._loop = Loop()
        self._cluster = Cluster(self._loop, config, BufferPool(KEEP_BYTES))
        limits = Limits(500, 1, 8 << 20, 1 << 20, True, "")
        self._fetcher = Fetcher(self._cluster, limits, self, config.request_timeout_ms / 1000)
        self._open = {TopicPartition(topic, at) for at in range(partitions)}
        self._ends: dict[TopicPartition, int] = {}
        self._last_error: KafkaError | None = None
        self.records: list[Record] = []

    def read(self, seconds: float) -> Sequence[Record]:
        """All records, each partition's in order; TransportError when it takes too long."""
        for tp in sorted(self._open):
            self._fetcher.add(tp, None)
        try:
            if not self._loop.run_until(lambda: not self._open, seconds):
                why = self._last_error or self._cluster.last_error or "no reason known"
                raise TransportError(
                    f"read topic '{self._topic}' on '{self._alias}': not done in {seconds:.0f} s: "
                    f"{why}"
                )
        finally:
            self._cluster.close()
            self._loop.close()
        return self.records

    # -- from the fetcher --------------------------------------------------------------------------

    def may_fetch(self) -> bool:
        """Always: the records are small."""
        return True

    def on_records(self, records: Records) -> int:
        """Decode at once; nothing of the buffer is kept."""
        bounds, _ = find_batches(records.view)
        next_offset = records.next_offset
        aborted = AbortedTransactions(records.aborted)
        for start, end in pairwise(bounds):
            batch = records.view[start:end]
            header = read_header(batch)
            next_offset = header.last_offset + 1
            if not aborted.holds(header, batch) and not header.attributes & CONTROL:
                self.records += [r for r in decode(batch) if r.offset >= records.next_offset]
        self._check_end(records.tp, next_offset)
        return next_offset

    def on_round(self) -> None:
        """Nothing waits for it."""

    def on_out_of_range(
        self, tp: TopicPartition, position: int | None, start: int, end: int
    ) -> int:
        """The range of the log is known: read all of it."""
        self._ends[tp] = end
        self._check_end(tp, start)
        return start

    def on_recreated(self, tp: TopicPartition, position: int) -> None:
        """Cannot happen within one pass that matters: reading starts again."""

    def on_partition_error(self, tp: TopicPartition, error: KafkaError) -> None:
        """Kept for the message of a time-out."""
        self._last_error = error

    def _check_end(self, tp: TopicPartition, next_offset: int) -> None:
        if next_offset >= self._ends[tp]:
            self._open.discard(tp)
