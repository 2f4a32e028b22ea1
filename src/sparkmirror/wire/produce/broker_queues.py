"""Which broker, and over which of the connections to it, the batches of a partition go.

Runs on: executor, on the event loop's thread.

A broker reads the next request of a connection only after its response to the last one, so one
connection keeps one of its threads busy at most. With two, one request is read while another one is
stored: measured, 430 MB/s instead of 330. Under light load only the first connection is used, or
what came with one response of the source would leave in two requests. A partition changes its
connection only when nothing of it is in flight, which keeps its order.

A far broker needs more. A connection carries one window of TCP per round trip, some megabytes, and
as many requests as may be in flight: then partitions spread over up to sixteen connections, also
under light load, and more bytes have to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import inf

from sparkmirror.errors import BrokerError, DeniedError, KafkaError
from sparkmirror.mirror.permissions import Operation, topic_permission
from sparkmirror.types import TopicPartition
from sparkmirror.wire.access import PRODUCING, response_error
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.fetch.silence import silence
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.produce.record_accumulator import ProducePartition
from sparkmirror.wire.protocol.api_versions import PRODUCE
from sparkmirror.wire.protocol.error_codes import LEADER_NOT_AVAILABLE, TOPIC_AUTHORIZATION_FAILED

# The first version of Produce that brokers of 2.8 know.
CONTENT_VERSION = 9
# What waits for the target when a second connection begins to pay.
TRICKLE_BYTES = 64 << 10
# A broker is far from this round trip on. A busy one nearby takes 10 to 15 ms for what waits there,
# though rarely for the fastest of several responses.
FAR_SECONDS = 0.02
FEWEST_RESPONSES = 8
# Windows are 4 MB unless they were tuned, so this is good for 400 MB/s: 16 connections at 160 ms.
CONNECTIONS_PER_SECOND = 100
MOST_CONNECTIONS = 16
# What must wait so that a far target is busy with 300 MB/s; bounded by the memory of a task.
BYTES_PER_SECOND = 300_000_000
MOST_WANTED_BYTES = 48 << 20


@dataclass(slots=True)
class BrokerQueue:
    """The requests in flight on one connection."""

    node: int
    connection_index: int
    ready: dict[TopicPartition, ProducePartition] = field(default_factory=dict)
    in_flight: int = 0
    # The shortest time a response has taken on it, and whether its broker is far therefore.
    fastest_seconds: float = inf
    is_far: bool = False

    def hold_ready(self) -> None:
        """What still waits now must wait: on a far connection it should go in larger batches."""
        if self.is_far:
            for partition in self.ready.values():
                partition.held = True


NO_LEADER = "no broker leads the partition now: the topic is new, or its brokers are down"


class BrokerQueues:
    """Puts partitions that have something to send into the queue of their leader."""

    def __init__(
        self,
        cluster: NetworkClient,
        connections: int,
        on_leaderless: Callable[[ProducePartition, KafkaError], None],
        on_moved: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._connections = connections
        self._on_leaderless = on_leaderless
        self._on_moved = on_moved
        self._queues: dict[tuple[int, int], BrokerQueue] = {}
        self._last_home = 0
        # How many connections lead to brokers that are far.
        self._far_connections: dict[int, int] = {}
        self.wanted_bytes = 0

    def next_home(self) -> int:
        """The connection of the next new partition, if there were enough: they take turns."""
        self._last_home += 1
        return self._last_home

    def measure(self) -> None:
        """See how far the brokers are; called once a second, and when that becomes known."""
        farthest = 0.0
        self._far_connections.clear()
        for node in {queue.node for queue in self._queues.values()}:
            seconds = min(queue.fastest_seconds for queue in self.of_node(node))
            if FAR_SECONDS <= seconds < inf:
                farthest = max(farthest, seconds)
                self._far_connections[node] = self._connections_for(seconds)
        for queue in self._queues.values():
            queue.is_far = queue.node in self._far_connections
        self.wanted_bytes = min(int(farthest * BYTES_PER_SECOND), MOST_WANTED_BYTES)

    def _connections_for(self, seconds: float) -> int:
        """Twice as many, and twice again: each change lets partitions wait for a round trip."""
        count = self._connections
        while count < min(seconds * CONNECTIONS_PER_SECOND, MOST_CONNECTIONS):
            count *= 2
        return count

    def note_pace(self, queue: BrokerQueue, connection: Connection) -> None:
        """Remember how fast the broker can be; one response alone is no measure."""
        if connection.responses >= FEWEST_RESPONSES:
            is_first = queue.fastest_seconds == inf
            queue.fastest_seconds = connection.fastest_seconds
            if is_first:
                self.measure()

    def of_node(self, node: int) -> list[BrokerQueue]:
        """All queues to one broker."""
        return [queue for queue in self._queues.values() if queue.node == node]

    def with_work(self) -> list[BrokerQueue]:
        """Those that have a partition with something to send."""
        return [queue for queue in self._queues.values() if queue.ready]

    def under_way(self) -> list[BrokerQueue]:
        """Those that wait for responses."""
        return [queue for queue in self._queues.values() if queue.in_flight]

    def silent(
        self, partitions: Iterable[ProducePartition]
    ) -> Iterator[tuple[ProducePartition, KafkaError]]:
        """Find those of the partitions that wait for a broker that sends nothing."""
        errors: dict[tuple[int, int], KafkaError] = {}
        for queue in self.under_way():
            error = silence(self._cluster, queue.node, queue.connection_index)
            if error is not None:
                errors[queue.node, queue.connection_index] = error
        for partition in partitions if errors else ():
            error = errors.get((partition.node, partition.connection_index))
            if error is not None and partition.in_flight:
                yield partition, error

    def schedule(self, partition: ProducePartition, waiting_bytes: int) -> None:
        """Put a partition with work into the queue of its leader; so much waits in all."""
        if not partition.queue or partition.failed is not None or partition.resting:
            return
        leader = self._cluster.metadata.leaders.get(partition.tp)
        if leader is None:
            self.withdraw(partition)
            self._wait_for_leader(partition)
            return
        index = self._choose_index(partition, leader.node, waiting_bytes)
        if (partition.node, partition.connection_index) != (leader.node, index) and not self._move(
            partition, leader.node, index
        ):
            return
        self._queues[partition.node, partition.connection_index].ready[partition.tp] = partition
        partition.scheduled = True

    def withdraw(self, partition: ProducePartition) -> None:
        """Send nothing of it until it is scheduled again."""
        partition.scheduled = False
        queue = self._queues.get((partition.node, partition.connection_index))
        if queue is not None:
            queue.ready.pop(partition.tp, None)

    def _choose_index(self, partition: ProducePartition, node: int, waiting_bytes: int) -> int:
        """Its own in a backlog; the first one under light load, once nothing is in flight."""
        if node in self._far_connections:
            return partition.home_connection % self._far_connections[node]
        if waiting_bytes >= TRICKLE_BYTES:
            return partition.home_connection % self._connections
        return partition.connection_index if partition.in_flight else 0

    def _move(self, partition: ProducePartition, node: int, index: int) -> bool:
        """Move to another queue, once all responses of the old one have come (invariant D)."""
        self.withdraw(partition)
        if partition.in_flight:
            return False
        if partition.node != node:
            partition.node, partition.known = node, False
        partition.connection_index = index
        self._queues.setdefault(
            (node, index), BrokerQueue(node, index, is_far=node in self._far_connections)
        )
        self._on_moved()
        return True

    def _wait_for_leader(self, partition: ProducePartition) -> None:
        """Wait for metadata; report the reason if the cluster gave one."""
        topic = partition.tp.topic
        code = self._cluster.metadata.topic_errors.get(topic)
        if code is None and self._cluster.metadata.knows(topic):
            code = LEADER_NOT_AVAILABLE
        if code is not None:
            detail = NO_LEADER if code == LEADER_NOT_AVAILABLE else None
            self._on_leaderless(partition, self.error(partition, code, detail))
        elif self._cluster.last_error is not None:
            self._on_leaderless(partition, self._cluster.last_error)
        self._cluster.metadata.mark_missed(topic)

    def error(
        self, partition: ProducePartition, code: int, detail: str | None = None
    ) -> BrokerError:
        """Why the cluster does not accept the batches."""
        needed = topic_permission(Operation.WRITE, partition.tp.topic)
        config, what = self._cluster.config, self.what(partition)
        return response_error(config, what, code, needed, PRODUCING, detail=detail)

    def denial(self, partition: ProducePartition, error: DeniedError) -> BrokerError:
        """The error of a denied producer id, with the permission that would do.

        Brokers from 2.8 on give one to every client that may write any topic (KIP-679), so this
        topic may not be written either.
        """
        is_content = self._cluster.newest(PRODUCE) >= CONTENT_VERSION
        return self.error(partition, TOPIC_AUTHORIZATION_FAILED) if is_content else error

    def what(self, partition: ProducePartition) -> str:
        """For error messages: what was attempted."""
        return f"produce to {partition.tp} on '{self._cluster.config.alias}'"
