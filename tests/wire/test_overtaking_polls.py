"""Polls of one session that overtake the last response: every record once, in order."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest

from sparkmirror.types import TopicPartition
from sparkmirror.wire.fetch.poll_pace import PollPace
from tests.wire.fake_broker import FETCH, Do, FakeCluster, Request
from tests.wire.rigs import LIMITS, TP, FetcherRig

OTHER = TopicPartition("t", 1)
FAILURES = [Do(drop=True), Do(garbage=b"\0"), *(Do(code=code) for code in (1, 3, 6, 70, 71, 78))]


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[FetcherRig]:
    """Polls that hardly wait for each other, five at a time."""
    monkeypatch.setattr(PollPace, "interval", lambda *_: 0.0001)
    monkeypatch.setattr(PollPace, "polls", lambda *_: 5)
    with FakeCluster(nodes=2) as brokers, FetcherRig(brokers, LIMITS) as rig:
        brokers.create_topic("t", partitions=2)
        for tp in (TP, OTHER):
            rig.fetcher.add(tp, 0)
        yield rig


def write(rig: FetcherRig, count: int, first: int = 0) -> list[bytes]:
    """Write records while the fetcher runs; gives the values."""
    values = [b"%05d" % at for at in range(first, first + count)]
    for value in values:
        for tp in (TP, OTHER):
            rig.brokers.write(tp, [value])
        rig.loop.run_once(0.001)
    return values


def wait_for(rig: FetcherRig, values: list[bytes]) -> None:
    for tp in (TP, OTHER):
        rig.wait_for(values, tp)


def test_polls_overtake_each_other_and_repeat_nothing(rig: FetcherRig) -> None:
    """All polls under way name offsets that were known before the response to the first of them."""
    may_respond = threading.Event()

    def hold(request: Request) -> None:
        if request.body.session_epoch == 5:
            may_respond.wait(10.0)

    rig.brokers.intercept(FETCH, hold)
    values = write(rig, 30)
    rig.run_until(lambda: in_flight(rig) == 5, lambda: in_flight(rig))
    may_respond.set()
    values += write(rig, 30, len(values))
    wait_for(rig, values)
    assert not rig.errors


def in_flight(rig: FetcherRig) -> int:
    return sum(session.in_flight for session in rig.fetcher._sessions.values())


@pytest.mark.parametrize("seed", range(6))
def test_polls_that_fail_at_random(rig: FetcherRig, seed: int) -> None:
    dice, lock = random.Random(seed), threading.Lock()

    def trouble(_: Request) -> Do | None:
        with lock:
            return dice.choice(FAILURES) if dice.random() < 0.05 else None

    rig.brokers.intercept(FETCH, trouble)
    wait_for(rig, write(rig, 150))
    assert not rig.truncated


def test_a_leader_that_moves_back_and_forth(rig: FetcherRig) -> None:
    values: list[bytes] = []
    for node in (2, 1, 2):
        values += write(rig, 30, len(values))
        rig.brokers.move_leader(TP, node)
    values += write(rig, 30, len(values))
    wait_for(rig, values)


def test_a_log_that_lost_records_is_read_from_where_it_differs(rig: FetcherRig) -> None:
    values = write(rig, 60)
    wait_for(rig, values)
    rig.brokers.elect_unclean(TP, 40, [b"other"], node=2)
    rig.run_until(lambda: bool(rig.truncated), lambda: rig.fetched()[-3:])
    rig.wait_for([*values, b"other"])
    assert rig.truncated == [(60, 40)]


def test_a_partition_that_leaves_and_comes_back(rig: FetcherRig) -> None:
    values = write(rig, 20)
    rig.fetcher.pause(TP)
    values += write(rig, 20, len(values))
    rig.fetcher.resume(TP)
    values += write(rig, 20, len(values))
    wait_for(rig, values)


def test_everything_ends_when_nothing_more_is_asked_for(rig: FetcherRig) -> None:
    wait_for(rig, write(rig, 20))
    for tp in (TP, OTHER):
        rig.fetcher.remove(tp)
    rig.run_until(lambda: in_flight(rig) == 0, lambda: rig.errors)
    assert rig.pool.used_bytes == 0
