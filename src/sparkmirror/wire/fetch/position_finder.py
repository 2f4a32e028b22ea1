"""Finds where to fetch: by the log's range where no position holds, and by leader epochs (KIP-320).

Runs on: executor and worker, on the event loop's thread.

    no position, or outside the log    ListOffsets, then the consumer decides
    another leader than before         OffsetForLeaderEpoch: does its log have what was read?
"""

from __future__ import annotations

from collections.abc import Callable

from sparkmirror.errors import BrokerError, KafkaError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.leaders import Leader
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.fetch.fetch_session import FetchListener, FetchPartition
from sparkmirror.wire.fetch.leader_epochs import (
    UNKNOWN_END,
    EpochEnd,
    EpochEndFinder,
    EpochHistory,
    EpochQuestion,
)
from sparkmirror.wire.fetch.offset_fetcher import OffsetFetcher, Range
from sparkmirror.wire.protocol.fetch_messages import Limits

OnFound = Callable[[FetchPartition], None]
OnNotFound = Callable[[FetchPartition, KafkaError], None]


class PositionFinder:
    """Asks for one fetcher. While it asks, the partition is `asking` and in no session."""

    def __init__(
        self,
        cluster: NetworkClient,
        limits: Limits,
        consumer: FetchListener,
        on_found: OnFound,
        on_not_found: OnNotFound,
    ) -> None:
        self._consumer = consumer
        self._on_found = on_found
        self._on_not_found = on_not_found
        self._ranges = OffsetFetcher(
            cluster, limits.read_committed, self._range_known, limits.start_age_ms
        )
        self._ends = EpochEndFinder(cluster, self._end_known)
        # With each partition its question; None: where its log begins and ends.
        self._asking: dict[TopicPartition, tuple[FetchPartition, EpochQuestion | None]] = {}
        # Positions that turned out to be outside the log, until the log's range is known.
        self._lost: dict[TopicPartition, int] = {}

    def ask_if_needed(self, partition: FetchPartition, leader: Leader) -> bool:
        """Whether the position has to be found first; then it is being asked for."""
        if partition.next_offset is None:
            self._begin(partition, None)
            self._ranges.ask(partition.tp, leader.node)
            return True
        if partition.epochs.last < 0:
            partition.validated_epoch = leader.epoch
        if partition.validated_epoch == leader.epoch:
            return False
        question = EpochQuestion(partition.tp, leader.epoch, partition.epochs.last)
        self._begin(partition, question)
        self._ends.ask(question, leader.node)
        return True

    def lose(self, partition: FetchPartition) -> None:
        """The position is outside the log."""
        assert partition.next_offset is not None
        self._lost[partition.tp], partition.next_offset = partition.next_offset, None

    def forget(self, partition: FetchPartition) -> None:
        """The partition is removed, or its log is another one."""
        self._lost.pop(partition.tp, None)
        self._asking.pop(partition.tp, None)
        partition.asking = False

    def send_ready(self) -> None:
        """A connection became ready."""
        self._ranges.send_ready()
        self._ends.send_ready()

    def compare(self, partition: FetchPartition, epoch: int, end_offset: int) -> None:
        """The leader's last epoch up to ours is this one, and ends there: go back if need be."""
        position = partition.next_offset
        assert position is not None
        if partition.epochs.is_beyond(epoch, end_offset, position):
            partition.next_offset = partition.epochs.go_back(epoch, end_offset, position)
            if partition.next_offset < position:
                self._consumer.on_truncated(partition.tp, position, partition.next_offset)

    def _begin(self, partition: FetchPartition, question: EpochQuestion | None) -> None:
        partition.asking = True
        self._asking[partition.tp] = partition, question

    def _end(self, tp: TopicPartition, question: EpochQuestion | None) -> FetchPartition | None:
        """The partition that waits for this response; None: it waits for another one by now.

        A topic that was recreated asks for its range while the response about its epochs is still
        in flight, and that response is not about the new log.
        """
        partition, asked = self._asking.get(tp, (None, None))
        if partition is None or asked != question:
            return None
        del self._asking[tp]
        partition.asking = False
        return partition

    def _range_known(self, tp: TopicPartition, found: Range | KafkaError) -> None:
        partition = self._end(tp, None)
        if partition is None:
            return
        if isinstance(found, KafkaError):
            self._on_not_found(partition, found)
            return
        partition.end_offset = found.end
        position = self._lost.pop(tp, None)
        chosen = self._consumer.on_out_of_range(tp, position, found)
        if position is not None:
            # No epoch is known of the records before a later offset; and a broker that rejects a
            # position inside its log does not know the epoch.
            rows = partition.epochs.before(chosen) if chosen < position else ()
            partition.epochs = EpochHistory(rows)
        partition.next_offset = chosen
        self._on_found(partition)

    def _end_known(self, question: EpochQuestion, found: EpochEnd | KafkaError) -> None:
        partition = self._end(question.tp, question)
        if partition is None:
            return
        if isinstance(found, BrokerError) and not found.retriable:
            # A broker that speaks the request and rejects it does not keep us from fetching, which
            # compares epochs too, and shows whether anything else is wrong.
            found = UNKNOWN_END
        if isinstance(found, KafkaError):
            self._on_not_found(partition, found)
            return
        partition.validated_epoch = question.leader_epoch
        if found.epoch >= 0 and found.end_offset >= 0:
            self.compare(partition, found.epoch, found.end_offset)
        self._on_found(partition)
