"""For how long partitions of a topic stand still, seen from outside."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from sparkmirror.embedded import KafkaCluster

_LOOK_SECONDS = 0.05
_ASK_SECONDS = 10.0


class Standstills:
    """Watches the end offsets of a topic from a thread until the block ends.

    A partition is seen to have grown up to a look later than it did, so a pause may be measured as
    that much longer or shorter.
    """

    def __init__(self, cluster: KafkaCluster, topic: str, partitions: int) -> None:
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        self._partitions = [TopicPartition(topic, at) for at in range(partitions)]
        self._ends = dict.fromkeys(range(partitions), -1)
        self._grown_at: dict[int, float] = {}
        self._longest = dict.fromkeys(range(partitions), 0.0)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch {topic}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join(_ASK_SECONDS)

    def take_longest(self) -> dict[int, float]:
        """By partition, the longest pause since the last call, also one that lasts."""
        now = time.monotonic()
        with self._lock:
            found = {
                at: max(self._longest[at], now - since) for at, since in self._grown_at.items()
            }
            self._longest = dict.fromkeys(self._longest, 0.0)
            # A pause that lasts counts for the next call from now on.
            self._grown_at = dict.fromkeys(self._grown_at, now)
        return found

    def counts(self) -> dict[int, int]:
        """By partition, its end offset at the last look."""
        with self._lock:
            return dict(self._ends)

    def _run(self) -> None:
        while not self._stopping.wait(_LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        latest = OffsetSpec.latest()
        asked = self._admin.list_offsets(
            dict.fromkeys(self._partitions, latest),
            isolation_level=IsolationLevel.READ_UNCOMMITTED,
            request_timeout=_ASK_SECONDS,
        )
        ends = {tp.partition: future.result().offset for tp, future in asked.items()}
        now = time.monotonic()
        with self._lock:
            for at, end in ends.items():
                if end > self._ends[at]:
                    pause = now - self._grown_at.get(at, now)
                    self._longest[at] = max(self._longest[at], pause)
                    self._ends[at], self._grown_at[at] = end, now
