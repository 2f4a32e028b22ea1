"""Where each partition is fetched, and what becomes of it after an error.

Runs on: executor and worker, on the event loop's thread. A partition is in the session with the
broker that leads it (or, with client.rack, follows), or is read ahead from there, or waits: for a
leader, for its position, or for the end of a back-off.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from sparkmirror.errors import BrokerError, KafkaError
from sparkmirror.retry import RetryPolicy
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.fetch.ahead_reader import AheadReader
from sparkmirror.wire.fetch.fetch_session import (
    FetchListener,
    FetchPartition,
    FetchSession,
    backoff,
    denial,
    fetch_error,
    serving_node,
)
from sparkmirror.wire.fetch.leader_epochs import EpochHistory, EpochRows
from sparkmirror.wire.fetch.position_finder import PositionFinder
from sparkmirror.wire.protocol import fetch_messages as fetch
from sparkmirror.wire.protocol.error_codes import OFFSET_OUT_OF_RANGE, error_code

# Errors that metadata does not cure (a missing permission, say) are retried this often.
LASTING_ERROR = RetryPolicy.every(10.0)


class FetchPlaces(ABC):
    """All partitions of a fetcher, each in its place."""

    def __init__(
        self, cluster: NetworkClient, limits: fetch.Limits, consumer: FetchListener, timeout: float
    ) -> None:
        self._cluster = cluster
        self._consumer = consumer
        self._partitions: dict[TopicPartition, FetchPartition] = {}
        self._sessions: dict[int, FetchSession] = {}
        self._finder = PositionFinder(cluster, limits, consumer, self._place, self._on_not_found)
        self._ahead = AheadReader(
            cluster,
            limits,
            consumer,
            timeout,
            on_end=self._place,
            is_stopped=lambda: self.stopped,
        )
        # Partitions that cannot be fetched now, for any reason.
        self.troubled: set[TopicPartition] = set()
        self.stopped = False

    @abstractmethod
    def _send_next(self, session: FetchSession) -> None:
        """Send the next request of a session, if it may leave."""

    # -- from the consumer -----------------------------------------------------------------------

    def add(
        self,
        tp: TopicPartition,
        next_offset: int | None,
        epochs: EpochRows = (),
        topic_id: bytes | None = None,
    ) -> FetchPartition:
        """Fetch `tp` from `next_offset` on; None: the consumer decides when both ends are known.

        `epochs` and `topic_id` identify the log of the position, if that is known.
        """
        partition = FetchPartition(tp, next_offset, topic_id=topic_id, epochs=EpochHistory(epochs))
        self._partitions[tp] = partition
        if topic_id is not None:
            self._cluster.metadata.topic_ids.setdefault(tp.topic, topic_id)
        self._cluster.metadata.track([tp.topic])
        self._place(partition)
        return partition

    def remove(self, *partitions: TopicPartition) -> None:
        """Stop fetching these."""
        for tp in partitions:
            if (partition := self._partitions.pop(tp, None)) is not None:
                self._leave(partition)
                self._finder.forget(partition)
            self.troubled.discard(tp)
        left = {tp.topic for tp in self._partitions}
        self._cluster.metadata.untrack({tp.topic for tp in partitions} - left)

    def pause(self, tp: TopicPartition) -> None:
        """Fetch nothing of `tp` until `resume`; the others continue."""
        partition = self._partitions.get(tp)
        if partition is not None and not partition.paused:
            partition.paused = True
            self._leave(partition)

    def resume(self, tp: TopicPartition) -> None:
        """Undo `pause`."""
        partition = self._partitions.get(tp)
        if partition is not None and partition.paused:
            partition.paused = False
            self._place(partition)

    # -- placing partitions ----------------------------------------------------------------------

    def _place(self, partition: FetchPartition) -> None:
        """Put the partition into the session of the broker that should serve it."""
        leader = self._cluster.metadata.leaders.get(partition.tp)
        if leader is None or partition.paused or partition.asking:
            self._leave(partition)
            if leader is None:
                self.troubled.add(partition.tp)
                # One that was never looked up is being looked up: no problem yet.
                if self._cluster.metadata.knows(partition.tp.topic):
                    self._cluster.metadata.mark_missed(partition.tp.topic)
                    if denied := denial(self._cluster, partition.tp):
                        self._consumer.on_partition_error(partition.tp, denied)
            return
        if not self._check_topic_id(partition):
            return
        partition.leader_epoch = leader.epoch
        if self._cluster.loop.clock() < partition.not_before:
            return
        if self._finder.ask_if_needed(partition, leader):
            self._leave(partition)
            return
        self._join(partition, serving_node(self._cluster, partition, leader.node))

    def _check_topic_id(self, partition: FetchPartition) -> bool:
        """Whether the topic is the one that was read (KIP-516); if not, its position is reset."""
        topic_id = self._cluster.metadata.topic_ids.get(partition.tp.topic)
        returns = self._cluster.metadata.deleted_topics.returns[partition.tp.topic]
        is_same = partition.is_of_topic(topic_id, returns)
        partition.topic_id, partition.returns = topic_id, returns
        if is_same:
            if partition.session is not None:
                partition.session.names = None
            return True
        self._finder.forget(partition)
        partition.epochs.forget()
        self._consumer.on_recreated(partition.tp, partition.next_offset or 0)
        self._leave(partition)
        partition.next_offset = None
        self._place(partition)
        return False

    def _join(self, partition: FetchPartition, node: int) -> None:
        if partition.session is not None and partition.session.node == node:
            return
        ahead = partition.ahead
        if ahead is not None and (ahead.node, ahead.leader_epoch) == (node, partition.leader_epoch):
            return
        self._leave(partition)
        session = self._sessions.get(node)
        if session is None:
            session = self._sessions[node] = FetchSession(node)
        session.join(partition)
        self._send_next(session)

    def _leave(self, partition: FetchPartition) -> None:
        if partition.session is not None:
            partition.session.leave(partition)
        if partition.ahead is not None:
            self._ahead.drop(partition)

    def _retry(self, partition: FetchPartition, seconds: float) -> None:
        """Take the partition out of its session and place it again later."""
        self._leave(partition)
        partition.not_before = self._cluster.loop.clock() + seconds
        self._cluster.loop.call_later(seconds, lambda: self._place_again(partition))

    def _place_again(self, partition: FetchPartition) -> None:
        if self._partitions.get(partition.tp) is partition and partition.session is None:
            self._place(partition)

    # -- finding the position --------------------------------------------------------------------

    def _on_not_found(self, partition: FetchPartition, error: KafkaError) -> None:
        if isinstance(error, BrokerError):
            self._on_error(partition, error.code)
            return
        self.troubled.add(partition.tp)
        self._retry(partition, backoff(self._cluster, partition))

    # -- errors ------------------------------------------------------------------------------------

    def _on_diverging(
        self, session: FetchSession, partition: FetchPartition, epoch: int, end_offset: int
    ) -> None:
        """The log does not have what was read: go back to where it does.

        Brokers of 2.7 and later compare the epoch of the last batch read with each fetch (KIP-595);
        every new leader is asked besides (KIP-320), which older ones need.
        """
        if partition.preferred is not None:
            partition.preferred = None  # the follower may lag behind: ask the leader
            self._retry(partition, 0.0)
            return
        self._finder.compare(partition, epoch, end_offset)
        partition.stay += 1
        if partition.session is session:
            session.changed.add(partition.tp)

    def _follow(self, partition: FetchPartition, replica: int) -> None:
        """The leader names a replica in our rack: fetch from there for a while (KIP-392)."""
        if self._cluster.is_failing(replica):
            # The leader has not noticed, and returns nothing itself: see whether it returns.
            self._cluster.connection(replica)
            self._retry(partition, backoff(self._cluster, partition))
            return
        partition.preferred = replica
        age = self._cluster.config.metadata_max_age_ms / 1000
        partition.preferred_until = self._cluster.loop.clock() + age
        self._join(partition, replica)

    def _on_error(self, partition: FetchPartition, code: int) -> None:
        row, tp = error_code(code), partition.tp
        self.troubled.add(tp)
        if partition.preferred is not None:
            partition.preferred = None  # the follower may lag behind: ask the leader
            self._retry(
                partition, 0.0 if code == OFFSET_OUT_OF_RANGE else backoff(self._cluster, partition)
            )
            return
        if code == OFFSET_OUT_OF_RANGE and partition.next_offset is not None:
            self._finder.lose(partition)
            self._retry(partition, 0.0)
            return
        if row.refresh:
            self._cluster.metadata.refresh(tp.topic)
        self._consumer.on_partition_error(tp, fetch_error(self._cluster, tp, code))
        wait = backoff(self._cluster, partition) if row.retriable else LASTING_ERROR.wait(1)
        self._retry(partition, wait)
