"""Sends records at a steady rate and times each: the two kinds of processes of `latency`.

Producer and consumer are separate processes, so that neither waits for the other's GIL; both read
the clock of the same machine. The first eight bytes of a value are the time it was produced, the
next four the phase: 0 for the warm-up, then the number of the round.
"""

from __future__ import annotations

import multiprocessing.connection
import struct
import time
from dataclasses import dataclass

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.cases import LATENCY_PARTITIONS

_STAMP = struct.Struct(">qi")
_TICK_SECONDS = 0.001
_CONSUMER_SETTLE_SECONDS = 2.0

# By phase, in milliseconds.
Latencies = dict[int, list[float]]


@dataclass(frozen=True, slots=True)
class Trickle:
    """The records to produce: phase after phase, without pauses."""

    topic: str
    phase_seconds: tuple[float, ...]
    records_per_second: int
    value_bytes: int

    def records(self, phase: int) -> int:
        """The number of records of a phase."""
        return int(self.phase_seconds[phase] * self.records_per_second)

    @property
    def all_records(self) -> int:
        """The number of records of all phases."""
        return sum(map(self.records, range(len(self.phase_seconds))))


def run_producer(bootstrap: str, trickle: Trickle) -> None:
    """Produce at a steady rate, phase after phase."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for phase in range(len(trickle.phase_seconds)):
        _produce(producer, trickle, phase)
    producer.flush()


def _produce(producer: Producer, trickle: Trickle, phase: int) -> None:
    padding = bytes(trickle.value_bytes - _STAMP.size)
    total = trickle.records(phase)
    started_at = time.monotonic()
    sent = 0
    while sent < total:
        due = min(total, int((time.monotonic() - started_at) * trickle.records_per_second))
        for number in range(sent, due):
            stamp = _STAMP.pack(time.time_ns(), phase)
            producer.produce(trickle.topic, stamp + padding, partition=number % LATENCY_PARTITIONS)
        sent = due
        producer.poll(0)
        time.sleep(_TICK_SECONDS)


def run_consumer(
    bootstrap: str,
    topic: str,
    expected: int,
    deadline_seconds: float,
    report: multiprocessing.connection.Connection,
) -> None:
    """Report "ready", then the latencies when all have arrived or time is up."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
            "fetch.queue.backoff.ms": 1,
        }
    )
    partitions = [TopicPartition(topic, number) for number in range(LATENCY_PARTITIONS)]
    for partition in partitions:
        partition.offset = consumer.get_watermark_offsets(partition)[1]
    consumer.assign(partitions)
    consumer.poll(_CONSUMER_SETTLE_SECONDS)
    report.send("ready")
    report.send(_collect(consumer, expected, time.monotonic() + deadline_seconds))
    consumer.close()


def _collect(consumer: Consumer, expected: int, deadline: float) -> Latencies:
    latencies: Latencies = {}
    got = 0
    while got < expected and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            produced_ns, phase = _STAMP.unpack_from(message.value())
            milliseconds = (time.time_ns() - produced_ns) / 1e6
            latencies.setdefault(phase, []).append(milliseconds)
            got += 1
    return latencies
