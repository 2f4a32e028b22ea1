"""delivery.timeout.ms: a target partition that takes nothing for so long ends the task."""

from __future__ import annotations

import pytest

from sparkmirror.errors import KafkaError, TransportError
from sparkmirror.spark.copy.delivery import FOREVER_MS, DeliveryTimeout
from sparkmirror.types import TopicPartition
from sparkmirror.wire.net.event_loop import EventLoop

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
GONE = KafkaError("its leader is gone")


class Clock:
    """Stands still until the test turns it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Waits:
    """A deadline of 10 s under a clock that the test turns."""

    def __init__(self, timeout_ms: int = 10_000) -> None:
        self._clock = Clock()
        self._loop = EventLoop(self._clock)
        self.timeout = DeliveryTimeout(self._loop, timeout_ms)

    def until(self, seconds: float) -> None:
        self._clock.now = 100.0 + seconds
        self._loop.run_once(0.0)


def test_a_partition_that_waits_too_long_ends_the_task() -> None:
    waits = Waits()
    waits.timeout.note(T0, KafkaError("first"))
    waits.until(9.9)
    waits.timeout.note(T0, GONE)
    expected = r"accepted nothing of t-0 for 10 s \(delivery\.timeout\.ms\): its leader is gone"
    with pytest.raises(TransportError, match=expected):
        waits.until(10.1)


def test_a_partition_that_continues_has_its_whole_time_again() -> None:
    waits = Waits()
    waits.timeout.note(T0, GONE)
    waits.until(5.0)
    waits.timeout.note(T0, None)
    waits.timeout.note(T1, None)
    waits.until(6.0)
    waits.timeout.note(T0, GONE)
    waits.until(15.0)
    with pytest.raises(TransportError):
        waits.until(16.1)


def test_the_default_waits_for_ever() -> None:
    waits = Waits(FOREVER_MS)
    waits.timeout.note(T0, GONE)
    waits.until(1e9)
