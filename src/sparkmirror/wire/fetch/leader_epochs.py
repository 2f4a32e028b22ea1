"""Leader epochs: which leader wrote what was read, and whether the log still holds it (KIP-320).

Runs on: executor and worker, on the event loop's thread.

A leader stamps its epoch into every batch. Two logs that both have records of an epoch are the same
up to where the shorter one ends that epoch. After an unclean election they may differ from there:

    what was read   | 1 1 1 1 3 3 3 |            rows (1, 0), (3, 4); position 7
    the log now     | 1 1 1 1 1 1 4 4 4          "the last epoch up to 3 is 1, and it ends at 6"
                              ^ same up to here: the reader's own epoch 1 ended at 4
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from sparkmirror.errors import KafkaError, RemoteProtocolError
from sparkmirror.mirror.permissions import Operation, topic_permission
from sparkmirror.types import TopicPartition
from sparkmirror.wire.access import response_error
from sparkmirror.wire.client.broker_questions import BrokerQuestions
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.protocol.api_versions import OFFSET_FOR_LEADER_EPOCH
from sparkmirror.wire.protocol.messages import encode_string, parsing, read_topic_rows

NO_EPOCH = -1
# Rows that are kept, and stored with positions. A leader per row: hours or days of history.
MOST_ROWS = 10

EpochRows = tuple[tuple[int, int], ...]
"""(leader epoch, first offset), both rising."""


class EpochHistory:
    """The leader epochs of what was read of one partition.

    `last` is the epoch of the last batch read, or NO_EPOCH: then nothing can be compared. A row's
    first offset may be lower than the true one, never higher: then too much is read again, and
    nothing is missed.
    """

    __slots__ = ("_rows", "last")

    def __init__(self, rows: Iterable[tuple[int, int]] = ()) -> None:
        self._rows = list(rows)
        self.last = self._rows[-1][0] if self._rows else NO_EPOCH

    def note(self, epoch: int, first_offset: int) -> None:
        """Batches from `first_offset` on were read, the last of this epoch; NO_EPOCH: unknown.

        An epoch that is unknown, or lower than the last one, leaves nothing to compare with.
        """
        if epoch < self.last:
            self._rows.clear()
        if epoch > self.last or (epoch >= 0 and not self._rows):
            self._rows.append((epoch, first_offset))
            del self._rows[:-MOST_ROWS]
        self.last = epoch

    def forget(self) -> None:
        """Forget everything."""
        self._rows.clear()
        self.last = NO_EPOCH

    @property
    def rows(self) -> EpochRows:
        """All that is known."""
        return tuple(self._rows)

    def before(self, position: int) -> EpochRows:
        """The rows of what lies before an offset."""
        return tuple(row for row in self._rows if row[1] < position)

    def is_beyond(self, epoch: int, end_offset: int, position: int) -> bool:
        """Whether what was read up to `position` is more than a log has of it."""
        return epoch < self.last or end_offset < position

    def go_back(self, epoch: int, end_offset: int, position: int) -> int:
        """Up to where what was read is in a log that ends `epoch`, its last up to ours, there."""
        later = (first for own, first in self._rows if own > epoch)
        kept = min(position, end_offset, next(later, position))
        # Without a row for what lies before, only the leader knows.
        left = [row for row in self._rows if row[0] <= epoch and row[1] < kept]
        self._rows = left or [(epoch, kept)]
        self.last = self._rows[-1][0]
        return kept


class EpochQuestion(NamedTuple):
    """Where the log ends `epoch`, asked of the leader of `leader_epoch`."""

    tp: TopicPartition
    leader_epoch: int
    epoch: int


class EpochEnd(NamedTuple):
    """The last epoch of a log up to the one asked for, and the offset after it; -1: unknown."""

    epoch: int
    end_offset: int


OnEnd = Callable[[EpochQuestion, EpochEnd | KafkaError], None]

UNKNOWN_END = EpochEnd(NO_EPOCH, -1)


class EpochEndFinder(BrokerQuestions[EpochQuestion]):
    """Asks where epochs end; the result, or the error, comes to `on_end`.

    A broker that does not speak the request leaves every end unknown.
    """

    def __init__(self, cluster: NetworkClient, on_end: OnEnd) -> None:
        super().__init__(cluster)
        self._on_end = on_end

    def _send(self, node: int, connection: Connection, questions: list[EpochQuestion]) -> None:
        del node
        if not connection.versions.speaks(OFFSET_FOR_LEADER_EPOCH):
            for question in questions:
                self._on_end(question, UNKNOWN_END)
            return

        def on_response(response: memoryview) -> None:
            found = decode_epoch_ends(response)
            if found.keys() != {question.tp for question in questions}:
                raise RemoteProtocolError(f"epochs of {list(found)}, asked for {questions}")
            for question in questions:
                self._take(question, *found[question.tp])

        def failed(error: KafkaError) -> None:
            for question in questions:
                self._failed(question, error)

        connection.send(
            connection.choose(OFFSET_FOR_LEADER_EPOCH),
            [encode_epoch_questions(questions)],
            lambda response, _: on_response(response),
            failed,
            self._cluster.config.request_timeout_ms / 1000,
        )

    def _take(self, question: EpochQuestion, code: int, end: EpochEnd) -> None:
        if not code:
            self._on_end(question, end)
            return
        config, tp = self._cluster.config, question.tp
        what = f"ask where leader epoch {question.epoch} of {tp} ends on '{config.alias}'"
        permission = topic_permission(Operation.DESCRIBE, tp.topic)
        self._failed(question, response_error(config, what, code, permission))

    def _failed(self, question: EpochQuestion, error: KafkaError) -> None:
        self._on_end(question, error)


def encode_epoch_questions(questions: Sequence[EpochQuestion]) -> bytes:
    """The body of a request of a consumer."""
    topics: dict[str, list[bytes]] = {}
    for (topic, partition), leader_epoch, epoch in questions:
        row = struct.pack(">iii", partition, leader_epoch, epoch)
        topics.setdefault(topic, []).append(row)
    out = [struct.pack(">ii", -1, len(topics))]
    for topic, rows in topics.items():
        out += [encode_string(topic), struct.pack(">i", len(rows)), *rows]
    return b"".join(out)


def decode_epoch_ends(response: memoryview) -> dict[TopicPartition, tuple[int, EpochEnd]]:
    """{partition: (error code, end)}."""
    found: dict[TopicPartition, tuple[int, EpochEnd]] = {}
    with parsing("response about leader epochs"):
        for topic, row in read_topic_rows(response, struct.Struct(">hiiq")):
            code, partition, epoch, end_offset = row
            found[TopicPartition(topic, partition)] = code, EpochEnd(epoch, end_offset)
    return found
