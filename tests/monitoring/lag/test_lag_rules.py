"""Rules of lag, as tables."""

from __future__ import annotations

import math

import pytest

from sparkmirror.monitoring.lag.lag_rules import (
    LossTime,
    Rates,
    Reading,
    Standing,
    judge,
    rates,
    seconds_behind,
    time_until_loss,
)
from sparkmirror.monitoring.lag.partition_lag import NoLoss, PartitionState, Retention

DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("standing", "state"),
    [
        (Standing(records_behind=0), PartitionState.IDLE),
        (Standing(records_behind=0, copied=5), PartitionState.LIVE),
        (Standing(records_behind=5, seconds_behind=9.9), PartitionState.LIVE),
        (Standing(records_behind=5, seconds_behind=10.1), PartitionState.CATCHING_UP),
        (Standing(records_behind=5, seconds_behind=None), PartitionState.CATCHING_UP),
        (Standing(records_behind=None, seconds_behind=None), PartitionState.CATCHING_UP),
        # Of a chain of mirrors: each record is an hour old when it comes.
        (Standing(records_behind=5, seconds_behind=3600, copied=15), PartitionState.LIVE),
        (Standing(records_behind=6, seconds_behind=3600, copied=15), PartitionState.CATCHING_UP),
        (Standing(records_behind=0, problem="no leader"), PartitionState.STUCK),
        (Standing(records_behind=0, is_running=False), PartitionState.STUCK),
        (Standing(is_failed=True, problem="FAILED", is_running=False), PartitionState.FAILED),
        (Standing(is_paused=True, is_failed=True, problem="x"), PartitionState.PAUSED),
    ],
)
def test_the_state_of_a_partition(standing: Standing, state: PartitionState) -> None:
    assert judge(standing) is state


def test_failed_is_the_worst_and_idle_the_best() -> None:
    assert sorted(PartitionState, key=lambda each: each.severity) == list(PartitionState)
    assert PartitionState.FAILED.severity == 0


@pytest.mark.parametrize(
    ("oldest", "behind", "expected"),
    [
        (NOW_MS - 2500, 3, 2.5),
        (NOW_MS - 2500, None, 2.5),
        (NOW_MS - 2500, 0, 0.0),
        (None, 0, 0.0),
        (None, 3, None),
        (None, None, None),
        (NOW_MS + 2000, 3, 0.0),  # the producer's clock is ahead
    ],
)
def test_seconds_behind(oldest: int | None, behind: int | None, expected: float | None) -> None:
    assert seconds_behind(oldest, behind, NOW_MS) == expected


@pytest.mark.parametrize(
    ("retention", "behind", "size", "speed", "expected"),
    [
        (None, 0.0, 0, None, LossTime(None, NoLoss.UNKNOWN)),
        (Retention("compact", DAY_MS), 5.0, 1, 1.0, LossTime(None, NoLoss.COMPACTED)),
        (Retention("delete"), 5.0, 1, 1.0, LossTime(None, NoLoss.UNLIMITED)),
        (Retention("delete", DAY_MS), 400.0, 1, None, LossTime(86_000.0)),
        (Retention("compact,delete", DAY_MS), 400.0, 1, None, LossTime(86_000.0)),
        (Retention("delete", DAY_MS), 0.0, 0, None, LossTime(86_400.0)),
        (Retention("delete", DAY_MS), 1e9, 1, None, LossTime(0.0)),  # it has begun
        (Retention("delete", DAY_MS), None, None, None, LossTime(None, NoLoss.UNKNOWN)),
        # By bytes: 600 are left, and 10 come every second.
        (Retention("delete", None, 1000), None, 400, 10.0, LossTime(60.0)),
        (Retention("delete", DAY_MS, 1000), 0.0, 400, 10.0, LossTime(60.0)),
        (Retention("delete", DAY_MS, 1000), 86_390.0, 400, 10.0, LossTime(10.0)),
        (Retention("delete", None, 1000), 1.0, 5000, 10.0, LossTime(0.0)),
        (Retention("delete", None, 1000), 1.0, None, 10.0, LossTime(None, NoLoss.UNKNOWN)),
        (Retention("delete", None, 1000), 1.0, 400, None, LossTime(None, NoLoss.UNKNOWN)),
        (Retention("delete", None, 1000), 1.0, 400, 0.0, LossTime(None, NoLoss.UNLIMITED)),
    ],
)
def test_time_until_loss(
    retention: Retention | None,
    behind: float | None,
    size: int | None,
    speed: float | None,
    expected: LossTime,
) -> None:
    assert time_until_loss(retention, behind, size, speed) == expected


def readings(*behind: int | None, step: float = 1.0) -> list[Reading]:
    """A second apart; 100 records and 1,000 bytes are copied in each."""
    return [Reading(at * step, at * 100, at * 1000, each) for at, each in enumerate(behind)]


def test_rates_are_known_after_ten_seconds() -> None:
    assert rates([]) == Rates()
    assert rates(readings(*[0] * 10)) == Rates()
    assert rates(readings(*[0] * 11)) == Rates(100.0, 1000.0, 0.0, 0.0)


def test_a_backlog_that_falls_for_ten_seconds_has_an_estimate() -> None:
    falling = readings(*range(5000, 5000 - 12 * 50, -50))
    found = rates(falling)
    assert found.backlog == -50
    assert found.catch_up_seconds == pytest.approx((5000 - 11 * 50) / 50)


@pytest.mark.parametrize(
    ("behind", "speed"),
    [
        ([100 + at * 20 for at in range(12)], 20.0),
        ([1000] * 12, 0.0),
        # It fell once, and grows again.
        ([1000, 900, 800, 700, 600, 500, 400, 450, 500, 550, 600, 650], -25.0),
    ],
    ids=["grows", "stays", "turns"],
)
def test_without_a_steady_fall_there_is_none(behind: list[int], speed: float) -> None:
    found = rates(readings(*behind))
    assert found.backlog == speed
    assert found.catch_up_seconds is None


def test_a_backlog_that_is_not_known_now_has_no_trend() -> None:
    found = rates(readings(*range(5000, 3000, -100), None))
    assert (found.records, found.backlog, found.catch_up_seconds) == (100.0, None, None)


def test_times_when_it_was_not_known_are_left_out() -> None:
    known: list[int | None] = list(range(5000, 3000, -100))
    known[4] = known[17] = None
    assert rates(readings(*known)).backlog == -100


def test_totals_that_shrink_give_no_rates() -> None:
    before = [Reading(at, 500, 500, 0) for at in range(6)]
    after = [Reading(at, 100, 100, 0) for at in range(6, 14)]
    assert rates(before + after) == Rates()


def test_a_flow_that_is_looked_at_every_15_seconds_has_a_trend() -> None:
    found = rates([Reading(0, 0, 0, 100), Reading(15, 0, 0, 400)])
    assert (found.records, found.backlog, found.catch_up_seconds) == (0.0, 20.0, None)
    assert found.backlog is not None
    assert math.isclose(found.backlog, 20)
