"""Reads an internal topic to its end, repeatedly, and returns each record once.

Runs on: worker, blocking, on the caller's thread. The topics are compacted and small, so each call
returns all new records at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sparkmirror.batches.bounds import find_batches
from sparkmirror.batches.header import (
    CONTROL,
    MAGIC_AT,
    check_header,
    read_header,
    read_leader_epoch,
)
from sparkmirror.batches.message_set import decode_message
from sparkmirror.batches.records import Record, decode
from sparkmirror.batches.transactions import AbortedTransactions
from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import DeniedError, KafkaError, TransportError
from sparkmirror.mirror.permissions import Operation, topic_permission
from sparkmirror.types import TopicPartition
from sparkmirror.wire.access import response_error
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.fetch.fetcher import Fetcher, Records, Taken
from sparkmirror.wire.fetch.leader_epochs import EpochRows
from sparkmirror.wire.fetch.offset_fetcher import Range
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.net.event_loop import EventLoop
from sparkmirror.wire.protocol.error_codes import UNKNOWN_TOPIC_OR_PARTITION, error_code
from sparkmirror.wire.protocol.fetch_messages import Limits

KEEP_BYTES = 4 << 20
# The most that a batch may decompress to: settings and offsets are kilobytes.
LIMIT_BYTES = 32 << 20


def read_topic(
    config: ClientConfig, topic: str, partitions: int, seconds: float
) -> Sequence[Record]:
    """All committed records up to the ends of now, in order by partition.

    The topic must exist: one that cannot be found for a moment must not count as empty.

    Raises:
        TransportError: it takes too long.
    """
    reader = LogReader(config, topic, partitions, must_exist=True)
    try:
        return reader.catch_up(seconds)
    finally:
        reader.close()


class LogReader:
    """A position in all partitions of a topic, read_committed, and the connections to read on.

    Does nothing between two calls. Owned by one thread, except for `cancel`.
    """

    def __init__(
        self, config: ClientConfig, topic: str, partitions: int = 1, *, must_exist: bool = False
    ) -> None:
        """A topic that does not exist counts as empty, unless it `must_exist`."""
        self.topic = topic
        # Whether the last `catch_up` started at the topic's beginning again, because the topic was
        # recreated or unread records were deleted: forget all earlier records.
        self.restarted = False
        self._alias = config.alias
        self._must_exist = must_exist
        self._loop = EventLoop()
        self._cluster = NetworkClient(self._loop, config, BufferPool(KEEP_BYTES))
        limits = Limits(500, 1, 8 << 20, 1 << 20, True, "")
        self._fetcher = Fetcher(self._cluster, limits, self, config.request_timeout_ms / 1000)
        self._partitions = [TopicPartition(topic, at) for at in range(partitions)]
        self._topic_id: bytes | None = None
        self._positions: dict[TopicPartition, int] = {}
        self._epochs: dict[TopicPartition, EpochRows] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._open: set[TopicPartition] = set()
        self._records: list[Record] = []
        self._is_other_log = False
        self._starts_over = False
        self._gave_up = False
        self._last_error: KafkaError | None = None

    def catch_up(self, seconds: float) -> Sequence[Record]:
        """Records added since the last call, up to the current ends, in order by partition.

        Raises:
            TransportError: it takes too long. The next call continues, and nothing is lost.
            BrokerError: the topic may not be read.
        """
        deadline = self._loop.clock() + seconds
        self._last_error = None
        # First notice connections that were closed since the last call.
        self._loop.run_once(0.0)
        self._read(deadline, seconds)
        while self._is_other_log:
            self._forget()
            self._read(deadline, seconds)
        self.restarted, self._starts_over = self._starts_over, False
        records, self._records = self._records, []
        return records

    def cancel(self) -> None:
        """Make a `catch_up` in progress, and all later ones, fail soon; from any thread."""
        self._gave_up = True

    def close(self) -> None:
        """Close the connections."""
        self._cluster.close()
        self._loop.close()

    # -- one pass ----------------------------------------------------------------------------------

    def _read(self, deadline: float, seconds: float) -> None:
        self._ends.clear()
        self._open.clear()
        # The fetcher asks for metadata and for the range of each partition first.
        fetched = {
            tp: self._fetcher.add(tp, None, self._epochs.get(tp, ())) for tp in self._partitions
        }
        try:
            in_time = self._loop.run_until(self._is_over, deadline - self._loop.clock())
            code = self._topic_error()
        finally:
            for tp, partition in fetched.items():
                self._epochs[tp] = partition.epochs.rows
                self._fetcher.remove(tp)
        if code and not error_code(code).retriable:
            needed = topic_permission(Operation.READ, self.topic)
            raise response_error(self._cluster.config, self._what, code, needed)
        if self._gave_up:
            raise TransportError(f"{self._what}: given up")
        if not in_time:
            raise self._too_late(seconds, code)

    def _is_over(self) -> bool:
        is_complete = len(self._ends) == len(self._partitions) and not self._open
        code = self._topic_error()
        is_absent = code == UNKNOWN_TOPIC_OR_PARTITION and not self._must_exist
        is_refused = code != 0 and not error_code(code).retriable
        return is_complete or is_absent or is_refused or self._is_other_log or self._gave_up

    def _topic_error(self) -> int:
        """Why the topic cannot be read; 0 also before the first response of this pass."""
        if isinstance(self._last_error, DeniedError):
            return self._last_error.code
        is_looked_up = self._cluster.metadata.knows(self.topic)
        return self._cluster.metadata.topic_errors.get(self.topic, 0) if is_looked_up else 0

    def _forget(self) -> None:
        self._topic_id = None
        self._positions.clear()
        self._epochs.clear()
        self._records.clear()
        self._is_other_log = False
        self._starts_over = True

    @property
    def _what(self) -> str:
        return f"read topic '{self.topic}' on '{self._alias}'"

    def _too_late(self, seconds: float, code: int) -> TransportError:
        topic_error = error_code(code).name if code else "no reason known"
        why = self._last_error or self._cluster.last_error or topic_error
        return TransportError(f"{self._what}: not done in {seconds:g} s: {why}")

    # -- from the fetcher --------------------------------------------------------------------------

    def request_fetch(self) -> bool:
        """Only while there is something to read, so that no long poll is left pending."""
        return bool(self._open)

    def request_take(self) -> bool:
        """Always: records are decoded at once, so the buffer is free."""
        return True

    def on_records(self, records: Records) -> Taken:
        """Decode at once; keep no reference to the buffer."""
        bounds, _ = find_batches(records.view)
        next_offset = records.next_offset
        aborted = AbortedTransactions(records.aborted)
        found: list[Record] = []
        for start, end in pairwise(bounds):
            some, next_offset = _decode(records.view[start:end], aborted)
            found += [record for record in some if record.offset >= records.next_offset]
        self._records += found
        self._stand(records.tp, next_offset)
        epoch = read_leader_epoch(records.view, bounds[-2]) if len(bounds) > 1 else -1
        return Taken(next_offset, epoch)

    def on_round(self) -> None:
        """Nothing to do."""

    def on_out_of_range(self, tp: TopicPartition, position: int | None, found: Range) -> int:
        """The log's range is known: continue at our position if it is within the range."""
        start, end, _ = found
        known = self._positions.get(tp)
        topic_id = self._cluster.metadata.topic_ids.get(self.topic)
        is_other_topic = self._topic_id not in (None, topic_id)
        is_lost = position is not None or (known is not None and not start <= known <= end)
        if is_other_topic or is_lost:
            self._is_other_log = True
            return start
        self._topic_id = topic_id
        self._ends[tp] = end
        self._open.add(tp)
        next_offset = start if known is None else known
        self._stand(tp, next_offset)
        return next_offset

    def on_truncated(self, tp: TopicPartition, position: int, next_offset: int) -> None:
        """Records that we read may be gone (KIP-320): read everything again."""
        self._is_other_log = True

    def on_recreated(self, tp: TopicPartition, position: int) -> None:
        """The topic was recreated while we read it: the records so far are of the old one."""
        self._is_other_log = True

    def on_partition_error(self, tp: TopicPartition, error: KafkaError) -> None:
        """Keep the error for the message of a timeout."""
        self._last_error = error

    def _stand(self, tp: TopicPartition, next_offset: int) -> None:
        self._positions[tp] = next_offset
        if next_offset >= self._ends[tp]:
            self._open.discard(tp)


def _decode(batch: memoryview, aborted: AbortedTransactions) -> tuple[list[Record], int]:
    """The committed data records of a batch, and the offset after it."""
    if batch[MAGIC_AT] < 2:
        old, _ = decode_message(batch)
        return old, int.from_bytes(batch[:8], "big") + 1
    header = read_header(batch)
    check_header(header)
    if aborted.holds(header, batch) or header.attributes & CONTROL:
        return [], header.last_offset + 1
    return decode(batch, limit_bytes=LIMIT_BYTES), header.last_offset + 1
