"""What a person sees of running flows, by a clock that the test moves."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from sparkmirror.cli import flow_display
from sparkmirror.cli.flow_display import (
    MOST_CHARACTERS,
    SUMMARY_SECONDS,
    WINDOW_SECONDS,
    FlowDisplay,
    FlowLog,
    Rate,
    Sample,
    describe,
    describe_error,
    format_seconds,
)
from sparkmirror.config.masking import remember
from sparkmirror.connect.flow_status import FlowStatus
from tests.connect.fakes import Connector

WELL = FlowStatus(
    flow="a->b", records=0, bytes=0, behind=0, tasks=2, running=2, lost=0, skipped=0, problems=0,
    error="",
)  # fmt: skip


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def connector(tmp_path: Path) -> Connector:
    connector = Connector(tmp_path, {"a->b.topics": "t"})
    connector.source.add("t")
    connector.refresh()
    connector.fake_tasks[0].numbers = {"behind": 0}
    return connector


# -- one line -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "rates", "expected"),
    [
        pytest.param(
            WELL,
            (1234.5, 2_500_000.0),
            "a->b: 1,234 records/s, 2.5 MB/s, 0 records behind, 2 of 2 tasks running",
            id="caught up",
        ),
        pytest.param(
            replace(WELL, behind=None, running=0),
            (0.0, 0.0),
            "a->b: 0 records/s, 0.0 MB/s, position not known yet, 0 of 2 tasks running",
            id="starting",
        ),
        pytest.param(
            replace(WELL, behind=12_000),
            (1000.0, 0.0),
            "a->b: 1,000 records/s, 0.0 MB/s, 12,000 records behind, caught up in 12 s, "
            "2 of 2 tasks running",
            id="behind",
        ),
        pytest.param(
            replace(WELL, behind=12_000, problems=1),
            (1000.0, 0.0),
            "a->b: 1,000 records/s, 0.0 MB/s, 12,000 records behind, 2 of 2 tasks running, "
            "1 partitions waiting",
            id="behind, and a part waits",
        ),
        pytest.param(
            replace(WELL, behind=12_000, running=1),
            (1000.0, 0.0),
            "a->b: 1,000 records/s, 0.0 MB/s, 12,000 records behind, 1 of 2 tasks running",
            id="behind, and a task is down",
        ),
        pytest.param(
            replace(WELL, behind=12_000),
            (0.5, 0.0),
            "a->b: 0 records/s, 0.0 MB/s, 12,000 records behind, 2 of 2 tasks running",
            id="behind and standing",
        ),
        pytest.param(
            replace(WELL, lost=1_000, skipped=2, problems=3, running=1, error="t-1 FAILED: why"),
            (0.0, 0.0),
            "a->b: 0 records/s, 0.0 MB/s, 0 records behind, 1 of 2 tasks running, 1,000 LOST, "
            "2 SKIPPED, 3 partitions waiting, t-1 FAILED: why",
            id="everything at once",
        ),
    ],
)
def test_a_line_shows_all_states(
    status: FlowStatus, rates: tuple[float, float], expected: str
) -> None:
    assert describe(status, rates) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.0, "1 s"),
        (0.4, "1 s"),
        (12.4, "12 s"),
        (89.4, "89 s"),
        (90.0, "2 min"),
        (240.0, "4 min"),
        (5399.0, "90 min"),
        (5400.0, "1.5 h"),
        (360_000.0, "100.0 h"),
    ],
)
def test_durations(seconds: float, expected: str) -> None:
    assert format_seconds(seconds) == expected


# -- rates ----------------------------------------------------------------------------------------


def test_the_first_sample_has_no_rate() -> None:
    assert Rate(5.0).add(Sample(0.0, 100, 1000)) == (0.0, 0.0)


def test_two_samples_at_one_moment_have_no_rate() -> None:
    rate = Rate(5.0)
    rate.add(Sample(1.0, 0, 0))
    assert rate.add(Sample(1.0, 100, 1000)) == (0.0, 0.0)


def test_a_rate_is_over_the_window() -> None:
    rate = Rate(5.0)
    for second in range(11):
        found = rate.add(Sample(float(second), 10 * second, 100 * second))
    assert found == (10.0, 100.0)
    for second in range(11, 17):
        found = rate.add(Sample(float(second), 100, 1000))
    assert found == (0.0, 0.0)


def test_samples_further_apart_than_the_window_still_have_a_rate() -> None:
    rate = Rate(5.0)
    rate.add(Sample(0.0, 0, 0))
    assert rate.add(Sample(60.0, 600, 6000)) == (10.0, 100.0)


# -- display --------------------------------------------------------------------------------------


def test_without_a_terminal_there_is_a_log_line_a_minute(
    connector: Connector, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="sparkmirror")
    caplog.clear()
    task = connector.fake_tasks[0]
    with FlowDisplay([connector], is_terminal=False, clock=clock) as display:
        for second in range(121):
            clock.now = 1000.0 + second
            task.records, task.bytes = 50 * second, 1_000_000 * second
            display.update()
    assert [record.getMessage() for record in caplog.records] == [
        "a->b: 50 records/s, 1.0 MB/s, 0 records behind, 1 of 1 tasks running"
    ] * (120 // int(SUMMARY_SECONDS))


def test_an_outage_of_some_seconds_has_no_time_of_catching_up(
    connector: Connector, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="sparkmirror")
    caplog.clear()
    task = connector.fake_tasks[0]
    task.numbers = {"behind": 1000}
    with FlowDisplay([connector], is_terminal=False, clock=clock) as display:
        for second in range(121):
            clock.now = 1000.0 + second
            task.records = 50 * min(second, 110)  # the last ten seconds nothing came
            display.update()
    first, second_line = caplog.messages
    assert "1,000 records behind, caught up in 20 s" in first
    assert "1,000 records behind, 1 of 1 tasks running" in second_line


def test_a_worker_logs_each_flow_and_what_fails_once_a_minute(
    connector: Connector, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="sparkmirror")
    caplog.clear()
    beat = WorkerSide("a->b|Beat")
    flow_log = FlowLog(clock)
    task = connector.fake_tasks[0]
    for second in range(181):
        clock.now = 1000.0 + second
        task.records = 50 * second
        beat.last_error = "cluster 'b' cannot be reached" if second > 60 else ""
        # The connector was deleted after two minutes.
        flow_log.update({"msc": connector} if second <= 120 else {}, {"hbc": beat})
    line = "[msc] a->b: 50 records/s, 0.0 MB/s, 0 records behind, 1 of 1 tasks running"
    error = "[hbc] a->b|Beat: cluster 'b' cannot be reached"
    assert caplog.messages == [line, line, error, error]


def test_on_a_terminal_there_is_a_live_line_and_no_log(
    connector: Connector,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO, logger="sparkmirror")
    caplog.clear()
    live = FakeLive()
    monkeypatch.setattr(flow_display, "Live", lambda **_: live)
    task = connector.fake_tasks[0]
    with FlowDisplay([connector, connector], is_terminal=True, clock=clock) as display:
        for _ in range(int(SUMMARY_SECONDS) + 2):
            clock.now += 1.0
            task.records += 7
            display.update()
    line = "a->b: 7 records/s, 0.0 MB/s, 0 records behind, 1 of 1 tasks running"
    assert live.shown[-1] == f"{line}\n{line}"
    assert (live.started, live.stopped) == (1, 1)
    assert caplog.records == []
    assert WINDOW_SECONDS < SUMMARY_SECONDS


def test_connectors_without_tasks_are_shown_while_they_fail(
    connector: Connector, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = FakeLive()
    monkeypatch.setattr(flow_display, "Live", lambda **_: live)
    beat, checkpoints = WorkerSide("a->b|Beat"), WorkerSide("a->b|Checkpoint")
    with FlowDisplay([connector], True, clock, lambda: [beat, checkpoints]) as display:
        display.update()
        beat.last_error = "cluster 'b' cannot be reached\nin detail"
        checkpoints.last_error = "x" * 500
        display.update()
        beat.last_error = checkpoints.last_error = ""
        display.update()
    line = "a->b: 0 records/s, 0.0 MB/s, 0 records behind, 1 of 1 tasks running"
    errors = f"a->b|Beat: cluster 'b' cannot be reached\na->b|Checkpoint: {'x' * 200}..."
    assert live.shown == [line, f"{line}\n{errors}", line]


class WorkerSide:
    """A connector that has no tasks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.last_error = ""


def test_the_live_line_is_removed_when_the_program_fails(
    connector: Connector, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = FakeLive()
    monkeypatch.setattr(flow_display, "Live", lambda **_: live)
    with pytest.raises(RuntimeError), FlowDisplay([connector], is_terminal=True, clock=clock):
        raise RuntimeError
    assert live.stopped == 1


class FakeLive:
    """rich's Live without a terminal."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.started = 0
        self.stopped = 0

    def start(self) -> None:
        self.started += 1

    def stop(self) -> None:
        self.stopped += 1

    def update(self, text: object) -> None:
        self.shown.append(str(text))


def test_a_secret_is_not_cut_in_half() -> None:
    remember("a-secret-of-some-length")
    side = WorkerSide("checkpoints")
    side.last_error = "x" * (MOST_CHARACTERS - 8) + " a-secret-of-some-length"
    assert "a-secr" not in describe_error(side)
