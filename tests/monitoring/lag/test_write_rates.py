"""How fast producers write, from how the ends of logs move."""

from __future__ import annotations

from sparkmirror.monitoring.lag.write_rates import WriteRates


class Clock:
    """Set by the test."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_rate_is_known_after_ten_seconds_and_follows_the_last_minutes() -> None:
    clock = Clock()
    rates = WriteRates(clock)
    found = []
    end = 0
    for _ in range(40):
        found.append(rates.per_second("t-0", end))
        clock.now += 5
        end += 50
    assert found[:3] == [None, None, 10.0]
    assert set(found[2:]) == {10.0}
    for _ in range(40):
        clock.now += 5
        end += 500
        rates.per_second("t-0", end)
    assert rates.per_second("t-0", end) == 100.0


def test_an_unknown_end_or_a_recreated_topic_has_no_rate() -> None:
    clock = Clock()
    rates = WriteRates(clock)
    rates.per_second("t-0", 1000)
    clock.now += 20
    assert rates.per_second("t-0", None) is None
    assert rates.per_second("t-0", 1200) == 10.0
    clock.now += 20
    assert rates.per_second("t-0", 5) is None
    clock.now += 20
    assert rates.per_second("t-0", 45) == 2.0


def test_partitions_that_are_gone_are_forgotten() -> None:
    clock = Clock()
    rates = WriteRates(clock)
    rates.per_second("t-0", 1000)
    rates.forget(lambda key: key == "t-0")
    clock.now += 20
    assert rates.per_second("t-0", 1200) is None
