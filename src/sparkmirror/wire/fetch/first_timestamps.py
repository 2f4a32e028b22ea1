"""Asks a cluster for the timestamps of single records, once, within a time limit.

Runs on: worker, blocking, on any thread. Of each partition one batch is fetched, as far as a
response has room for several, and only its header is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sparkmirror.batches.header import HEADER_BYTES, MAGIC_AT, read_header
from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import KafkaError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.fetch.fetcher import Fetcher, Records, Taken
from sparkmirror.wire.fetch.offset_fetcher import Range
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.net.event_loop import EventLoop
from sparkmirror.wire.protocol.fetch_messages import Limits

# A broker sends at least one batch, and of others what is smaller than this: most batches are.
# Many of those fit into one response.
LIMITS = Limits(200, 1, 4 << 20, 64 << 10, False, "")
KEEP_BYTES = 4 << 20
MAGIC = 2


class FirstRecord(NamedTuple):
    """The batch at an offset: its first record's timestamp, None if it is in an old format."""

    offset: int
    timestamp_ms: int | None


def fetch_first_timestamps(
    config: ClientConfig, offsets: Mapping[TopicPartition, int], seconds: float
) -> dict[TopicPartition, FirstRecord]:
    """Of each partition the batch at this offset; those that cannot be read in time are left out.

    Where retention has deleted the offset, it is the batch at the beginning of the log.
    """
    loop = EventLoop()
    cluster = NetworkClient(loop, config, BufferPool(KEEP_BYTES), is_trial=True)
    try:
        question = _Headers(cluster, offsets, config.request_timeout_ms / 1000)
        loop.run_until(question.is_complete, seconds)
        return question.found
    finally:
        cluster.close()
        loop.close()


class _Headers:
    """Partitions of which no header has come yet; a `FetchListener`."""

    def __init__(
        self, cluster: NetworkClient, offsets: Mapping[TopicPartition, int], timeout: float
    ) -> None:
        self.found: dict[TopicPartition, FirstRecord] = {}
        self._open = set(offsets)
        self._fetcher = Fetcher(cluster, LIMITS, self, timeout)
        for tp, offset in offsets.items():
            self._fetcher.add(tp, offset)

    def is_complete(self) -> bool:
        return not self._open

    def request_fetch(self) -> bool:
        """As long as one is missing."""
        return bool(self._open)

    def request_take(self) -> bool:
        """Always: nothing is kept."""
        return True

    def on_records(self, records: Records) -> Taken:
        """Read the first header; the partition is done."""
        view, timestamp = records.view, None
        if len(view) >= HEADER_BYTES and view[MAGIC_AT] >= MAGIC:
            header = read_header(view)
            timestamp = header.max_timestamp if header.has_append_time else header.base_timestamp
        self.found[records.tp] = FirstRecord(records.next_offset, timestamp)
        self._open.discard(records.tp)
        self._fetcher.pause(records.tp)
        return Taken(records.next_offset)

    def on_round(self) -> None:
        """Nothing waits for it."""

    def on_out_of_range(self, tp: TopicPartition, position: int | None, found: Range) -> int:
        """Retention was there first, or the log is shorter than it was."""
        del position
        if found.start == found.end:
            self._open.discard(tp)
        return found.start

    def on_truncated(self, tp: TopicPartition, position: int, next_offset: int) -> None:
        """The next attempt asks for another offset."""
        self._open.discard(tp)

    def on_recreated(self, tp: TopicPartition, position: int) -> None:
        """The next attempt is about another topic."""
        self._open.discard(tp)

    def on_partition_error(self, tp: TopicPartition, error: KafkaError) -> None:
        """It stays unknown."""
        if not error.retriable:
            self._open.discard(tp)
