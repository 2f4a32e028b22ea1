"""Waiting for records ends when they are there, and says what is not."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from sparkmirror.demo.arrival import Arrivals
from sparkmirror.errors import MirrorError
from sparkmirror.types import TopicPartition

ORDERS = TopicPartition("orders", 0)
EMPTY = TopicPartition("empty", 0)
COPY = TopicPartition("source.orders", 0)
EMPTY_COPY = TopicPartition("source.empty", 0)


class Target:
    """Returns one prepared state after the other; the last one stays."""

    def __init__(self, *states: dict[TopicPartition, int]) -> None:
        self._states = list(states)

    def list_end_offsets(self, _topics: Iterable[str]) -> dict[TopicPartition, int]:
        return self._states.pop(0) if len(self._states) > 1 else self._states[0]


def expecting(target: Target) -> Arrivals:
    arrivals = Arrivals(target.list_end_offsets, lambda topic: f"source.{topic}")
    arrivals.expect({ORDERS: 10, EMPTY: 0})
    return arrivals


def test_wait_ends_when_everything_is_there() -> None:
    target = Target({}, {COPY: 4}, {COPY: 10}, {COPY: 10, EMPTY_COPY: 0})
    heard: list[tuple[int, int]] = []
    expecting(target).wait(5, lambda done, total: heard.append((done, total)))
    assert heard == [(0, 10), (4, 10), (10, 10), (10, 10)]


def test_wait_in_vain_names_what_is_missing() -> None:
    with pytest.raises(MirrorError, match=r"4 of 10 records .* source.orders-0 lacks 4"):
        expecting(Target({COPY: 6, EMPTY_COPY: 0})).wait(0)


def test_wait_in_vain_for_an_empty_topic() -> None:
    with pytest.raises(MirrorError, match="empty topics"):
        expecting(Target({COPY: 10})).wait(0)


def test_surplus_counts_what_was_copied_twice() -> None:
    arrivals = expecting(Target({COPY: 13, EMPTY_COPY: 0}))
    assert arrivals.list_surplus() == {COPY: 3}


def test_later_records_are_added_to_the_expected_ones() -> None:
    arrivals = expecting(Target({COPY: 12, EMPTY_COPY: 0}))
    arrivals.expect({ORDERS: 2})
    arrivals.wait(0)
    assert arrivals.list_surplus() == {}
