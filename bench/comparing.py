"""Compares the target with the source: an independent client reads both, in order.

Two processes read half of the partitions each, source and target side by side.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition

from bench.progress import report
from bench.stage import Stage
from sparkmirror.errors import MirrorError

_PROCESSES = 2
_CHUNK_RECORDS = 10_000
_STALL_SECONDS = 60.0

# Value, key, (kind of time, milliseconds), headers.
Record = tuple[bytes | None, bytes | None, tuple[int, int], object]


class Place(NamedTuple):
    """A partition of a cluster, and the number of its records to read."""

    bootstrap: str
    topic: str
    partition: int
    records: int


def compare_copy(stage: Stage, topic: str, remote: str, ends: Sequence[int]) -> None:
    """Raise MirrorError unless all partitions of `remote` equal the start of those of `topic`."""
    pairs = [
        (
            Place(stage.source.bootstrap_servers, topic, partition, records),
            Place(stage.target.bootstrap_servers, remote, partition, records),
        )
        for partition, records in enumerate(ends)
    ]
    with multiprocessing.get_context("spawn").Pool(_PROCESSES) as pool:
        differences = [found for found in pool.starmap(first_difference, pairs, 1) if found]
    if differences:
        raise MirrorError(f"compare {remote} with {topic}: {'; '.join(differences)}")
    report(f"{remote}: {sum(ends):,} records are those of the source")


def first_difference(source: Place, target: Place) -> str:
    """The first difference of two partitions, or nothing. Runs in a separate process."""
    pairs = zip(_records(source), _records(target), strict=True)
    for offset, (ours, theirs) in enumerate(pairs):
        if ours != theirs:
            return f"partition {source.partition} differs at offset {offset}"
    return ""


def _records(place: Place) -> Iterator[Record]:
    consumer = Consumer(
        {
            "bootstrap.servers": place.bootstrap,
            "group.id": "bench-compare",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.queue.backoff.ms": 1,
        }
    )
    consumer.assign([TopicPartition(place.topic, place.partition, 0)])
    left = place.records
    while left > 0:
        messages = consumer.consume(min(_CHUNK_RECORDS, left), timeout=_STALL_SECONDS)
        if not messages:
            raise MirrorError(f"read {place.topic}-{place.partition}: {left} records are missing")
        for message in messages:
            if message.error() is not None:
                raise MirrorError(f"read {place.topic}-{place.partition}: {message.error()}")
            yield message.value(), message.key(), message.timestamp(), message.headers()
        left -= len(messages)
    consumer.close()
