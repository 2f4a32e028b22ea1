"""Every request has a deadline, and only progress extends it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.wire.net.test_connection import Rig, frame


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.close()


def test_a_slow_large_response_that_keeps_coming_is_not_cut_off(rig: Rig) -> None:
    rig.open()
    rig.request(keep=True, timeout=60.0)
    whole = frame(1, bytes(300_000))
    for at in range(0, len(whole), 100_000):
        rig.peer.sendall(whole[at : at + 100_000])
        rig.now += 50.0
        rig.loop.run_once(0.1)
        rig.connection.fail_if_overdue(rig.now)
    rig.run_until(lambda: bool(rig.responses))
    assert not rig.connection.closed


def tick(rig: Rig, seconds: float) -> None:
    """What the cluster does once a second, until the connection is closed."""
    end = rig.now + seconds
    while rig.now < end and not rig.connection.closed:
        rig.now += 1.0
        rig.loop.run_once(0.0)
        rig.connection.fail_if_overdue(rig.now)


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "not kept"])
@pytest.mark.parametrize("size", [300, 3_000_000])
@pytest.mark.parametrize("part", [6, 200, 0.5], ids=["in the frame", "at its start", "half"])
def test_a_response_that_stops_halfway_ends_the_connection(
    rig: Rig, size: int, part: float, keep: bool
) -> None:
    rig.open()
    rig.request(keep=keep, timeout=10.0)
    tick(rig, 5.0)
    whole = frame(1, bytes(size))
    rig.peer.sendall(whole[: int(part if part > 1 else len(whole) * part)])
    rig.run_until(lambda: rig.connection.has_begun_response)
    tick(rig, 60.0)
    assert rig.connection.closed
    assert 14.0 <= rig.now <= 18.0  # ten seconds after the last byte, by the loop's own clock
    (error,) = rig.failures
    assert "in the middle of a response" in str(error)
    assert rig.pool.used_bytes == 0


def test_the_deadline_itself_ends_the_wait_not_the_next_look(rig: Rig) -> None:
    rig.open()
    rig.request(keep=True, timeout=10.0)
    rig.peer.sendall(frame(1, bytes(3_000_000))[:60_000])
    rig.now = 2.25
    rig.run_until(lambda: rig.connection.has_begun_response)
    rig.now = 12.2
    rig.loop.run_once(0.0)
    assert not rig.connection.closed
    rig.now = 12.3
    rig.loop.run_once(0.0)
    assert rig.connection.closed


def test_progress_extends_the_deadline_by_the_whole_timeout(rig: Rig) -> None:
    rig.open()
    rig.request(keep=True, timeout=10.0)
    whole = frame(1, bytes(500_000))
    for at in range(0, len(whole), 100_000):
        tick(rig, 9.0)  # each pause is shorter than the timeout, all of them are longer
        rig.peer.sendall(whole[at : at + 100_000])
    rig.run_until(lambda: bool(rig.responses))
    assert not rig.connection.closed


def test_a_pipelined_request_has_its_whole_timeout_after_the_response_before_it(rig: Rig) -> None:
    rig.open()
    rig.request(timeout=10.0)
    rig.request(timeout=10.0)
    tick(rig, 9.0)
    rig.peer.sendall(frame(1, b"late"))
    rig.run_until(lambda: bool(rig.responses))
    tick(rig, 8.0)
    assert not rig.connection.closed
    tick(rig, 60.0)
    assert rig.connection.closed
    assert rig.now <= 22.0


def test_silence_is_counted_while_a_request_waits(rig: Rig) -> None:
    rig.open()
    rig.now = 100.0
    assert rig.connection.silent_seconds(rig.now) == 0.0
    rig.request(timeout=60.0)
    tick(rig, 5.0)
    assert rig.connection.silent_seconds(rig.now) == 5.0
    rig.peer.sendall(frame(1, b"")[:6])
    rig.run_until(lambda: rig.connection.has_begun_response)
    tick(rig, 3.0)
    assert rig.connection.silent_seconds(rig.now) <= 3.0
