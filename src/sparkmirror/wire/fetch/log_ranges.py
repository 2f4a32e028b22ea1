"""Asks a cluster where the logs of many partitions start and end, once, within a time limit.

Runs on: worker, blocking, on any thread; two requests per broker.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import KafkaError, TransportError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.fetch.fetch_session import denial
from sparkmirror.wire.fetch.offset_fetcher import OffsetFetcher, Range
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.net.event_loop import EventLoop

KEEP_BYTES = 1 << 20

Ranges = dict[TopicPartition, Range | KafkaError]


def fetch_ranges(
    config: ClientConfig, partitions: Iterable[TopicPartition], seconds: float
) -> Ranges:
    """The range of every partition, or why it did not come in time."""
    loop = EventLoop()
    cluster = NetworkClient(loop, config, BufferPool(KEEP_BYTES), is_trial=True)
    try:
        question = _Question(cluster, partitions)
        loop.run_until(question.is_complete, seconds)
        return question.results(seconds)
    finally:
        cluster.close()
        loop.close()


class _Question:
    """Partitions that have no response yet; asked again while an error may pass."""

    def __init__(self, cluster: NetworkClient, partitions: Iterable[TopicPartition]) -> None:
        self._cluster = cluster
        # read_uncommitted: a position is valid up to the high watermark, also in a transaction.
        self._finder = OffsetFetcher(cluster, read_committed=False, on_range=self._on_range)
        self._open = dict.fromkeys(partitions)
        self._asked: set[TopicPartition] = set()
        self._errors: dict[TopicPartition, KafkaError] = {}
        self._found: Ranges = {}
        cluster.listeners.append(self)
        cluster.metadata.track({tp.topic for tp in self._open})

    def is_complete(self) -> bool:
        return not self._open

    def results(self, seconds: float) -> Ranges:
        """The result of each, or the error of those without a response."""
        for tp in self._open:
            why = self._errors.get(tp) or self._cluster.last_error or "no leader is known"
            self._found[tp] = TransportError(
                f"ask for the range of {tp} on '{self._cluster.config.alias}': "
                f"no response within {seconds:g} s ({why})"
            )
        return self._found

    def on_connected(self, node: int) -> None:
        """A connection is ready."""
        del node
        self._finder.send_ready()

    def on_metadata(self) -> None:
        """Leaders are known."""
        for tp in [tp for tp in self._open if tp not in self._asked]:
            leader = self._cluster.metadata.leaders.get(tp)
            if leader is not None:
                self._asked.add(tp)
                self._finder.ask(tp, leader.node)
            elif rejected := denial(self._cluster, tp):
                self._on_range(tp, rejected)
            elif self._cluster.metadata.knows(tp.topic):
                self._cluster.metadata.mark_missed(tp.topic)

    def _on_range(self, tp: TopicPartition, result: Range | KafkaError) -> None:
        if tp not in self._open:
            return
        if isinstance(result, KafkaError) and result.retriable:
            self._errors[tp] = result
            self._asked.discard(tp)
            self._cluster.metadata.mark_missed(tp.topic)
            return
        del self._open[tp]
        self._found[tp] = result
