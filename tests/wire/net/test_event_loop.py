"""The event loop: timers by a clock that the test moves, and real sockets."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import pytest

from sparkmirror.wire.net.event_loop import READ, WRITE, EventLoop, Timer


class FakeClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class End:
    """One end of a socket pair; notes its events and does what the test scripts."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.events: list[int] = []
        self.then: Callable[[], None] = lambda: None

    def fileno(self) -> int:
        return self.sock.fileno()

    def on_ready(self, events: int) -> None:
        self.events.append(events)
        self.then()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def loop(clock: FakeClock) -> Iterator[EventLoop]:
    loop = EventLoop(clock)
    yield loop
    loop.close()


@pytest.fixture
def pairs() -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    found = [socket.socketpair() for _ in range(2)]
    yield found
    for pair in found:
        for each in pair:
            each.close()


# -- timers ---------------------------------------------------------------------------------------


def test_timers_run_when_they_are_due_and_in_the_order_of_their_times(
    loop: EventLoop, clock: FakeClock
) -> None:
    calls: list[str] = []
    loop.call_later(3.0, lambda: calls.append("three"))
    loop.call_later(1.0, lambda: calls.append("one"))
    loop.call_later(1.0, lambda: calls.append("one again"))
    loop.run_once(0)
    assert calls == []
    clock.now += 1.0
    loop.run_once(0)
    assert calls == ["one", "one again"]
    clock.now += 5.0
    loop.run_once(0)
    assert calls == ["one", "one again", "three"]


def test_a_timer_runs_once(loop: EventLoop, clock: FakeClock) -> None:
    calls: list[int] = []
    loop.call_later(1.0, lambda: calls.append(1))
    for _ in range(3):
        clock.now += 1.0
        loop.run_once(0)
    assert calls == [1]


def test_a_cancelled_timer_does_not_run(loop: EventLoop, clock: FakeClock) -> None:
    calls: list[str] = []
    timer = loop.call_later(1.0, lambda: calls.append("cancelled"))
    loop.call_later(1.0, lambda: calls.append("other"))
    timer.cancel()
    clock.now += 2.0
    loop.run_once(0)
    assert calls == ["other"]


def test_a_timer_may_cancel_another_that_is_due_too(loop: EventLoop, clock: FakeClock) -> None:
    calls: list[str] = []
    timers: list[Timer] = []

    def cancel_other() -> None:
        timers[0].cancel()

    loop.call_later(1.0, cancel_other)
    timers.append(loop.call_later(1.0, lambda: calls.append("second")))
    clock.now += 2.0
    loop.run_once(0)
    assert calls == []


def test_a_timer_may_set_another(loop: EventLoop, clock: FakeClock) -> None:
    calls: list[float] = []

    def again() -> None:
        calls.append(clock.now)
        loop.call_later(1.0, again)

    loop.call_later(1.0, again)
    for _ in range(3):
        clock.now += 1.0
        loop.run_once(0)
    assert calls == [101.0, 102.0, 103.0]


def test_the_loop_waits_no_longer_than_the_next_timer() -> None:
    loop = EventLoop()
    calls: list[int] = []
    loop.call_later(5.0, lambda: None).cancel()
    loop.call_later(0.02, lambda: calls.append(1))
    began = time.monotonic()
    loop.run_until(lambda: bool(calls), 5.0)
    loop.close()
    assert time.monotonic() - began < 4.0
    assert calls == [1]


@pytest.mark.parametrize("happens", [True, False])
def test_run_until_returns_which_came_first(happens: bool) -> None:
    loop = EventLoop()
    calls: list[int] = []
    loop.call_later(0.01 if happens else 60.0, lambda: calls.append(1))
    assert loop.run_until(lambda: bool(calls), 0.5 if happens else 0.05) is happens
    loop.close()


# -- sockets --------------------------------------------------------------------------------------


def test_a_handler_is_called_for_the_events_it_watches(
    loop: EventLoop, pairs: list[tuple[socket.socket, socket.socket]]
) -> None:
    ours, theirs = pairs[0]
    end = End(ours)
    loop.watch(end, READ)
    loop.run_once(0)
    assert end.events == []
    theirs.send(b"x")
    loop.run_once(1.0)
    assert end.events == [READ]
    loop.rewatch(end, READ | WRITE)
    loop.run_once(1.0)
    assert end.events[-1] == READ | WRITE
    loop.unwatch(end)
    loop.run_once(0)
    assert len(end.events) == 2


def test_a_handler_closed_by_another_in_the_same_round_is_not_called(
    loop: EventLoop, pairs: list[tuple[socket.socket, socket.socket]]
) -> None:
    ends = [End(ours) for ours, _ in pairs]

    def closes(other: End) -> Callable[[], None]:
        def close() -> None:
            loop.unwatch(other)
            other.sock.close()

        return close

    ends[0].then, ends[1].then = closes(ends[1]), closes(ends[0])
    for end, (_, theirs) in zip(ends, pairs, strict=True):
        loop.watch(end, READ)
        theirs.send(b"x")
    loop.run_once(1.0)
    assert sorted(map(len, (end.events for end in ends))) == [0, 1]


def test_a_descriptor_used_again_in_the_same_round_is_not_mixed_up(
    loop: EventLoop, pairs: list[tuple[socket.socket, socket.socket]]
) -> None:
    ends = [End(ours) for ours, _ in pairs]
    fresh: list[End] = []

    def replace(other: End) -> Callable[[], None]:
        def do() -> None:
            number = other.fileno()
            loop.unwatch(other)
            other.sock.close()
            pair = socket.socketpair()
            pairs.append(pair)
            assert number in (pair[0].fileno(), pair[1].fileno())
            mine = pair[0] if pair[0].fileno() == number else pair[1]
            fresh.append(End(mine))
            loop.watch(fresh[0], READ)

        return do

    ends[0].then, ends[1].then = replace(ends[1]), replace(ends[0])
    for end, (_, theirs) in zip(ends, pairs, strict=True):
        loop.watch(end, READ)
        theirs.send(b"x")
    loop.run_once(1.0)
    assert [end.events for end in fresh] == [[]]


def test_a_short_wait_ends_when_its_timer_is_due_or_a_socket_is_ready(
    loop: EventLoop, clock: FakeClock, pairs: list[tuple[socket.socket, socket.socket]]
) -> None:
    ours, theirs = pairs[0]
    end = End(ours)
    loop.watch(end, READ)
    loop.call_later(0.0002, lambda: None)
    loop.run_once(60.0)  # by a clock that stands still: the timer stays, the wait ends
    assert end.events == []
    theirs.send(b"x")
    loop.run_once(60.0)
    assert end.events == [READ]
