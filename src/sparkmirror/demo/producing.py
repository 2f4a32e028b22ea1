"""A confluent-kafka producer that loses nothing silently: unacknowledged records raise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import Message, Producer

from sparkmirror.demo.client import client_settings
from sparkmirror.errors import KafkaError
from sparkmirror.types import TopicPartition

Headers = Sequence[tuple[str, bytes | None]]

FLUSH_SECONDS = 60.0


class SeedProducer:
    """Sends records to partitions named by the caller and counts those that the broker stored.

    Not thread-safe: one thread sends, flushes and ends transactions.
    """

    def __init__(self, bootstrap: str, **settings: object) -> None:
        self.delivered: Counter[TopicPartition] = Counter()
        self._rejected: list[str] = []
        # Idempotence keeps the order of a partition through retries.
        self._producer = Producer(client_settings(bootstrap, enable_idempotence=True, **settings))

    def send(
        self,
        where: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        *,
        headers: Headers = (),
        timestamp_ms: int = 0,
    ) -> None:
        """Queue one record; a timestamp of 0 means the present."""
        arguments = {"headers": list(headers), "timestamp": timestamp_ms}
        while True:
            try:
                self._producer.produce(
                    where.topic,
                    value,
                    key,
                    where.partition,
                    on_delivery=self._on_delivery,
                    **arguments,
                )
            except BufferError:
                # The local queue is full: wait until the broker has stored some records.
                self._producer.poll(0.1)
            else:
                self._producer.poll(0)
                return

    def flush(self) -> None:
        """Return once the broker has stored everything; raises KafkaError for a rejected record."""
        waiting = self._producer.flush(FLUSH_SECONDS)
        if waiting:
            raise KafkaError(f"produce: {waiting} records not accepted within {FLUSH_SECONDS:g} s")
        if self._rejected:
            raise KafkaError(f"produce: {len(self._rejected)} rejected, first {self._rejected[0]}")

    def init_transactions(self) -> None:
        """Call once, before the first transaction."""
        self._producer.init_transactions(FLUSH_SECONDS)

    def begin_transaction(self) -> None:
        """Begin a transaction with the records that follow."""
        self._producer.begin_transaction()

    def end_transaction(self, *, commit: bool) -> None:
        """End it after the broker has every record, so that an aborted one is in the log too."""
        self.flush()
        if commit:
            self._producer.commit_transaction(FLUSH_SECONDS)
        else:
            self._producer.abort_transaction(FLUSH_SECONDS)

    def _on_delivery(self, error: ClientError | None, message: Message) -> None:
        where = TopicPartition(message.topic(), message.partition())
        if error is None:
            self.delivered[where] += 1
        else:
            self._rejected.append(f"{where}: {error.str()}")


@contextmanager
def producing(bootstrap: str, **settings: object) -> Iterator[SeedProducer]:
    """A producer that has delivered everything when the block ends."""
    producer = SeedProducer(bootstrap, **settings)
    yield producer
    producer.flush()
