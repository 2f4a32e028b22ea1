"""What the producer remembers of batches, partitions and brokers, and what it tells its owner.

Runs on: executor, on the event loop's thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Protocol

from sparkmirror.errors import BrokerError, KafkaError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.net.buffer_pool import PooledBuffer

Batch = memoryview | bytearray


class ProducerBatch:
    """One batch on its way: its bytes, the buffer they lie in, and what the owner needs at the ack.

    The bytes stay as they are while a request carries them: until it is answered or its connection
    is closed, which empties the connection's outbox.
    """

    __slots__ = (
        "count", "done", "is_alone", "is_resent", "lease", "offset", "owner", "sequence", "view",
    )  # fmt: skip

    def __init__(self, view: Batch, count: int, lease: PooledBuffer | None, owner: object) -> None:
        self.view = view
        self.count = count
        self.lease = lease
        self.owner = owner
        self.sequence = -1
        # Whether it left more than once: any of the copies may have been stored.
        self.is_resent = False
        # It left before, or was joined, or cannot be: it stays the batch that it is.
        self.is_alone = False
        self.done = False
        self.offset = -1

    def detach(self) -> None:
        """Copy the bytes out of the receive buffer, so that waiting does not keep it whole."""
        if self.lease is not None:
            self.view = bytearray(self.view)
            self.release()

    def release(self) -> None:
        """The receive buffer is not needed any more."""
        if self.lease is not None:
            self.lease.release()
            self.lease = None


Replacement = list[ProducerBatch] | None
"""What is sent in place of a refused batch; None: the batch itself, until the target takes it."""


Join = Callable[[TopicPartition, Sequence[ProducerBatch]], tuple[int, ProducerBatch] | None]
"""Puts batches together that wait for a far target: one for so many of the first, or None."""

# Of those that wait, so many are looked at. Smaller ones were merged when they came.
_MOST_JOINED = 512


def keep_apart(_tp: TopicPartition, _waiting: Sequence[ProducerBatch]) -> None:
    """Join nothing."""


class ProducerListener(Protocol):
    """What the producer tells; every method runs on the loop's thread."""

    def on_acked(self, tp: TopicPartition, parcel: ProducerBatch) -> None:
        """The batch is stored at `parcel.offset` (-1 when the broker no longer knows). In order."""

    def on_refused(
        self, tp: TopicPartition, parcel: ProducerBatch, error: BrokerError
    ) -> Replacement:
        """The target does not take it: say what is to be sent instead, or raise RefusedError."""

    def on_stuck(self, tp: TopicPartition, error: KafkaError | None) -> None:
        """The partition waits for its target (error), or goes on again (None)."""


@dataclass(slots=True)
class ProducePartition:
    """One target partition."""

    tp: TopicPartition
    # Which of the connections to its leader it uses in a backlog, and which one now: see lanes.
    own_line: int = 0
    producer_id: int = -1
    epoch: int = -1
    next_sequence: int = 0
    node: int = -1
    line: int = 0
    # Whether its lane knows that it has something to send.
    scheduled: bool = False
    queue: deque[ProducerBatch] = field(default_factory=deque)
    sent: deque[ProducerBatch] = field(default_factory=deque)
    in_flight: int = 0
    # Whether batches have waited because as many as may be were under way.
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
    stuck: bool = False

    def join_first(self, join: Join) -> int:
        """Make one batch of the first that wait and never left; how many bytes come of that."""
        first = islice(self.queue, _MOST_JOINED)
        waiting = list(takewhile(lambda parcel: not parcel.is_alone, first))
        joined = join(self.tp, waiting) if len(waiting) > 1 else None
        if joined is None:
            return 0
        count, parcel = joined
        more = len(parcel.view)
        for _ in range(count):
            part = self.queue.popleft()
            more -= len(part.view)
            part.release()
        parcel.is_alone = True
        self.queue.appendleft(parcel)
        return more


InFlightBatches = list[tuple[ProducePartition, ProducerBatch]]
