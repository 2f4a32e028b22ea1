"""Leader epochs: what was read against what a log has, and the request that asks (KIP-320)."""

from __future__ import annotations

import random

import pytest
from kafka.protocol.consumer import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

from sparkmirror.errors import RemoteProtocolError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.fetch.leader_epochs import (
    MOST_ROWS,
    EpochEnd,
    EpochHistory,
    EpochQuestion,
    decode_epoch_ends,
    encode_epoch_questions,
)

A0, A1, B7 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("bb", 7)


def test_a_row_begins_where_the_epoch_was_first_read() -> None:
    history = EpochHistory()
    for epoch, first_offset in ((0, 0), (0, 5), (3, 9), (3, 20)):
        history.note(epoch, first_offset)
    assert history.rows == ((0, 0), (3, 9))
    assert history.last == 3
    assert history.before(9) == ((0, 0),)
    assert history.before(10) == ((0, 0), (3, 9))


@pytest.mark.parametrize("epoch", [-1, 2])
def test_an_epoch_that_is_unknown_or_lower_leaves_nothing_to_compare(epoch: int) -> None:
    history = EpochHistory([(1, 0), (3, 9)])
    history.note(epoch, 20)
    assert history.last == epoch
    assert history.rows == (() if epoch < 0 else ((2, 20),))


def test_few_rows_are_kept() -> None:
    history = EpochHistory()
    for epoch in range(100):
        history.note(epoch, 10 * epoch)
    assert history.rows == tuple((e, 10 * e) for e in range(100 - MOST_ROWS, 100))


@pytest.mark.parametrize(
    ("epoch", "end_offset", "kept", "rows"),
    [
        pytest.param(3, 15, 15, ((1, 0), (3, 10)), id="the same epoch, shorter"),
        pytest.param(1, 8, 8, ((1, 0),), id="an earlier epoch, shorter than ours"),
        pytest.param(1, 14, 10, ((1, 0),), id="an earlier epoch, longer than ours"),
        pytest.param(2, 12, 10, ((1, 0),), id="an epoch that we never saw"),
        pytest.param(0, 0, 0, ((0, 0),), id="nothing in common"),
    ],
)
def test_going_back(
    epoch: int, end_offset: int, kept: int, rows: tuple[tuple[int, int], ...]
) -> None:
    history = EpochHistory([(1, 0), (3, 10)])
    assert history.is_beyond(epoch, end_offset, 20)
    assert history.go_back(epoch, end_offset, 20) == kept
    assert history.rows == rows


def test_what_is_common_is_found_whatever_was_elected() -> None:
    """Logs that were truncated and written by others; a reader asks until nothing differs."""
    rng = random.Random(20)
    for _ in range(500):
        log: list[int] = []  # the epoch of each record
        read: list[int] = []
        history = EpochHistory()
        for epoch in range(1, 8):
            log = log[: rng.randint(0, len(log))] + [epoch] * rng.randint(0, 5)
            if rng.random() < 0.5:
                read = _read_on(read, log, history)
                assert read == log


def _read_on(read: list[int], log: list[int], history: EpochHistory) -> list[int]:
    """What a fetch returns, step by step, and then the records."""
    position = len(read)
    while history.last >= 0:
        epoch, end = _epoch_end(log, history.last)
        if not history.is_beyond(epoch, end, position):
            break
        position = history.go_back(epoch, end, position)
    read = read[:position] + log[position:]
    if len(log) > position:
        history.note(log[-1], position)
    return read


def _epoch_end(log: list[int], epoch: int) -> tuple[int, int]:
    upto = [own for own in log if own <= epoch]
    return (upto[-1] if upto else 0), len(upto)


def test_questions_as_kafka_python_reads_them() -> None:
    questions = [EpochQuestion(A0, 5, 4), EpochQuestion(B7, 2, 2), EpochQuestion(A1, 0, 0)]
    request = OffsetForLeaderEpochRequest.decode(encode_epoch_questions(questions), version=3)
    assert request.replica_id == -1
    found = [
        (topic.topic, row.partition, row.current_leader_epoch, row.leader_epoch)
        for topic in request.topics
        for row in topic.partitions
    ]
    assert found == [("a", 0, 5, 4), ("a", 1, 0, 0), ("bb", 7, 2, 2)]


def test_ends_as_kafka_python_writes_them() -> None:
    kind = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    rows = [
        kind.EpochEndOffset(error_code=0, partition=0, leader_epoch=4, end_offset=1 << 40),
        kind.EpochEndOffset(error_code=6, partition=1, leader_epoch=-1, end_offset=-1),
    ]
    response = OffsetForLeaderEpochResponse(
        throttle_time_ms=7, topics=[kind(topic="a", partitions=rows)]
    )
    data = memoryview(bytes(response.encode(version=3)))
    assert decode_epoch_ends(data) == {
        A0: (0, EpochEnd(4, 1 << 40)),
        A1: (6, EpochEnd(-1, -1)),
    }
    for size in range(len(data)):
        with pytest.raises(RemoteProtocolError):
            decode_epoch_ends(data[:size])
