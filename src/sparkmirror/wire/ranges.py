"""Finds where partitions' logs start and end, many partitions with two requests per broker.

Runs on: executor and worker, on the event loop's thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sparkmirror.errors import BrokerError, KafkaError, RemoteProtocolError
from sparkmirror.types import TopicPartition
from sparkmirror.wire import messages
from sparkmirror.wire.access import Operation, answer_error, topic_right
from sparkmirror.wire.cluster import Cluster
from sparkmirror.wire.connection import Connection


class Range(NamedTuple):
    """The first offset of a log and the one after its last."""

    start: int
    end: int


OnRange = Callable[[TopicPartition, Range | KafkaError], None]


class RangeFinder:
    """Collects questions for one turn of the loop and asks each broker once."""

    def __init__(self, cluster: Cluster, read_committed: bool, on_range: OnRange) -> None:
        self._cluster = cluster
        self._read_committed = read_committed
        self._on_range = on_range
        self._asked: dict[int, list[TopicPartition]] = {}
        self._scheduled = False

    def ask(self, tp: TopicPartition, leader: int) -> None:
        """The answer, or the error, comes to `on_range`."""
        self._asked.setdefault(leader, []).append(tp)
        if not self._scheduled:
            self._scheduled = True
            self._cluster.loop.call_later(0.0, self._turn)

    def pump(self) -> None:
        """A connection became ready: ask what is still to be asked."""
        for node in list(self._asked):
            connection = self._cluster.connection(node)
            if connection is not None:
                self._send(connection, self._asked.pop(node))

    def _turn(self) -> None:
        self._scheduled = False
        self.pump()
        # A broker that cannot be reached may have lost its leadership: let the owner look again.
        for tps in self._asked.values():
            if tps:
                self._cluster.loop.call_later(1.0, self._give_up)
                break

    def _give_up(self) -> None:
        for node in list(self._asked):
            if self._cluster.connection(node) is None:
                error = self._cluster.last_error or KafkaError(f"no connection to broker {node}")
                for tp in self._asked.pop(node):
                    self._on_range(tp, error)
        self.pump()

    def _send(self, connection: Connection, tps: list[TopicPartition]) -> None:
        found: dict[TopicPartition, dict[int, int]] = {tp: {} for tp in tps}

        def answered(answer: memoryview, timestamp: int) -> None:
            offsets = messages.decode_list_offsets(answer)
            if offsets.keys() != found.keys():
                raise RemoteProtocolError(f"an answer about {list(offsets)}, asked for {tps}")
            for tp, (code, offset) in offsets.items():
                if code:
                    self._on_range(tp, self._error(tp, code))
                    continue
                found[tp][timestamp] = offset
                if len(found[tp]) == 2:
                    start, end = found[tp][messages.EARLIEST], found[tp][messages.LATEST]
                    self._on_range(tp, Range(start, end))

        def failed(error: KafkaError) -> None:
            for tp in tps:
                self._on_range(tp, error)

        for timestamp in (messages.EARLIEST, messages.LATEST):
            wanted = dict.fromkeys(tps, timestamp)
            connection.send(
                messages.LIST_OFFSETS,
                [messages.encode_list_offsets(wanted, self._read_committed)],
                lambda answer, _, at=timestamp: answered(answer, at),  # type: ignore[misc]
                failed,
                self._cluster.config.request_timeout_ms / 1000,
            )

    def _error(self, tp: TopicPartition, code: int) -> BrokerError:
        config = self._cluster.config
        what = f"ask for the range of {tp} on '{config.alias}'"
        return answer_error(config, what, code, topic_right(Operation.DESCRIBE, tp.topic))
