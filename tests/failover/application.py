"""What is moved: an application that writes numbers, and one that reads them in a group.

Both run in threads of their own; what goes wrong there is raised by `stop`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from confluent_kafka import Consumer

from sparkmirror.demo.client import client_settings
from sparkmirror.demo.producing import producing
from sparkmirror.embedded import KafkaCluster
from sparkmirror.types import TopicPartition

STOP_SECONDS = 30.0
_PAUSE_SECONDS = 0.005


class _Running:
    """A loop in a thread, until `stop`."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(1)
        self._done = self._pool.submit(self._run)

    def stop(self) -> None:
        """Let it end in an orderly way; raises what it ended with. A second call does nothing."""
        self._stopping.set()
        self._done.result(STOP_SECONDS)
        self._pool.shutdown()

    def check(self) -> None:
        """Raise what it ended with, if it has ended."""
        if self._done.done():
            self._done.result()

    def _run(self) -> None:
        raise NotImplementedError


class Writer(_Running):
    """Sends the next numbers, round the partitions, about 200 each second."""

    def __init__(
        self, cluster: KafkaCluster, topic: str, partitions: int, numbers: Iterator[int]
    ) -> None:
        self.sent: list[int] = []
        self._servers = cluster.bootstrap_servers
        self._places = itertools.cycle([TopicPartition(topic, at) for at in range(partitions)])
        self._numbers = numbers
        super().__init__()

    def _run(self) -> None:
        with producing(self._servers, linger_ms=0) as producer:
            while not self._stopping.wait(_PAUSE_SECONDS):
                number = next(self._numbers)
                producer.send(next(self._places), b"key", b"%d" % number)
                self.sent.append(number)


class Reader(_Running):
    """A member of a group that commits now and then, and what it has read when it ends."""

    def __init__(self, cluster: KafkaCluster, group: str, pattern: str) -> None:
        self.read: list[int] = []
        self._pattern = pattern
        self._settings = client_settings(
            cluster.bootstrap_servers,
            group_id=group,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=500,
            # How soon it sees a topic that is created later.
            topic_metadata_refresh_interval_ms=500,
        )
        super().__init__()

    def _run(self) -> None:
        with closing(Consumer(self._settings)) as consumer:
            consumer.subscribe([self._pattern])
            while not self._stopping.is_set():
                for message in consumer.consume(1000, timeout=0.1):
                    assert message.error() is None, message.error()
                    self.read.append(int(message.value()))
