"""Fetches the batches of many partitions: one long-polling session per broker.

Runs on: executor and worker, on the event loop's thread. For every broker that leads (or, with
client.rack, follows) a wanted partition there is a lane with at most one request on its way. An
answer is handed to the consumer partition by partition. Then, in a backlog, the next request leaves
before the consumer starts producing; of a trickle what has come goes on first.
"""

from __future__ import annotations

from sparkmirror.errors import BrokerError, KafkaError
from sparkmirror.types import TopicPartition
from sparkmirror.wire import fetch_messages as fetch
from sparkmirror.wire.api_versions import FETCH
from sparkmirror.wire.buffers import Lease
from sparkmirror.wire.cluster import Cluster
from sparkmirror.wire.connection import Connection
from sparkmirror.wire.error_codes import (
    FETCH_SESSION_ID_NOT_FOUND,
    INVALID_FETCH_SESSION_EPOCH,
    OFFSET_OUT_OF_RANGE,
    error_code,
)
from sparkmirror.wire.fetch_state import (
    Consumer,
    Lane,
    Partition,
    Records,
    Taken,
    backoff,
    denial,
    fetch_error,
    in_the_news,
    serving_node,
    shared_limits,
)
from sparkmirror.wire.leader_epochs import EpochHistory, EpochRows
from sparkmirror.wire.position_finder import PositionFinder
from sparkmirror.wire.silence import silent_partitions

__all__ = ["Consumer", "Fetcher", "Records", "Taken"]

# Errors that metadata does not cure (a missing permission, say) are tried again this often.
SLOW_RETRY_SECONDS = 10.0
# A broker answers as soon as it has one record. Of a trickle that would be one record per request:
# after a small answer the next request waits until so long after the last one. Measured with 1,000
# records/s, in turns: 0.5 and 1 ms have a higher p90 and p99, from 1.25 ms on also the median.
SMALL_ANSWER_BYTES = 16 << 10
PACE_SECONDS = 0.00075
LOST_SESSION = (FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH)


class Fetcher:
    """Keeps one fetch under way per broker for all partitions added to it."""

    def __init__(
        self, cluster: Cluster, limits: fetch.Limits, consumer: Consumer, timeout: float
    ) -> None:
        self._cluster = cluster
        self._limits = limits
        self._consumer = consumer
        self._timeout = timeout + limits.max_wait_ms / 1000
        self._partitions: dict[TopicPartition, Partition] = {}
        self._lanes: dict[int, Lane] = {}
        self._finder = PositionFinder(cluster, limits, consumer, self._place, self._on_not_found)
        # Partitions that cannot be fetched now, for whichever reason.
        self.troubled: set[TopicPartition] = set()
        self.stopped = False
        cluster.listeners.append(self)

    # -- what the consumer asks ------------------------------------------------------------------

    def add(
        self,
        tp: TopicPartition,
        next_offset: int | None,
        epochs: EpochRows = (),
        topic_id: bytes | None = None,
    ) -> Partition:
        """Fetch `tp` from `next_offset` on; None: the consumer decides when both ends are known.

        `epochs` and `topic_id` tell which log the position is of, if that is known.
        """
        partition = Partition(tp, next_offset, topic_id=topic_id, epochs=EpochHistory(epochs))
        self._partitions[tp] = partition
        if topic_id is not None:
            self._cluster.topic_ids.setdefault(tp.topic, topic_id)
        self._cluster.track([tp.topic])
        self._place(partition)
        return partition

    def remove(self, *partitions: TopicPartition) -> None:
        """Fetch these no more."""
        for tp in partitions:
            if (partition := self._partitions.pop(tp, None)) is not None:
                self._leave(partition)
                self._finder.forget(partition)
            self.troubled.discard(tp)
        left = {tp.topic for tp in self._partitions}
        self._cluster.untrack({tp.topic for tp in partitions} - left)

    def pause(self, tp: TopicPartition) -> None:
        """Fetch nothing of `tp` until `resume`; the others go on."""
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

    def pump(self) -> None:
        """Send every request that may leave."""
        for lane in list(self._lanes.values()):
            self._pump(lane)

    def note_silence(self) -> None:
        """Name partitions whose broker owes a response or is unreachable; called once a second."""
        wait = self._limits.max_wait_ms / 1000
        for tp, error in silent_partitions(self._cluster, self._lanes.values(), wait).items():
            self.troubled.add(tp)
            self._consumer.on_partition_error(tp, error)

    # -- what the cluster tells ------------------------------------------------------------------

    def on_connected(self, node: int) -> None:
        """A connection is ready."""
        if (lane := self._lanes.get(node)) is not None:
            self._pump(lane)
        self._finder.pump()

    def on_metadata(self) -> None:
        """Leaders may have moved, topics may have been created anew."""
        for partition in in_the_news(self._cluster, self._partitions.values()):
            self._place(partition)
        self.pump()

    # -- placing partitions ----------------------------------------------------------------------

    def _place(self, partition: Partition) -> None:
        """Put the partition into the lane of the broker that should serve it."""
        leader = self._cluster.leaders.get(partition.tp)
        if leader is None or partition.paused or partition.asking:
            self._leave(partition)
            if leader is None:
                self.troubled.add(partition.tp)
                # One that was never looked up is being looked up: nothing is amiss yet.
                if self._cluster.knows(partition.tp.topic):
                    self._cluster.miss(partition.tp.topic)
                    if denied := denial(self._cluster, partition.tp):
                        self._consumer.on_partition_error(partition.tp, denied)
            return
        if not self._same_topic(partition):
            return
        partition.leader_epoch = leader.epoch
        if self._cluster.loop.clock() < partition.not_before:
            return
        if self._finder.must_ask(partition, leader):
            self._leave(partition)
            return
        self._join(partition, serving_node(self._cluster, partition, leader.node))

    def _same_topic(self, partition: Partition) -> bool:
        topic_id = self._cluster.topic_ids.get(partition.tp.topic)
        returns = self._cluster.deleted_topics.returns[partition.tp.topic]
        is_same = partition.is_of_topic(topic_id, returns)
        partition.topic_id, partition.returns = topic_id, returns
        if is_same:
            if partition.lane is not None:
                partition.lane.names = None
            return True
        self._finder.forget(partition)
        partition.epochs.forget()
        self._consumer.on_recreated(partition.tp, partition.next_offset or 0)
        self._leave(partition)
        partition.next_offset = None
        self._place(partition)
        return False

    def _join(self, partition: Partition, node: int) -> None:
        if partition.lane is not None and partition.lane.node == node:
            return
        self._leave(partition)
        lane = self._lanes.get(node)
        if lane is None:
            lane = self._lanes[node] = Lane(node)
        lane.join(partition)
        self._pump(lane)

    @staticmethod
    def _leave(partition: Partition) -> None:
        if partition.lane is not None:
            partition.lane.leave(partition)

    def _retry(self, partition: Partition, seconds: float) -> None:
        """Take the partition out of its lane and place it again later."""
        self._leave(partition)
        partition.not_before = self._cluster.loop.clock() + seconds
        self._cluster.loop.call_later(seconds, lambda: self._place_again(partition))

    def _place_again(self, partition: Partition) -> None:
        if self._partitions.get(partition.tp) is partition and partition.lane is None:
            self._place(partition)

    # -- finding the position --------------------------------------------------------------------

    def _on_not_found(self, partition: Partition, error: KafkaError) -> None:
        if isinstance(error, BrokerError):
            self._on_error(partition, error.code)
            return
        self.troubled.add(partition.tp)
        self._retry(partition, backoff(self._cluster, partition))

    # -- requests and answers --------------------------------------------------------------------

    def _pump(self, lane: Lane) -> None:
        if lane.waiting or not lane.wanted or self.stopped or not self._consumer.may_fetch():
            return
        if lane.not_before and self._is_too_soon(lane):
            return
        connection = self._cluster.connection(lane.node)
        if connection is not None:
            self._send(lane, connection)

    def _is_too_soon(self, lane: Lane) -> bool:
        """A trickle of records is fetched a few at a time; asks again when it is time."""
        wait = lane.not_before - self._cluster.loop.clock()
        lane.not_before = 0.0
        if wait <= 0:
            return False
        lane.waiting = True
        self._cluster.loop.call_later(wait, lambda: self._go_on(lane))
        return True

    def _go_on(self, lane: Lane) -> None:
        lane.waiting = False
        self._pump(lane)

    def _send(self, lane: Lane, connection: Connection) -> None:
        lane.sent_at = self._cluster.loop.clock()
        ids = self._cluster.topic_ids
        lane.choose_version(ids, connection.versions.choose(FETCH))
        forgotten = lane.take_left()
        wanted = [lane.wanted[tp].as_wanted() for tp in lane.changed]
        for row in wanted:
            lane.told[row.tp] = row.next_offset
        lane.changed.clear()
        lane.waiting = True
        body = fetch.encode_fetch(
            lane.version,
            (lane.session_id, lane.epoch),
            wanted,
            [tp for tp in forgotten if tp.topic in ids or lane.version < fetch.BY_ID],
            topic_ids=ids,
            limits=shared_limits(self._limits, self._lanes.values()),
        )
        resets = lane.resets
        connection.send(
            (FETCH.key, lane.version),
            [body],
            lambda answer, lease: self._on_answer(lane, resets, answer, lease),
            lambda error: self._on_failure(lane, error),
            self._timeout,
            flexible=lane.version >= FETCH.first_flexible,
            keep=True,
        )

    def _on_failure(self, lane: Lane, _: KafkaError) -> None:
        """The connection died: the session is gone with it. The cluster reconnects and tells."""
        lane.waiting = False
        lane.reset()
        self.troubled.update(lane.wanted)
        for partition in list(lane.wanted.values()):
            self._place(partition)  # a follower that is gone: back to the leader
        self._cluster.refresh()

    def _on_answer(self, lane: Lane, resets: int, view: memoryview, lease: Lease | None) -> None:
        assert lease is not None
        lane.waiting = False
        try:
            answer = fetch.decode_fetch(view, lane.version)
            if self.stopped:
                return  # what it brings is fetched again after the next start
            if answer.code:
                self._session_failed(lane, answer.code)
            elif lane.resets == resets:
                self._take(lane, answer, lease)
        finally:
            lease.release()
        if len(view) < SMALL_ANSWER_BYTES:
            lane.not_before = lane.sent_at + PACE_SECONDS
            self._consumer.on_round()
            self._pump(lane)
        else:
            self._pump(lane)
            self._consumer.on_round()

    def _session_failed(self, lane: Lane, code: int) -> None:
        lane.reset()
        if code not in LOST_SESSION:  # not cured by a new session: with back-off
            for partition in list(lane.wanted.values()):
                self._on_error(partition, code)

    def _take(self, lane: Lane, answer: fetch.Answer, lease: Lease) -> None:
        if lane.epoch == fetch.NEW_SESSION:
            lane.session_id = answer.session_id
        # Session id 0: the broker keeps no session for us, so every request names all partitions.
        lane.epoch = lane.epoch % 0x7FFFFFFF + 1 if answer.session_id else fetch.NEW_SESSION
        if self.troubled:
            self.troubled -= lane.told.keys() & lane.wanted.keys()
        names = lane.topic_names()
        is_strange = False
        for row in answer.rows:
            tp = TopicPartition(names.get(row.topic, ""), row.partition)
            partition = lane.wanted.get(tp)
            # An answer to an older position (removed, reset, moved meanwhile) is of no use.
            if partition is not None and lane.told.get(tp) == partition.next_offset:
                self._take_partition(lane, partition, row, lease)
            is_strange = is_strange or tp not in lane.told
        # The session holds a partition that we cannot name, so we cannot end it either: a topic
        # that is gone, or another one under its name. Its error would come at once, for ever.
        if is_strange or not answer.session_id:
            lane.reset()

    def _take_partition(
        self, lane: Lane, partition: Partition, row: fetch.Fetched, lease: Lease
    ) -> None:
        if row.code:
            self._on_error(partition, row.code)
            return
        partition.failures = 0
        committed = self._limits.read_committed
        partition.end_offset = row.last_stable_offset if committed else row.high_watermark
        if row.preferred_replica >= 0 and row.preferred_replica != lane.node:
            self._follow(partition, row.preferred_replica)
            return
        if row.diverging is not None:
            self._on_diverging(lane, partition, *row.diverging)
            return
        if not len(row.records):
            return
        first = partition.next_offset
        assert first is not None
        end_offset = partition.end_offset
        records = Records(partition.tp, first, row.records, lease, row.aborted, end_offset)
        partition.next_offset, epoch = self._consumer.on_records(records)
        if epoch != partition.epochs.last and partition.next_offset != first:
            partition.epochs.note(epoch, first)
        if partition.lane is lane:
            lane.changed.add(partition.tp)

    def _on_diverging(self, lane: Lane, partition: Partition, epoch: int, end_offset: int) -> None:
        """The log does not have what was read: go back to where it does."""
        if partition.preferred is not None:
            partition.preferred = None  # the follower may lag behind: ask the leader
            self._retry(partition, 0.0)
            return
        self._finder.compare(partition, epoch, end_offset)
        if partition.lane is lane:
            lane.changed.add(partition.tp)

    def _follow(self, partition: Partition, replica: int) -> None:
        """The leader names a replica in our rack: fetch from there for a while (KIP-392)."""
        if self._cluster.is_failing(replica):
            # The leader has not noticed, and gives nothing itself: see whether it comes back.
            self._cluster.connection(replica)
            self._retry(partition, backoff(self._cluster, partition))
            return
        partition.preferred = replica
        age = self._cluster.config.metadata_max_age_ms / 1000
        partition.preferred_until = self._cluster.loop.clock() + age
        self._join(partition, replica)

    def _on_error(self, partition: Partition, code: int) -> None:
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
            self._cluster.refresh()
        self._consumer.on_partition_error(tp, fetch_error(self._cluster, tp, code))
        wait = backoff(self._cluster, partition) if row.retriable else SLOW_RETRY_SECONDS
        self._retry(partition, wait)
