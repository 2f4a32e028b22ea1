"""Who gets records when: the turns of the latency case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.latency import Runner, rounds_of
from bench.trickle import Turns
from sparkmirror.errors import MirrorError

TURNS = Turns(
    topics=("a", "b"),
    phase_seconds=(12.0, 5.0),
    turn_seconds=5.0,
    rest_seconds=1.0,
    records_per_second=100,
    value_bytes=20,
)


def test_the_turns_of_a_phase_add_up_to_its_length() -> None:
    assert TURNS.lengths(0) == [5.0, 5.0, 2.0]
    assert TURNS.lengths(1) == [5.0]


def test_a_phase_shorter_than_a_turn_is_one_turn() -> None:
    assert replace(TURNS, phase_seconds=(3.0,)).lengths(0) == [3.0]


def test_every_topic_gets_the_records_of_all_its_turns() -> None:
    assert TURNS.records_per_topic == 1_700


def test_the_whole_takes_the_turns_and_rests_of_all_topics() -> None:
    assert TURNS.total_seconds == 2 * (17.0 + 4 * 1.0)


def test_the_rounds_are_those_after_the_warm_up() -> None:
    latencies = {("x.a", 0): [9.0] * 1_200, ("x.a", 1): [1.0] * 500, ("b", 1): [7.0]}
    (found,) = rounds_of(Runner("sparkmirror", "a", "", "x.a"), latencies, TURNS)
    assert found == {"p50_ms": 1.0, "p99_ms": 1.0, "max_ms": 1.0}


def test_a_system_that_lost_records_has_no_figures() -> None:
    latencies = {("x.a", 0): [9.0] * 1_200, ("x.a", 1): [1.0] * 499}
    with pytest.raises(MirrorError, match=r"x\.a: 1699 of 1700 records arrived"):
        rounds_of(Runner("sparkmirror", "a", "", "x.a"), latencies, TURNS)
