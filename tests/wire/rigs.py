"""A producer and a fetcher at work against the fake broker, recording what they report."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from sparkmirror.batches.bounds import find_batches
from sparkmirror.batches.header import read_leader_epoch
from sparkmirror.batches.records import Record, decode, encode
from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import BrokerError, KafkaError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.fetch.fetcher import Fetcher, Records, Taken
from sparkmirror.wire.fetch.offset_fetcher import Range
from sparkmirror.wire.net.buffer_pool import BufferPool, PooledBuffer
from sparkmirror.wire.net.event_loop import EventLoop
from sparkmirror.wire.produce.producer import KafkaProducer
from sparkmirror.wire.produce.record_accumulator import BatchBytes, ProducerBatch, Replacement
from sparkmirror.wire.protocol.fetch_messages import Limits
from tests.wire.fake_broker import FakeCluster

Values = tuple[bytes, ...]

WAIT_SECONDS = 20.0  # many brokers may run beside the tests
TP = TopicPartition("t", 0)


def client_config(cluster: FakeCluster, **settings: Any) -> ClientConfig:
    """Short waits, so that tests of failures are fast."""
    short: dict[str, Any] = {
        "client_id": "test",
        "retry_backoff_ms": 5,
        "reconnect_backoff_ms": 5,
        "reconnect_backoff_max_ms": 20,
        "request_timeout_ms": 10_000,
    }
    return ClientConfig("fake", cluster.bootstrap_servers, **(short | settings))


class Rig:
    """Our side of the connection to a fake cluster."""

    def __init__(self, brokers: FakeCluster, **settings: Any) -> None:
        self.brokers = brokers
        self.loop = EventLoop()
        self.pool = BufferPool(1 << 20)
        self.cluster = NetworkClient(self.loop, client_config(brokers, **settings), self.pool)
        self.metadata = self.cluster.metadata

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cluster.close()
        self.loop.close()

    def run_until(self, done: Callable[[], bool], describe: Callable[[], object]) -> None:
        """Turn the loop; `describe` shows where it got stuck."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not done():
            assert time.monotonic() < deadline, f"got stuck at {describe()}"
            # What a test waits for may happen on the broker's side, which wakes no loop.
            self.loop.run_once(0.01)

    def run_for(self, seconds: float) -> None:
        """Turn the loop, to see that nothing happens."""
        self.loop.run_until(lambda: False, seconds)


def encoded(*values: bytes) -> bytearray:
    """One batch of records with these values."""
    return encode([Record(at, 1_700_000_000_000, None, value) for at, value in enumerate(values)])


def numbered(count: int, start: int = 0) -> list[list[bytes]]:
    """Values for batches of two records."""
    return [[b"%03d-a" % at, b"%03d-b" % at] for at in range(start, start + count)]


def flat(batches: Sequence[Sequence[bytes]]) -> list[bytes]:
    """All values in one list."""
    return [value for values in batches for value in values]


class ProducerRig(Rig):
    """A producer whose batches are known by their values."""

    def __init__(
        self,
        brokers: FakeCluster,
        *,
        acks: int = -1,
        in_flight: int = 5,
        connections: int = 1,
        **settings: Any,
    ) -> None:
        super().__init__(brokers, **settings)
        self.acked: list[tuple[TopicPartition, tuple[bytes, ...], int]] = []
        self.rejected: list[tuple[bytes, ...]] = []
        self.blocked: list[KafkaError | None] = []
        self.split = True
        # How many batches are joined at most, when their broker is far.
        self.join_most = 1
        self.joins = 0
        self.producer = KafkaProducer(
            self.cluster,
            self,
            acks=acks,
            request_timeout_ms=10_000,
            max_in_flight=in_flight,
            connections=connections,
            join=self.join,
        )

    def append(self, *batches: Sequence[bytes], tp: TopicPartition = TP) -> None:
        """Queue one batch for each sequence of values, and let them go."""
        self.producer.append(tp, [self.batch(*values) for values in batches])
        self.producer.send_ready()

    def append_to_all(self, partitions: Sequence[TopicPartition], values: Sequence[bytes]) -> None:
        """Queue one batch for each partition, then let them go."""
        for tp in partitions:
            self.producer.append(tp, [self.batch(*values)])
        self.producer.send_ready()

    def batch(
        self, *values: bytes, view: BatchBytes | None = None, buffer: PooledBuffer | None = None
    ) -> ProducerBatch[Values]:
        """One batch that is reported here; `view` has its bytes if they are in a buffer."""
        data = encoded(*values) if view is None else view
        return ProducerBatch(data, len(values), buffer, values, self)

    def join(
        self, _tp: TopicPartition, waiting: Sequence[ProducerBatch[Values]]
    ) -> tuple[int, ProducerBatch[Values]] | None:
        """From the producer: the first ones as one batch."""
        taken = waiting[: self.join_most]
        if len(taken) < 2:
            return None
        self.joins += 1
        return len(taken), self.batch(*(value for each in taken for value in each.payload))

    def finish(self) -> None:
        """Until all is acknowledged."""
        self.run_until(lambda: self.producer.idle, lambda: (self.acked, self.blocked[-3:]))

    @property
    def acked_values(self) -> list[bytes]:
        """Values in the order of their acknowledgements."""
        return [value for _, values, _ in self.acked for value in values]

    def on_stored(self, tp: TopicPartition, batch: ProducerBatch[Values]) -> None:
        """From the producer."""
        self.acked.append((tp, batch.payload, batch.offset))

    def on_rejected(
        self, tp: TopicPartition, batch: ProducerBatch[Values], error: BrokerError
    ) -> Replacement:
        """From the producer: one batch for each value instead, or none."""
        self.rejected.append(batch.payload)
        return [self.batch(value) for value in batch.payload] if self.split else []

    def on_blocked(self, tp: TopicPartition, error: KafkaError | None) -> None:
        """From the producer."""
        self.blocked.append(error)


LIMITS = Limits(
    max_wait_ms=100,
    min_bytes=1,
    max_bytes=1 << 20,
    partition_max_bytes=1 << 18,
    read_committed=False,
    rack="",
)


class FetcherRig(Rig):
    """A fetcher that decodes what it gets."""

    def __init__(self, brokers: FakeCluster, limits: Limits = LIMITS, **settings: Any) -> None:
        super().__init__(brokers, **settings)
        self.values: dict[TopicPartition, list[bytes]] = {}
        self.out_of_range: list[tuple[int | None, int, int]] = []
        self.recreated: list[int] = []
        self.truncated: list[tuple[int, int]] = []
        self.errors: list[KafkaError] = []
        self.rounds = 0
        self.allowed = True
        self.start_at_end = False
        self.fetcher = Fetcher(self.cluster, limits, self, 10.0)

    def fetched(self, tp: TopicPartition = TP) -> list[bytes]:
        """Values so far."""
        return self.values.get(tp, [])

    def wait_for(self, expected: Sequence[bytes], tp: TopicPartition = TP) -> None:
        """Until these values, and no others, have come."""
        self.run_until(
            lambda: len(self.fetched(tp)) >= len(expected),
            lambda: (len(self.fetched(tp)), self.fetched(tp)[-5:], self.errors),
        )
        assert self.fetched(tp) == list(expected)

    def request_fetch(self) -> bool:
        """From the fetcher."""
        return self.allowed

    def request_take(self) -> bool:
        """From the fetcher."""
        return self.allowed

    def on_records(self, records: Records) -> Taken:
        """From the fetcher."""
        next_offset = records.next_offset
        bounds, _ = find_batches(records.view)
        for start, end in itertools.pairwise(bounds):
            for record in decode(records.view[start:end]):
                if record.offset >= next_offset:
                    next_offset = record.offset + 1
                    self.values.setdefault(records.tp, []).append(record.value or b"")
        return Taken(next_offset, read_leader_epoch(records.view, bounds[-2]))

    def on_round(self) -> None:
        """From the fetcher."""
        self.rounds += 1

    def on_out_of_range(self, tp: TopicPartition, position: int | None, found: Range) -> int:
        """From the fetcher."""
        start, end, self.timed = found
        self.out_of_range.append((position, start, end))
        if position is not None and start <= position <= end:
            return position
        return end if self.start_at_end else start

    def on_truncated(self, tp: TopicPartition, position: int, next_offset: int) -> None:
        """From the fetcher."""
        self.truncated.append((position, next_offset))

    def on_recreated(self, tp: TopicPartition, position: int) -> None:
        """From the fetcher."""
        self.recreated.append(position)

    def on_partition_error(self, tp: TopicPartition, error: KafkaError) -> None:
        """From the fetcher."""
        self.errors.append(error)
