"""Periodic jobs: with a clock that the test turns, and with the real thread."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from sparkmirror.connect.scheduler import Job, Scheduler
from sparkmirror.errors import KafkaError

WAIT_SECONDS = 10.0


class Bench:
    """A scheduler without its thread, a clock, and the times at which its jobs ran."""

    def __init__(self) -> None:
        self.now = 100.0
        self.runs: list[tuple[str, float]] = []
        self.scheduler = Scheduler("a->b", lambda: self.now)

    def repeat(
        self, what: str, seconds: float, *, delayed: bool = False, enabled: bool = True
    ) -> Job:
        return self.scheduler.repeat(
            what, seconds, lambda: self.run(what), delayed=delayed, enabled=enabled
        )

    def run(self, what: str) -> None:
        self.runs.append((what, self.now - 100.0))

    def turn(self, seconds: float) -> None:
        """Let time pass as the thread does: from due job to due job."""
        end = self.now + seconds
        while (wait := self.scheduler.run_due()) <= end - self.now:
            self.now += wait
        self.now = end


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize(
    ("delayed", "times"),
    [
        pytest.param(False, [0.0, 2.0, 4.0], id="at-once"),
        pytest.param(True, [2.0, 4.0], id="after-one-interval"),
    ],
)
def test_a_job_runs_at_its_rate(bench: Bench, delayed: bool, times: list[float]) -> None:
    bench.repeat("j", 2.0, delayed=delayed)
    bench.turn(5.0)
    assert bench.runs == [("j", at) for at in times]


@pytest.mark.parametrize(
    ("seconds", "enabled"),
    [pytest.param(-1.0, True, id="negative"), pytest.param(1.0, False, id="disabled")],
)
def test_a_job_without_schedule_runs_only_when_asked(
    bench: Bench, seconds: float, enabled: bool
) -> None:
    job = bench.repeat("j", seconds, enabled=enabled)
    bench.turn(1000.0)
    assert bench.runs == []
    bench.scheduler.run_soon(job)
    bench.turn(1000.0)
    assert bench.runs == [("j", 1000.0)]


def test_an_interval_of_zero_does_not_run_wild(bench: Bench) -> None:
    bench.repeat("j", 0.0)
    bench.turn(0.1)
    assert 5 <= len(bench.runs) <= 12


def test_several_jobs_keep_their_own_rates(bench: Bench) -> None:
    bench.repeat("fast", 1.0)
    bench.repeat("slow", 2.0, delayed=True)
    bench.turn(2.5)
    assert bench.runs == [("fast", 0.0), ("fast", 1.0), ("fast", 2.0), ("slow", 2.0)]


def test_of_the_turns_that_a_long_run_took_one_is_made_up_for(bench: Bench) -> None:
    def run() -> None:
        bench.run("long")
        bench.now += 3.5 if len(bench.runs) == 1 else 0.0

    bench.scheduler.repeat("long", 1.0, run)
    bench.turn(6.5)
    assert [at for _, at in bench.runs] == [0.0, 3.5, 4.0, 5.0, 6.0]


def test_asking_several_times_runs_once_and_keeps_the_rate_from_there(bench: Bench) -> None:
    job = bench.repeat("j", 10.0, delayed=True)
    bench.turn(4.0)
    bench.scheduler.run_soon(job)
    bench.scheduler.run_soon(job)
    bench.turn(15.0)
    assert [at for _, at in bench.runs] == [4.0, 14.0]


def test_a_job_may_ask_for_itself(bench: Bench) -> None:
    def run() -> None:
        bench.run("j")
        if len(bench.runs) == 1:
            bench.scheduler.run_soon(job)

    job = bench.scheduler.repeat("j", 10.0, run)
    bench.turn(1.0)
    assert [at for _, at in bench.runs] == [0.0, 0.0]


def test_nothing_starts_after_stop(bench: Bench) -> None:
    bench.repeat("j", 1.0)
    bench.scheduler.stop()
    assert bench.scheduler.run_due() == 0.0
    assert bench.runs == []


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(KafkaError("list groups on 'a': NOT_COORDINATOR"), id="expected"),
        pytest.param(ZeroDivisionError("list groups on 'a'"), id="a-mistake-of-ours"),
    ],
)
def test_an_error_is_kept_and_logged_and_the_schedule_goes_on(
    bench: Bench, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    fails = True

    def run() -> None:
        bench.run("j")
        if fails:
            raise error

    bench.scheduler.repeat("listing groups", 1.0, run)
    bench.turn(0.5)
    assert "[a->b] listing groups failed" in caplog.text
    assert str(error) in bench.scheduler.last_error
    fails = False
    bench.turn(1.0)
    assert len(bench.runs) == 2
    assert bench.scheduler.last_error == ""


def test_the_same_error_is_warned_of_once(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    def run() -> None:
        raise KafkaError("no" if bench.now < 103.0 else "no, again")

    bench.scheduler.repeat("j", 1.0, run)
    with caplog.at_level(logging.DEBUG):
        bench.turn(4.5)
    levels = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert levels == [
        ("WARNING", "[a->b] j failed: no"),
        ("DEBUG", "[a->b] j failed: no"),
        ("DEBUG", "[a->b] j failed: no"),
        ("WARNING", "[a->b] j failed: no, again"),
        ("DEBUG", "[a->b] j failed: no, again"),
    ]


# -- the thread -----------------------------------------------------------------------------------


def test_the_thread_runs_repeats_wakes_and_ends() -> None:
    scheduler = Scheduler("a->b")
    often, asked = threading.Semaphore(0), threading.Event()
    scheduler.repeat("often", 0.02, often.release)
    job = scheduler.repeat("rare", 1000.0, asked.set, delayed=True)
    scheduler.start()
    for _ in range(3):
        assert often.acquire(timeout=WAIT_SECONDS)
    assert not asked.is_set()
    scheduler.run_soon(job)
    assert asked.wait(WAIT_SECONDS)
    scheduler.stop()
    assert scheduler.join(WAIT_SECONDS)


def test_stop_wakes_a_thread_that_has_nothing_to_do() -> None:
    scheduler = Scheduler("a->b")
    scheduler.repeat("never", -1.0, lambda: None)
    scheduler.start()
    began = time.monotonic()
    scheduler.stop()
    assert scheduler.join(WAIT_SECONDS)
    assert time.monotonic() - began < WAIT_SECONDS / 2


def test_join_tells_that_a_run_does_not_end() -> None:
    scheduler = Scheduler("a->b")
    begun, end = threading.Event(), threading.Event()

    def run() -> None:
        begun.set()
        end.wait(WAIT_SECONDS)

    scheduler.repeat("long", 1000.0, run)
    scheduler.start()
    assert begun.wait(WAIT_SECONDS)
    scheduler.stop()
    assert not scheduler.join(0.05)
    end.set()
    assert scheduler.join(WAIT_SECONDS)


def test_a_scheduler_that_was_never_started_has_ended() -> None:
    scheduler = Scheduler("a->b")
    scheduler.stop()
    assert scheduler.join(0.0)


def test_job_that_ends_the_program_does_not_end_the_schedule(bench: Bench) -> None:
    def leave() -> None:
        raise SystemExit(3)

    job = bench.scheduler.repeat("left", 1.0, leave)
    bench.repeat("j", 1.0)
    bench.turn(1.5)
    assert bench.runs == [("j", 0.0), ("j", 1.0)]
    assert job.last_error == "SystemExit: 3"


def test_job_that_a_stop_interrupts_is_no_warning(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    def interrupted() -> None:
        bench.scheduler.stop()
        raise KafkaError("closed")

    bench.scheduler.repeat("listing groups", 1.0, interrupted)
    with caplog.at_level(logging.DEBUG):
        bench.scheduler.run_due()
    assert [record.levelname for record in caplog.records] == ["DEBUG"]


def test_whoever_waits_for_a_run_gets_one_that_began_after_the_call() -> None:
    """Also when one is under way, which may have seen the world as it was before."""
    began, gate, ended = threading.Event(), threading.Event(), threading.Event()
    runs: list[int] = []

    def run() -> None:
        runs.append(1)
        began.set()
        assert gate.wait(10.0)
        if len(runs) == 2:
            ended.set()
            raise KafkaError("b is away")

    scheduler = Scheduler("test")
    job = scheduler.repeat("looking", 1000.0, run)
    scheduler.start()
    try:
        assert began.wait(10.0)
        threading.Timer(0.1, gate.set).start()
        assert scheduler.run_and_wait(job, 10.0) == "b is away"
        assert ended.is_set()
        assert len(runs) == 2
        gate.clear()
        assert scheduler.run_and_wait(job, 0.05) == "looking takes longer than 0 s"
    finally:
        gate.set()
        scheduler.stop()
        assert scheduler.join(10.0)
