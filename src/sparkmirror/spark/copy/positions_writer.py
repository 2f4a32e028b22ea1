"""Who writes positions: the producer of the records, unless they go to another cluster.

Runs on: executor, on the copy loop's thread. A Connect worker keeps its positions in its own
cluster. That need not be the one the records go to: producer.override.bootstrap.servers.
"""

from __future__ import annotations

from sparkmirror.config.clients import ProducerConfig
from sparkmirror.errors import KafkaError
from sparkmirror.spark.copy.partition_problems import PartitionProblems
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.net.event_loop import EventLoop
from sparkmirror.wire.produce.producer import KafkaProducer


class PositionsWriter:
    """Positions that have a cluster and a producer of their own."""

    def __init__(
        self,
        loop: EventLoop,
        pool: BufferPool,
        config: ProducerConfig,
        problems: PartitionProblems,
    ) -> None:
        self._problems = problems
        self._cluster = NetworkClient(loop, config.client, pool)
        self.producer = KafkaProducer(
            self._cluster, self, acks=-1, request_timeout_ms=config.request_timeout_ms
        )

    def close(self) -> None:
        """Close all connections."""
        self._cluster.close()

    def on_blocked(self, tp: TopicPartition, error: KafkaError | None) -> None:
        """Copying continues; status and log show that positions wait."""
        if error is None:
            self._problems.pop(tp, None)
        else:
            self._problems.note(tp, error, is_of_positions=True)
