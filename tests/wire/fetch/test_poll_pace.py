"""Polls of a session on a long line: many while records keep coming, one at a time otherwise."""

from __future__ import annotations

import pytest

from sparkmirror.wire.fetch.poll_pace import MOST_REPEATED, SHORTEST_SECONDS, PollPace

TRIP = 0.16


def feed(pace: PollPace, count: int, *, took: float = TRIP, trip: float = TRIP, size: int) -> None:
    for at in range(count):
        pace.note_response(took, trip, size, is_news=True, now=at / 1000)


def test_a_steady_trickle_is_polled_every_few_milliseconds() -> None:
    pace = PollPace()
    feed(pace, 100, size=1000)
    assert pace.interval(TRIP, 0.1) == SHORTEST_SECONDS
    assert pace.polls(TRIP, 0.1) == round(TRIP / SHORTEST_SECONDS) + 1


def test_one_poll_is_enough_for_records_that_find_it_waiting() -> None:
    pace = PollPace()
    feed(pace, 10, took=0.4, size=1000)
    assert (pace.polls(TRIP, 0.01), pace.interval(TRIP, 0.01)) == (1, 0.0)


def test_one_poll_is_enough_after_a_silence() -> None:
    pace = PollPace()
    feed(pace, 10, size=1000)
    for at in range(200):
        pace.note_response(TRIP, TRIP, 50, is_news=False, now=0.01 + at / 100)
    assert pace.polls(TRIP, 2.01) == 1


def test_a_short_line_has_one_poll() -> None:
    pace = PollPace()
    feed(pace, 100, took=0.001, trip=0.001, size=1000)
    assert pace.polls(0.001, 0.1) == 1


@pytest.mark.parametrize("size", [50_000, 200_000, 1 << 20])
def test_what_is_repeated_is_bounded(size: int) -> None:
    pace = PollPace()
    feed(pace, 200, size=size)
    interval = pace.interval(TRIP, 0.2)
    assert interval == 0.0 or size / interval <= MOST_REPEATED * 1.01


def test_a_line_that_is_full_is_polled_less_often() -> None:
    pace = PollPace()
    feed(pace, 100, size=1000)
    for at in range(100):
        pace.note_response(1.0, TRIP, 1000, is_news=True, now=0.1 + at / 1000)
    assert pace.polls(TRIP, 0.2) == 1
