"""Finds where partitions' logs start and end, many partitions with a few requests per broker.

Runs on: executor and worker, on the event loop's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from sparkmirror.errors import BrokerError, KafkaError, RemoteProtocolError
from sparkmirror.mirror.permissions import Operation, topic_permission
from sparkmirror.types import TopicPartition
from sparkmirror.wire.access import response_error
from sparkmirror.wire.client.broker_questions import BrokerQuestions
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.protocol import messages
from sparkmirror.wire.protocol.api_versions import LIST_OFFSETS


class Range(NamedTuple):
    """The first offset of a log and the one after its last.

    `timed` is the first offset of the wanted age or younger; None: not requested, or there is none.
    """

    start: int
    end: int
    timed: int | None = None


OnRange = Callable[[TopicPartition, Range | KafkaError], None]


class OffsetFetcher(BrokerQuestions[TopicPartition]):
    """Asks for both ends of partitions; the result, or the error, comes to `on_range`."""

    def __init__(
        self,
        cluster: NetworkClient,
        read_committed: bool,
        on_range: OnRange,
        age_ms: int | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """With `age_ms` also for the first record of that age or younger."""
        super().__init__(cluster)
        self._age_ms = age_ms
        self._now = now
        self._read_committed = read_committed
        self._on_range = on_range

    def _send(self, node: int, connection: Connection, questions: list[TopicPartition]) -> None:
        found: dict[TopicPartition, dict[int, int]] = {tp: {} for tp in questions}
        timestamps = [messages.EARLIEST, messages.LATEST]
        if self._age_ms is not None:
            timestamps.append(max(0, int(self._now() * 1000) - self._age_ms))

        def on_response(response: memoryview, timestamp: int) -> None:
            offsets = messages.decode_list_offsets(response)
            if offsets.keys() != found.keys():
                raise RemoteProtocolError(f"response about {list(offsets)}, asked for {questions}")
            for tp, (code, offset) in offsets.items():
                if code:
                    self._on_range(tp, self._error(tp, code))
                    continue
                found[tp][timestamp] = offset
                if len(found[tp]) == len(timestamps):
                    start, end, *timed = (found[tp][each] for each in timestamps)
                    self._on_range(tp, Range(start, end, *(at for at in timed if at >= 0)))

        def failed(error: KafkaError) -> None:
            for tp in questions:
                self._failed(tp, error)

        for timestamp in timestamps:
            wanted = dict.fromkeys(questions, timestamp)
            connection.send(
                connection.choose(LIST_OFFSETS),
                [messages.encode_list_offsets(wanted, self._read_committed)],
                lambda response, _, at=timestamp: on_response(response, at),  # type: ignore[misc]
                failed,
                self._cluster.config.request_timeout_ms / 1000,
            )

    def _failed(self, question: TopicPartition, error: KafkaError) -> None:
        self._on_range(question, error)

    def _error(self, tp: TopicPartition, code: int) -> BrokerError:
        config = self._cluster.config
        what = f"ask for the range of {tp} on '{config.alias}'"
        return response_error(config, what, code, topic_permission(Operation.DESCRIBE, tp.topic))
