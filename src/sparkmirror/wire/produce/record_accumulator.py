"""The batches that wait or are in flight, and what owners learn of them.

Runs on: executor, on the event loop's thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Any, Generic, Protocol, TypeVar

from sparkmirror.errors import BrokerError, KafkaError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.net.buffer_pool import PooledBuffer

BatchBytes = memoryview | bytearray
P = TypeVar("P")


class Completion(Protocol[P]):
    """Learns what became of its batches; called on the loop's thread.

    Each batch names its own: one producer carries records and positions for different owners.
    """

    def on_stored(self, tp: TopicPartition, batch: ProducerBatch[P]) -> None:
        """The batch is stored at `batch.offset` (-1 when the broker no longer knows). In order."""

    def on_rejected(
        self, tp: TopicPartition, batch: ProducerBatch[P], error: BrokerError
    ) -> Replacement:
        """The target rejects it: return what to send instead, or raise RefusedError."""


class ProducerBatch(Generic[P]):
    """One batch for a broker: its bytes, the buffer they lie in, and what learns of its end.

    The bytes stay as they are while a request carries them: until its response comes or its
    connection is closed, which empties the connection's outbox. `payload` is what `completion`
    needs to know.
    """

    __slots__ = (
        "buffer", "completion", "count", "done", "is_alone", "is_resent", "offset", "payload",
        "sequence", "view",
    )  # fmt: skip

    def __init__(
        self,
        view: BatchBytes,
        count: int,
        buffer: PooledBuffer | None,
        payload: P,
        completion: Completion[P],
    ) -> None:
        self.view = view
        self.count = count
        self.buffer = buffer
        self.payload = payload
        self.completion = completion
        self.sequence = -1
        # Whether it left more than once: any of the copies may have been stored.
        self.is_resent = False
        # It left before, or was joined, or cannot be joined: it stays as it is.
        self.is_alone = False
        self.done = False
        self.offset = -1

    def detach(self) -> None:
        """Copy the bytes out of the receive buffer, so that waiting does not keep it whole."""
        if self.buffer is not None:
            self.view = bytearray(self.view)
            self.release()

    def release(self) -> None:
        """The receive buffer is not needed any more."""
        if self.buffer is not None:
            self.buffer.release()
            self.buffer = None


Replacement = list[ProducerBatch[Any]] | None
"""What is sent in place of a rejected batch; None: the batch itself, until it is accepted."""


Join = Callable[
    [TopicPartition, Sequence[ProducerBatch[Any]]], tuple[int, ProducerBatch[Any]] | None
]
"""Puts batches together that wait for a far target: one for so many of the first, or None."""

# How many of those that wait are considered. Smaller ones were merged when they came.
_MOST_JOINED = 512


def keep_apart(_tp: TopicPartition, _waiting: Sequence[ProducerBatch[Any]]) -> None:
    """Join nothing."""


class ProducerListener(Protocol):
    """What the producer reports of partitions; called on the loop's thread."""

    def on_blocked(self, tp: TopicPartition, error: KafkaError | None) -> None:
        """The partition waits for its target (error), or continues (None)."""


@dataclass(slots=True)
class ProducePartition:
    """One target partition."""

    tp: TopicPartition
    # Which of the connections to its leader it uses in a backlog, and which one now: see queues.
    home_connection: int = 0
    producer_id: int = -1
    epoch: int = -1
    next_sequence: int = 0
    node: int = -1
    connection_index: int = 0
    # Whether its queue knows that it has something to send.
    scheduled: bool = False
    queue: deque[ProducerBatch[Any]] = field(default_factory=deque)
    sent: deque[ProducerBatch[Any]] = field(default_factory=deque)
    in_flight: int = 0
    # Whether batches have waited because the most allowed were in flight.
    held: bool = False
    # Whether its leader is known to know our numbers: see invariant D of the producer.
    known: bool = False
    # When it was last acknowledged something, by the loop's clock.
    acked_at: float = 0.0
    failed: KafkaError | None = None
    # Why it needs a new producer id, if it does.
    renew: str = ""
    renumber_from: int | None = None
    failures: int = 0
    resting: bool = False
    bytes: int = 0
    blocked: bool = False

    def join_first(self, join: Join) -> int:
        """Make one batch of the first that wait and never left; how many bytes come of that."""
        first = islice(self.queue, _MOST_JOINED)
        waiting = list(takewhile(lambda batch: not batch.is_alone, first))
        joined = join(self.tp, waiting) if len(waiting) > 1 else None
        if joined is None:
            return 0
        count, batch = joined
        more = len(batch.view)
        for _ in range(count):
            part = self.queue.popleft()
            more -= len(part.view)
            part.release()
        batch.is_alone = True
        self.queue.appendleft(batch)
        return more


InFlightBatches = list[tuple[ProducePartition, ProducerBatch[Any]]]


class RecordAccumulator:
    """What waits or is in flight, partition by partition, and how many bytes that is."""

    def __init__(self, listener: ProducerListener) -> None:
        self._listener = listener
        self.partitions: dict[TopicPartition, ProducePartition] = {}
        self.waiting_bytes = 0
        self.sent_bytes = 0  # of these, in requests without a response
        self.blocked_bytes = 0  # of these, of partitions that wait for their target

    def pending(self, tp: TopicPartition) -> int:
        """Batches of `tp` that were appended and not yet acknowledged."""
        partition = self.partitions.get(tp)
        return len(partition.queue) + len(partition.sent) if partition else 0

    def count(self, partition: ProducePartition, size: int) -> None:
        """So many bytes more, or less, wait for a partition."""
        partition.bytes += size
        self.waiting_bytes += size
        if partition.blocked:
            self.blocked_bytes += size

    def mark_blocked(self, partition: ProducePartition, error: KafkaError | None) -> None:
        """The partition waits for its target (error), or continues (None)."""
        blocked = error is not None
        if blocked != partition.blocked:
            partition.blocked = blocked
            self.blocked_bytes += partition.bytes if blocked else -partition.bytes
        if blocked:
            for batch in partition.queue:
                batch.detach()
        self._listener.on_blocked(partition.tp, error)
