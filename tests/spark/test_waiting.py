"""A task that waits reports it, and continues when it can."""

from __future__ import annotations

import threading

import pytest

from sparkmirror.spark.copy import partition_problems
from sparkmirror.wire.fetch import silence
from tests.spark.copies import T0, T1, Copy
from tests.wire.fake_broker import FETCH, PRODUCE, Do, Request, once

SKIP = {"errors.tolerance": "all"}
INVALID_RECORD = 87


@pytest.fixture(autouse=True)
def report_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "SILENT_SECONDS", 0.1)
    monkeypatch.setattr(partition_problems, "PASSING_SECONDS", 0.1)


def test_a_partition_continues_after_its_only_batch_was_skipped_while_blocked(
    copy: Copy,
) -> None:
    copy.source.write(T0, [b"first"])
    loop = copy.start({T0: 0, T1: 0}, SKIP)
    copy.wait_for(1)
    copy.target.intercept(PRODUCE, once(Do(drop=True)))
    copy.target.intercept(PRODUCE, once(Do(code=INVALID_RECORD)))
    copy.source.write(T0, [b"poison"])
    copy.run_until(lambda: loop.skipped_records == 1)
    copy.source.write(T0, [b"later"])
    assert copy.wait_for(2) == [b"first", b"later"]
    copy.run_until(lambda: loop.metrics.behind() == 0 and not loop.problems)


@pytest.mark.parametrize("api", [FETCH, PRODUCE], ids=["source", "target"])
def test_a_silent_broker_is_named_and_the_backlog_unknown_while_it_lasts(
    copy: Copy, api: int, caplog: pytest.LogCaptureFixture
) -> None:
    copy.source.write(T0, [b"first"])
    loop = copy.start({T0: 0})
    copy.wait_for(1)
    copy.run_until(lambda: loop.metrics.behind() == 0)
    released = threading.Event()
    frozen = threading.Event()

    def freeze(_: Request) -> None:
        frozen.set()
        released.wait(20.0)

    (copy.source if api == FETCH else copy.target).intercept(api, freeze)
    copy.source.write(T0, [b"second"])
    copy.run_until(frozen.is_set)

    def is_logged() -> bool:
        loop.log_problems()
        return any("does not respond: no byte from" in line for line in caplog.messages)

    copy.run_until(is_logged)
    assert T0 in loop.problems
    assert "no byte for" in loop.problems[T0].text
    assert loop.metrics.behind() is None
    released.set()
    copy.wait_for(2)

    def is_over() -> bool:
        loop.log_problems()
        return not loop.problems and loop.metrics.behind() == 0

    copy.run_until(is_over)


def test_a_partition_whose_target_refuses_it_is_not_taken_for_caught_up(copy: Copy) -> None:
    """Nothing of it is fetched, so it is unknown how far its log has grown."""
    copy.source.write(T0, [b"first"])
    loop = copy.start({T0: 0, T1: 0})
    copy.wait_for(1)
    copy.run_until(lambda: loop.metrics.behind() == 0)
    refused = threading.Event()
    copy.target.intercept(PRODUCE, lambda _: None if refused.is_set() else Do(code=19))
    copy.source.write(T0, [b"second"])
    copy.run_until(lambda: T0 in loop.problems)
    assert loop.metrics.behind() is None
    refused.set()
    copy.wait_for(2)
    copy.run_until(lambda: loop.metrics.behind() == 0)
