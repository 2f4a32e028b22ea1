"""Who writes positions: the producer of the records, unless they go to another cluster.

Runs on: executor, on the copy loop's thread. A Connect worker keeps its positions in its own
cluster. That need not be the one the records go to: producer.override.bootstrap.servers.
"""

from __future__ import annotations

from sparkmirror.batches.forward import stamp
from sparkmirror.config.clients import ProducerConfig
from sparkmirror.errors import BrokerError, KafkaError
from sparkmirror.spark.copy.partition_problems import PartitionProblems
from sparkmirror.spark.copy.refusals import refuse_positions
from sparkmirror.spark.offsets.positions import Commit, Positions
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.net.event_loop import EventLoop
from sparkmirror.wire.produce.producer import KafkaProducer
from sparkmirror.wire.produce.record_accumulator import ProducerBatch, Replacement


class PositionsWriter:
    """Positions that have a cluster and a producer of their own."""

    def __init__(
        self,
        loop: EventLoop,
        pool: BufferPool,
        config: ProducerConfig,
        positions: Positions,
        problems: PartitionProblems,
    ) -> None:
        self._positions = positions
        self._problems = problems
        self._cluster = NetworkClient(loop, config.client, pool)
        self.producer = KafkaProducer(
            self._cluster, self, stamp, acks=-1, request_timeout_ms=config.request_timeout_ms
        )

    def close(self) -> None:
        """Close all connections."""
        self._cluster.close()

    def on_acked(self, tp: TopicPartition, parcel: ProducerBatch) -> None:
        """Stored."""
        self._problems.pop(tp, None)
        assert isinstance(parcel.owner, Commit)
        self._positions.stored(parcel.owner)

    def on_refused(
        self, tp: TopicPartition, parcel: ProducerBatch, error: BrokerError
    ) -> Replacement:
        """Without positions the next start would copy everything again."""
        return refuse_positions(error)

    def on_stuck(self, tp: TopicPartition, error: KafkaError | None) -> None:
        """The copy goes on; that positions wait is said."""
        if error is None:
            self._problems.pop(tp, None)
        else:
            self._problems.note(tp, error, is_of_positions=True)
