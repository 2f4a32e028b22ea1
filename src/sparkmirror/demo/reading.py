"""Reads a cluster with confluent-kafka: records, partition counts, end offsets."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import NamedTuple

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaException, Message
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import OffsetSpec

from sparkmirror.demo.client import RESPONSE_SECONDS, admin_client, client_settings
from sparkmirror.errors import KafkaError, TransportError
from sparkmirror.types import TopicPartition

# A broker on this machine that sends nothing for this long hangs.
_SILENCE_SECONDS = 30.0
_MOST_PER_CALL = 20_000
# Errors of brokers for partitions of a topic that was just created.
BEING_CREATED = (
    "UNKNOWN_TOPIC_OR_PART",
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION",
    "UNKNOWN_LEADER_EPOCH",
    "FENCED_LEADER_EPOCH",
)
_END_OF_PARTITION = "_PARTITION_EOF"
# Records of message format 0 have no timestamp. librdkafka reports 0 for these, and -1 for their
# copies in a newer format, which contain -1.
_NO_TIMESTAMP = -1


class RecordContent(NamedTuple):
    """The parts of a record that a mirror must preserve."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int

    @property
    def size_bytes(self) -> int:
        """Payload bytes: key, value, header names and values."""
        headers = sum(len(name.encode()) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers


class ReadRecord(NamedTuple):
    """A record as a consumer sees it."""

    offset: int
    content: RecordContent


# The records of one topic in the order of their offsets, by partition number.
Partitions = dict[int, list[ReadRecord]]


def read_topic(bootstrap: str, topic: str, *, read_committed: bool) -> Partitions:
    """Every record of a topic; a partition without records has an empty list."""
    return read_topics(bootstrap, [topic], read_committed=read_committed)[topic]


def read_topics(
    bootstrap: str, topics: Iterable[str], *, read_committed: bool
) -> dict[str, Partitions]:
    """Every record of the topics, up to the end of each partition.

    Raises: KafkaError if a topic does not exist.
    """
    wanted = list(topics)
    counts = partition_counts(bootstrap, wanted)
    absent = [topic for topic in wanted if topic not in counts]
    if absent:
        raise KafkaError(f"read {', '.join(absent)} from {bootstrap}: no such topic")
    found: dict[str, Partitions] = {
        topic: {number: [] for number in range(counts[topic])} for topic in wanted
    }
    with closing(_consumer(bootstrap, read_committed)) as consumer:
        _read_to_end(consumer, found)
    return found


def partition_counts(bootstrap: str, topics: Iterable[str]) -> dict[str, int]:
    """How many partitions each topic has; topics that do not exist are left out."""
    known = admin_client(bootstrap).list_topics(timeout=RESPONSE_SECONDS).topics
    return {topic: len(known[topic].partitions) for topic in topics if topic in known}


def offset_gaps(records: Iterable[ReadRecord]) -> int:
    """The number of offsets without a record between the first and the last record."""
    offsets = [record.offset for record in records]
    return offsets[-1] - offsets[0] + 1 - len(offsets) if offsets else 0


class EndOffsets:
    """Lists end offsets of one cluster repeatedly."""

    def __init__(self, bootstrap: str) -> None:
        self._admin = admin_client(bootstrap)

    def list_end_offsets(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """End offset per partition; what does not exist, or has no leader yet, is left out."""
        known = self._admin.list_topics(timeout=RESPONSE_SECONDS).topics
        asked = {
            ClientPartition(topic, number): OffsetSpec.latest()
            for topic in topics
            if topic in known
            for number in known[topic].partitions
        }
        if not asked:
            return {}
        futures = self._admin.list_offsets(asked, request_timeout=RESPONSE_SECONDS)
        found = {}
        for partition, future in futures.items():
            try:
                end_offset = future.result(RESPONSE_SECONDS).offset
            except KafkaException as error:
                if error.args[0].name() not in BEING_CREATED:
                    raise
            else:
                found[TopicPartition(partition.topic, partition.partition)] = end_offset
        return found


def _consumer(bootstrap: str, read_committed: bool) -> Consumer:
    settings = client_settings(
        bootstrap,
        # Required but never joined: partitions are assigned and no offset is committed.
        group_id="sparkmirror-demo-reader",
        enable_auto_commit=False,
        enable_partition_eof=True,
        check_crcs=True,
        # Offset 0 may be deleted.
        auto_offset_reset="earliest",
        # An end is reported when a fetch finds nothing: after 500 ms by default.
        fetch_wait_max_ms=10,
        isolation_level="read_committed" if read_committed else "read_uncommitted",
    )
    return Consumer(settings)


def _read_to_end(consumer: Consumer, found: Mapping[str, Partitions]) -> None:
    unfinished = {
        TopicPartition(topic, number) for topic, numbers in found.items() for number in numbers
    }
    # OFFSET_BEGINNING would cost a failing request first: half a second.
    consumer.assign([ClientPartition(*one, 0) for one in unfinished])
    last_at = time.monotonic()
    while unfinished:
        messages = consumer.consume(_MOST_PER_CALL, timeout=0.1)
        for message in messages:
            if message.error() is None:
                found[message.topic()][message.partition()].append(_record(message))
            else:
                unfinished.discard(_finished_partition(message))
        last_at = time.monotonic() if messages else last_at
        if time.monotonic() - last_at > _SILENCE_SECONDS:
            names = ", ".join(str(one) for one in sorted(unfinished)[:5])
            raise TransportError(f"read {names}: nothing arrived for {_SILENCE_SECONDS:g} s")


def _finished_partition(message: Message) -> TopicPartition:
    error = message.error()
    if error.name() != _END_OF_PARTITION:
        raise KafkaError(f"read {message.topic()}-{message.partition()}: {error.str()}")
    return TopicPartition(message.topic(), message.partition())


def timestamp_of(message: Message) -> int:
    """The record's timestamp in ms; -1 if it has none."""
    kind, timestamp_ms = message.timestamp()
    return _NO_TIMESTAMP if kind == TIMESTAMP_NOT_AVAILABLE else int(timestamp_ms)


def _record(message: Message) -> ReadRecord:
    headers = tuple((name, value) for name, value in message.headers() or ())
    return ReadRecord(
        message.offset(),
        RecordContent(message.key(), message.value(), headers, timestamp_of(message)),
    )
