"""How often clients may come."""

from __future__ import annotations

import pytest

from sparkmirror.rest.transport.rate_limit import RateLimit, client_of


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def _taken(limit: RateLimit, client: str, times: int) -> list[int]:
    waits = []
    for _ in range(times):
        waits.append(limit.seconds_to_wait(client))
        limit.take(client)
    return waits


def test_burst_then_wait_then_one_more() -> None:
    clock = Clock()
    limit = RateLimit(0.5, 3, clock)
    assert _taken(limit, "a", 5) == [0, 0, 0, 2, 2]
    clock.now += 2
    assert _taken(limit, "a", 2) == [0, 2]


def test_clients_do_not_share() -> None:
    limit = RateLimit(1, 1, Clock())
    assert _taken(limit, "a", 2) == [0, 1]
    assert limit.seconds_to_wait("b") == 0


def test_who_waits_long_gets_no_more_than_the_burst() -> None:
    clock = Clock()
    limit = RateLimit(10, 2, clock)
    _taken(limit, "a", 2)
    clock.now += 3600
    assert _taken(limit, "a", 3) == [0, 0, 1]


def test_many_clients_do_not_fill_the_memory() -> None:
    limit = RateLimit(1, 1, Clock())
    for number in range(10_500):
        limit.take(str(number))
    assert len(limit._buckets) == 10_000
    assert limit.seconds_to_wait("0") == 0
    assert limit.seconds_to_wait("10499") == 1


@pytest.mark.parametrize(
    ("host", "client"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
        ("", ""),
    ],
)
def test_whom_an_address_stands_for(host: str, client: str) -> None:
    assert client_of(host) == client
