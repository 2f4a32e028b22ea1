"""A trickle of records and the time that each takes: the two kinds of processes of `latency`.

Producer and consumers are processes of their own, so that none waits for another's turn in the
interpreter; all read the same clock of the same machine. The first eight bytes of a value are the
time it was produced, the next four the phase: 0 warm-up, then the number of the round.
"""

from __future__ import annotations

import multiprocessing.connection
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.cases import LATENCY_PARTITIONS

_STAMP = struct.Struct(">qi")
_TICK_SECONDS = 0.001
_CONSUMER_SETTLE_SECONDS = 2.0

# By topic and phase, in milliseconds.
Latencies = dict[tuple[str, int], list[float]]


@dataclass(frozen=True, slots=True)
class Turns:
    """Who gets records when: in every phase the topics take turns until each had its seconds."""

    topics: tuple[str, ...]
    phase_seconds: tuple[float, ...]
    turn_seconds: float
    rest_seconds: float
    records_per_second: int
    value_bytes: int

    def lengths(self, phase: int) -> list[float]:
        """Seconds of the turns that each topic has in a phase."""
        seconds, each = self.phase_seconds[phase], self.turn_seconds
        whole, rest = int(seconds // each), seconds % each
        return [each] * whole + ([rest] if rest else [])

    def records(self, seconds: float) -> int:
        """Records of a turn."""
        return int(seconds * self.records_per_second)

    @property
    def records_per_topic(self) -> int:
        """Of all phases."""
        phases = range(len(self.phase_seconds))
        return sum(self.records(seconds) for phase in phases for seconds in self.lengths(phase))

    @property
    def total_seconds(self) -> float:
        """How long all of it takes."""
        rests = sum(len(self.lengths(phase)) for phase in range(len(self.phase_seconds)))
        return len(self.topics) * (sum(self.phase_seconds) + rests * self.rest_seconds)


def run_producer(bootstrap: str, turns: Turns) -> None:
    """Produce at a steady rate, turn after turn."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for phase in range(len(turns.phase_seconds)):
        for seconds in turns.lengths(phase):
            for topic in turns.topics:
                _take_turn(producer, turns, topic, turns.records(seconds), phase)
                producer.flush()
                time.sleep(turns.rest_seconds)


def _take_turn(producer: Producer, turns: Turns, topic: str, total: int, phase: int) -> None:
    padding = bytes(turns.value_bytes - _STAMP.size)
    started_at = time.monotonic()
    sent = 0
    while sent < total:
        due = min(total, int((time.monotonic() - started_at) * turns.records_per_second))
        for number in range(sent, due):
            stamp = _STAMP.pack(time.time_ns(), phase)
            producer.produce(topic, stamp + padding, partition=number % LATENCY_PARTITIONS)
        sent = due
        producer.poll(0)
        time.sleep(_TICK_SECONDS)


def run_consumer(
    bootstrap: str,
    topics: Sequence[str],
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
    places = [(topic, number) for topic in topics for number in range(LATENCY_PARTITIONS)]
    partitions = [TopicPartition(*place) for place in places]
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
            latencies.setdefault((message.topic(), phase), []).append(milliseconds)
            got += 1
    return latencies
