"""delivery.timeout.ms: how long a target partition may accept nothing before the copy task fails.

Runs on: executor, on the copy loop's thread. The worker restarts a failed task, and its status
shows why. The key is the producer's own (KIP-91); Connect's default is to wait for ever, and so is
the default here.
"""

from __future__ import annotations

from sparkmirror.errors import KafkaError, TransportError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.net.event_loop import EventLoop

FOREVER_MS = 2**31 - 1


class DeliveryTimeout:
    """Since when each target partition waits, and why."""

    def __init__(self, loop: EventLoop, timeout_ms: int) -> None:
        self._loop = loop
        self._seconds = timeout_ms / 1000
        self._is_off = timeout_ms >= FOREVER_MS
        self._waiting: dict[TopicPartition, tuple[float, KafkaError]] = {}

    def note(self, tp: TopicPartition, error: KafkaError | None) -> None:
        """The partition waits for this reason, or (None) continues."""
        if self._is_off:
            return
        if error is None:
            self._waiting.pop(tp, None)
            return
        known = self._waiting.get(tp)
        since = self._loop.clock() if known is None else known[0]
        self._waiting[tp] = since, error
        if known is None:
            self._loop.call_later(self._seconds, lambda: self._check(tp, since))

    def _check(self, tp: TopicPartition, since: float) -> None:
        """Fail the task if the partition has waited the whole time."""
        waiting = self._waiting.get(tp)
        if waiting is None or waiting[0] != since:
            return
        raise TransportError(
            f"the target has accepted nothing of {tp} for {self._seconds:g} s "
            f"(delivery.timeout.ms): {waiting[1]}"
        )
