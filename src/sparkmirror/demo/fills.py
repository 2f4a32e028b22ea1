"""Fills the topics of the demo: one function per kind of topic.

Contents are the same in every run, except for timestamps, which are relative to the present:
retention would delete old records while the demo runs.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sparkmirror.demo.producing import Headers, SeedProducer, producing
from sparkmirror.types import TopicPartition

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
HOUR_MS = 3_600_000
MINUTE_MS = 60_000

# All kinds of headers: absent, binary, repeated in a significant order, null, empty, and a name
# outside ASCII.
HEADERS: tuple[Headers, ...] = (
    (),
    (("trace-id", bytes(range(256))),),
    (("retry", b"1"), ("retry", b"2"), ("origin", b"web"), ("retry", b"1")),
    (("null", None), ("empty", b"")),
    (("\u00fcmlaut", "caf\u00e9".encode()), ("null", None), ("null", None)),
)
KEYS = (b"customer-1", b"customer-2", None, b"", b"\x00\xff", b"customer-3")

ORDERS = 6_000
PER_CODEC = 3_000
CODEC_BATCH = 250
TINY = 1_500
LARGE = 8
LARGE_BYTES = 900_000
BULK = 32_000
BULK_BYTES = 1_000
LATE_RECORDS = 1_000
PROFILE_KEYS = 1_200
PROFILE_ROUNDS = 5
PROFILE_UPDATES = 1_500
PAYMENT_ROUNDS = ((True, True), (True, False), (False, True), (False, False)) * 3


def fill_nothing(bootstrap: str, topic: str, partitions: int) -> None:
    """An empty topic must be copied too."""


def fill_orders(bootstrap: str, topic: str, partitions: int) -> None:
    """Keys, headers, null and empty values, unordered timestamps, an empty partition."""
    start_ms = _now_ms() - HOUR_MS
    with producing(bootstrap, linger_ms=5) as producer:
        for number in range(ORDERS):
            producer.send(
                TopicPartition(topic, number % (partitions - 1)),
                KEYS[number // 2 % len(KEYS)],
                _order(number),
                # Out of step with the partitions, so that each of them gets every kind.
                headers=HEADERS[number // 3 % len(HEADERS)],
                timestamp_ms=start_ms + number * 7919 % HOUR_MS,
            )


def fill_one_codec(bootstrap: str, topic: str, partitions: int) -> None:
    """Batches of the codec that the topic's name ends with."""
    codec = topic.rpartition("-")[2]
    with producing(bootstrap, compression_codec=codec, linger_ms=20) as producer:
        for number in range(PER_CODEC):
            _send_document(producer, topic, partitions, number)


def fill_mixed_codecs(bootstrap: str, topic: str, partitions: int) -> None:
    """Batches of every codec after one another in the same partitions."""
    producers = [SeedProducer(bootstrap, compression_codec=codec) for codec in CODECS]
    for first in range(0, PER_CODEC, CODEC_BATCH):
        producer = producers[first // CODEC_BATCH % len(producers)]
        for number in range(first, first + CODEC_BATCH):
            _send_document(producer, topic, partitions, number)
        producer.flush()


def fill_profiles(bootstrap: str, topic: str, partitions: int) -> None:
    """Updates and tombstones of the same keys, a segment per round; even partitions compressed."""
    choose = random.Random(4)
    start_ms = _now_ms() - HOUR_MS
    with (
        producing(bootstrap, linger_ms=20, compression_codec="lz4") as compressed,
        producing(bootstrap, linger_ms=20) as plain,
    ):
        for round_number in range(PROFILE_ROUNDS):
            for update in range(PROFILE_UPDATES):
                key = choose.randrange(PROFILE_KEYS)
                partition = key % partitions
                producer = plain if partition % 2 else compressed
                producer.send(
                    TopicPartition(topic, partition),
                    f"user-{key}".encode(),
                    None if update % 9 == 0 else f"profile {key} {round_number} {update}".encode(),
                    timestamp_ms=start_ms + round_number * MINUTE_MS + update,
                )
            compressed.flush()
            plain.flush()


def fill_payments(bootstrap: str, topic: str, partitions: int) -> None:
    """Two producers whose transactions overlap in the same partitions; some commit, some abort."""
    with (
        _transactional(bootstrap, topic, "a") as first,
        _transactional(bootstrap, topic, "b") as second,
    ):
        for round_number, commits in enumerate(PAYMENT_ROUNDS):
            pair = list(zip((first, second), commits, strict=True))
            for producer, _ in pair:
                producer.begin_transaction()
            for part in range(2):
                for producer, commit in pair:
                    word = "committed" if commit else "aborted"
                    text = f"{word} payment {round_number}.{part}"
                    _send_payments(producer, topic, partitions, text)
            for producer, commit in pair:
                producer.end_transaction(commit=commit)


def fill_audit(bootstrap: str, topic: str, partitions: int) -> None:
    """The broker replaces these timestamps with the time it appends the batch."""
    start_ms = _now_ms() - HOUR_MS
    for codec in ("none", "zstd"):
        with producing(bootstrap, linger_ms=20, compression_codec=codec) as producer:
            for number in range(1_000):
                where = TopicPartition(topic, number % partitions)
                line = f"{codec} audit line {number}".encode()
                producer.send(where, None, line, timestamp_ms=start_ms + number)


def fill_tiny(bootstrap: str, topic: str, partitions: int) -> None:
    """One record per batch, as a producer without lingering writes them."""
    with producing(bootstrap, linger_ms=0, batch_num_messages=1) as producer:
        for number in range(TINY):
            producer.send(TopicPartition(topic, number % partitions), None, b"tick %d" % number)


def fill_large(bootstrap: str, topic: str, partitions: int) -> None:
    """Records slightly smaller than the default limit of a topic."""
    content = random.Random(5)
    with producing(bootstrap) as producer:
        for number in range(LARGE):
            value = content.randbytes(LARGE_BYTES)
            producer.send(TopicPartition(topic, number % partitions), b"%d" % number, value)


def fill_bulk(bootstrap: str, topic: str, partitions: int) -> None:
    """Enough incompressible bytes to see a speed."""
    content = random.Random(6).randbytes(BULK + BULK_BYTES)
    with producing(bootstrap, linger_ms=20, batch_size=262_144) as producer:
        for number in range(BULK):
            value = content[number : number + BULK_BYTES]
            producer.send(TopicPartition(topic, number % partitions), b"%d" % number, value)


def fill_late(bootstrap: str, topic: str, partitions: int) -> None:
    """Records for a topic that is created while the mirror runs."""
    with producing(bootstrap, linger_ms=5) as producer:
        for number in range(LATE_RECORDS):
            _send_document(producer, topic, partitions, number)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _order(number: int) -> bytes | None:
    if number % 11 == 0:
        return None
    return b"" if number % 13 == 0 else b"order %d " % number + b"x" * (number % 400)


def _send_document(producer: SeedProducer, topic: str, partitions: int, number: int) -> None:
    document = {"id": number, "text": "lorem ipsum dolor sit amet " * (number % 12), "paid": True}
    producer.send(
        TopicPartition(topic, number % partitions),
        b"document-%d" % (number % 97),
        json.dumps(document).encode(),
        headers=HEADERS[number % len(HEADERS)],
    )


@contextmanager
def _transactional(bootstrap: str, topic: str, name: str) -> Iterator[SeedProducer]:
    with producing(bootstrap, transactional_id=f"demo-{topic}-{name}", linger_ms=5) as producer:
        producer.init_transactions()
        yield producer


def _send_payments(producer: SeedProducer, topic: str, partitions: int, text: str) -> None:
    for number in range(30):
        value = f"{text}.{number}".encode()
        producer.send(TopicPartition(topic, number % partitions), b"%d" % number, value)
    # A batch per call, so that the batches of both transactions are interleaved.
    producer.flush()
