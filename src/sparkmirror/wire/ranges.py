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
from sparkmirror.wire.broker_questions import BrokerQuestions
from sparkmirror.wire.cluster import Cluster
from sparkmirror.wire.connection import Connection


class Range(NamedTuple):
    """The first offset of a log and the one after its last."""

    start: int
    end: int


OnRange = Callable[[TopicPartition, Range | KafkaError], None]


class RangeFinder(BrokerQuestions[TopicPartition]):
    """Asks for both ends of partitions; the result, or the error, comes to `on_range`."""

    def __init__(self, cluster: Cluster, read_committed: bool, on_range: OnRange) -> None:
        super().__init__(cluster)
        self._read_committed = read_committed
        self._on_range = on_range

    def _send(self, node: int, connection: Connection, questions: list[TopicPartition]) -> None:
        found: dict[TopicPartition, dict[int, int]] = {tp: {} for tp in questions}

        def answered(answer: memoryview, timestamp: int) -> None:
            offsets = messages.decode_list_offsets(answer)
            if offsets.keys() != found.keys():
                raise RemoteProtocolError(f"an answer about {list(offsets)}, asked for {questions}")
            for tp, (code, offset) in offsets.items():
                if code:
                    self._on_range(tp, self._error(tp, code))
                    continue
                found[tp][timestamp] = offset
                if len(found[tp]) == 2:
                    start, end = found[tp][messages.EARLIEST], found[tp][messages.LATEST]
                    self._on_range(tp, Range(start, end))

        def failed(error: KafkaError) -> None:
            for tp in questions:
                self._failed(tp, error)

        for timestamp in (messages.EARLIEST, messages.LATEST):
            wanted = dict.fromkeys(questions, timestamp)
            connection.send(
                messages.LIST_OFFSETS,
                [messages.encode_list_offsets(wanted, self._read_committed)],
                lambda answer, _, at=timestamp: answered(answer, at),  # type: ignore[misc]
                failed,
                self._cluster.config.request_timeout_ms / 1000,
            )

    def _failed(self, question: TopicPartition, error: KafkaError) -> None:
        self._on_range(question, error)

    def _error(self, tp: TopicPartition, code: int) -> BrokerError:
        config = self._cluster.config
        what = f"ask for the range of {tp} on '{config.alias}'"
        return answer_error(config, what, code, topic_right(Operation.DESCRIBE, tp.topic))
