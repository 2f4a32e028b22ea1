"""Credentials that expire: one fetch for all who ask, again in time, the old one as a reserve."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest

from sparkmirror.errors import AuthenticationError, TransportError
from sparkmirror.wire.sasl.renewing import Renewing, Schedule, then

WAIT_SECONDS = 10.0
EXACT = Schedule(factor=0.8, jitter=0.0, min_seconds=60, buffer_seconds=300)


@dataclass(frozen=True)
class Item:
    """What is fetched."""

    number: int
    starts_at: float
    expires_at: float


class Source:
    """Numbers its items; fails on demand."""

    def __init__(self, life: float = 1000.0) -> None:
        self.now = 10_000.0
        self.life = life
        self.fetched = 0
        self.failing = False
        self.may_finish = threading.Event()
        self.may_finish.set()

    def fetch(self) -> Item:
        self.may_finish.wait(WAIT_SECONDS)
        if self.failing:
            raise TransportError("connection refused")
        self.fetched += 1
        return Item(self.fetched, self.now, self.now + self.life)

    def renewing(self) -> Renewing[Item]:
        return Renewing("test", self.fetch, lambda: self.now, EXACT)


@pytest.mark.parametrize(
    ("starts", "expires", "expected"),
    [
        (0.0, 10_000.0, 8_000.0),
        (0.0, 1_000.0, 700.0),  # the buffer
        (0.0, 370.0, 70.0),
        (0.0, 361.0, 61.0),
        (0.0, 100.0, 80.0),  # too short for the buffer
    ],
)
def test_when_to_renew(starts: float, expires: float, expected: float) -> None:
    assert EXACT.renew_at(starts, expires) == expected


def test_jitter_is_a_part_of_the_life() -> None:
    times = {Schedule(0.8, 0.1, 0, 0).renew_at(0, 1000) for _ in range(50)}
    assert len(times) > 10
    assert all(800 <= each <= 900 for each in times)


def test_it_is_fetched_once_and_again_in_time() -> None:
    source = Source()
    renewing = source.renewing()
    assert renewing.get().result(WAIT_SECONDS).number == 1
    source.now += 699
    assert renewing.get().done()
    source.now += 2
    assert renewing.get().result(WAIT_SECONDS).number == 2


def test_all_who_wait_get_the_same() -> None:
    source = Source()
    source.may_finish.clear()
    renewing = source.renewing()
    waiting = [renewing.get() for _ in range(5)]
    assert not any(future.done() for future in waiting)
    source.may_finish.set()
    assert {future.result(WAIT_SECONDS).number for future in waiting} == {1}


def test_the_last_one_is_used_while_it_lives(caplog: pytest.LogCaptureFixture) -> None:
    source = Source()
    renewing = source.renewing()
    renewing.get().result(WAIT_SECONDS)
    source.failing = True
    source.now += 900
    assert renewing.get().result(WAIT_SECONDS).number == 1
    assert renewing.get().result(WAIT_SECONDS).number == 1
    warnings = [text for text in caplog.messages if "connection refused" in text]
    assert warnings == ["connection refused; the last credential is used for another 100 s"]
    source.now += 200
    with pytest.raises(TransportError, match="connection refused"):
        renewing.get().result(WAIT_SECONDS)
    source.failing = False
    assert renewing.get().result(WAIT_SECONDS).number == 2


def test_what_is_made_of_it_may_fail() -> None:
    def refuse(_: Item) -> str:
        raise AuthenticationError("no")

    renewing = Source().renewing()
    assert then(renewing.get(), lambda item: item.number).result(WAIT_SECONDS) == 1
    with pytest.raises(AuthenticationError, match="no"):
        then(renewing.get(), refuse).result(WAIT_SECONDS)


def test_an_item_that_is_old_already_is_not_asked_for_without_end() -> None:
    source = Source(life=-5.0)
    renewing = source.renewing()
    for _ in range(20):
        renewing.get().result(WAIT_SECONDS)
    assert source.fetched == 1
