"""Live traffic: sends records at a steady rate, and measures how long each one takes."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from confluent_kafka import OFFSET_END, Consumer
from confluent_kafka import TopicPartition as ClientPartition

from sparkmirror.demo.client import client_settings
from sparkmirror.demo.producing import SeedProducer
from sparkmirror.types import TopicPartition

RECORDS_PER_SECOND = 200
_DRAIN_SECONDS = 10.0
_MARK = b"live-"


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds from `produce` on the source to `poll` on the target."""

    records: int
    p50_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class LiveResult:
    """Sent records by partition, and their latency; None if none arrived in time."""

    delivered: Counter[TopicPartition]
    latency: Latency | None


class LiveTraffic:
    """Sends to the source and listens on the target, both in the caller's thread."""

    def __init__(self, source_bootstrap: str, target_bootstrap: str) -> None:
        self._source_bootstrap = source_bootstrap
        self._target_bootstrap = target_bootstrap
        self._sent: dict[bytes, float] = {}
        self._latencies_ms: list[float] = []

    def run(self, topic: str, target_topic: str, partitions: int, seconds: float) -> LiveResult:
        """Send for some seconds, then wait for the rest to arrive."""
        producer = SeedProducer(self._source_bootstrap, linger_ms=0)
        with closing(self._listen(target_topic, partitions)) as consumer:
            self._send(producer, consumer, topic, partitions, seconds)
            producer.flush()
            self._drain(consumer)
        return LiveResult(producer.delivered, summarize(self._latencies_ms))

    def _listen(self, target_topic: str, partitions: int) -> Consumer:
        settings = client_settings(
            self._target_bootstrap, group_id="sparkmirror-demo-listener", enable_auto_commit=False
        )
        consumer = Consumer(settings)
        everywhere = [ClientPartition(target_topic, n, OFFSET_END) for n in range(partitions)]
        consumer.assign(everywhere)
        # The consumer finds the end at its first fetch, which must be before anything is sent.
        consumer.poll(1.0)
        return consumer

    def _send(
        self,
        producer: SeedProducer,
        consumer: Consumer,
        topic: str,
        partitions: int,
        seconds: float,
    ) -> None:
        began = time.monotonic()
        sent = 0
        while (passed := time.monotonic() - began) < seconds:
            while sent < passed * RECORDS_PER_SECOND:
                self._send_one(producer, TopicPartition(topic, sent % partitions))
                sent += 1
            self._receive(consumer, 0.001)

    def _send_one(self, producer: SeedProducer, where: TopicPartition) -> None:
        key = _MARK + b"%d" % len(self._sent)
        self._sent[key] = time.monotonic()
        producer.send(where, key, b"live order", headers=(("live", None),))

    def _receive(self, consumer: Consumer, wait_seconds: float) -> None:
        message = consumer.poll(wait_seconds)
        if message is None or message.error() is not None:
            return
        sent = self._sent.get(message.key() or b"")
        if sent is not None:
            self._latencies_ms.append((time.monotonic() - sent) * 1000)

    def _drain(self, consumer: Consumer) -> None:
        deadline = time.monotonic() + _DRAIN_SECONDS
        while len(self._latencies_ms) < len(self._sent) and time.monotonic() < deadline:
            self._receive(consumer, 0.1)


def summarize(latencies_ms: Sequence[float]) -> Latency | None:
    """Percentiles by nearest rank; None without records."""
    ordered = sorted(latencies_ms)
    if not ordered:
        return None
    return Latency(len(ordered), _rank(ordered, 0.5), _rank(ordered, 0.99), ordered[-1])


def _rank(ordered: Sequence[float], share: float) -> float:
    return ordered[math.ceil(share * len(ordered)) - 1]
