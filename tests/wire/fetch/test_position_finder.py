"""Questions about positions whose partition asks something else by the time of the response."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from sparkmirror.errors import KafkaError
from sparkmirror.wire.client.leaders import Leader
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.fetch.fetch_session import FetchListener, FetchPartition
from sparkmirror.wire.fetch.leader_epochs import EpochEnd, EpochHistory, EpochQuestion
from sparkmirror.wire.fetch.offset_fetcher import Range
from sparkmirror.wire.fetch.position_finder import PositionFinder
from tests.wire.rigs import LIMITS, TP

LEADER = Leader(node=1, epoch=7)


class Decisions:
    """The consumer: remembers what it was asked to decide, and begins at 0."""

    def __init__(self) -> None:
        self.out_of_range: list[tuple[int | None, Range]] = []

    def on_out_of_range(self, _: Any, position: int | None, found: Range) -> int:
        self.out_of_range.append((position, found))
        return found.start


def make_finder(consumer: Decisions, found: list[FetchPartition]) -> PositionFinder:
    def fail(partition: FetchPartition, error: KafkaError) -> None:
        raise AssertionError(partition, error)

    # Questions leave with the next turn of the loop, and this one never turns.
    loop = SimpleNamespace(call_later=lambda *_: None)
    cluster = cast("NetworkClient", SimpleNamespace(loop=loop))
    return PositionFinder(cluster, LIMITS, cast("FetchListener", consumer), found.append, fail)


def read_partition() -> FetchPartition:
    return FetchPartition(TP, 5, epochs=EpochHistory([(3, 0)]))


def test_a_response_about_epochs_is_not_about_a_recreated_topic() -> None:
    consumer, found = Decisions(), list[FetchPartition]()
    finder, partition = make_finder(consumer, found), read_partition()
    assert finder.ask_if_needed(partition, LEADER)
    finder.forget(partition)
    partition.next_offset = None
    assert finder.ask_if_needed(partition, LEADER)

    finder._end_known(EpochQuestion(TP, LEADER.epoch, 3), EpochEnd(3, 5))
    assert partition.asking
    assert not found

    log = Range(0, 2)
    finder._range_known(TP, log)
    assert consumer.out_of_range == [(None, log)]
    assert found == [partition]
    assert partition.next_offset == 0


def test_a_late_range_does_not_reset_a_position_whose_epoch_is_being_asked_for() -> None:
    consumer, found = Decisions(), list[FetchPartition]()
    finder, partition = make_finder(consumer, found), FetchPartition(TP, None)
    assert finder.ask_if_needed(partition, LEADER)
    finder.forget(partition)
    partition = read_partition()
    assert finder.ask_if_needed(partition, LEADER)

    finder._range_known(TP, Range(0, 2))
    assert consumer.out_of_range == []
    assert partition.next_offset == 5
    assert partition.asking
