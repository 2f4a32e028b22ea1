"""The lives of a task on a thread of the worker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from sparkmirror.connect import start_failures, thread_task
from sparkmirror.connect.connector import TaskConfigs, TaskReport
from sparkmirror.connect.start_counts import StartCounts
from sparkmirror.connect.states import TaskEvent
from sparkmirror.connect.thread_task import ThreadTask
from sparkmirror.errors import ConfigError, ConfigErrors, KafkaError
from sparkmirror.retry import RetryPolicy, wait_for
from tests.connect.connector_fakes import SECONDS, FakeRunning, FakeWork

ENDED, RUNS = TaskReport(TaskEvent.ENDED), TaskReport(TaskEvent.CALLED_IN)


class Work(FakeWork):
    """Fails where the test says so."""

    def __init__(self, running: FakeRunning, configs: TaskConfigs) -> None:
        super().__init__(running, configs)
        self._failing = running

    def _note(self, call: str) -> None:
        super()._note(call)
        if call in self._failing.failures:
            raise self._failing.failures.pop(call)


class Rig:
    """A task that the test plays."""

    def __init__(self) -> None:
        self.running = FakeRunning({"name": "c"})
        self.may_run = True
        self.starts = StartCounts()
        self.task = ThreadTask(
            "c-0",
            {0: {"x": "1"}},
            lambda configs: Work(self.running, configs),
            lambda: self.may_run,
            1.0,
            starts=self.starts,
        )
        self.is_started = False

    @property
    def calls(self) -> list[str]:
        return self.running.task_calls

    def start(self) -> None:
        self.is_started = True
        self.task.start()

    def wait(self, condition: Callable[[], object]) -> None:
        wait_for(condition, within=SECONDS, describe=lambda: str(self.calls))


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr(start_failures, "RETRIES", RetryPolicy(0.05, 60))
    monkeypatch.setattr(thread_task, "DOUBT_SECONDS", 0.02)
    monkeypatch.setattr(thread_task, "LOOK_SECONDS", 0.05)
    rig = Rig()
    yield rig
    rig.running.is_released = True
    rig.running.task_gate.set()
    rig.task.stop()
    if rig.is_started:
        rig.task.join(SECONDS)
        assert rig.task.has_ended


def test_it_runs_until_it_is_stopped(rig: Rig) -> None:
    assert rig.task.report() == ENDED
    rig.start()
    rig.wait(lambda: rig.task.report() == RUNS)
    rig.task.stop()
    rig.wait(lambda: rig.task.has_ended)
    assert rig.calls == ["connect 0", "start 0", "stop 0", "join 0"]
    assert rig.task.report() == ENDED


def test_what_fails_is_tried_again(rig: Rig) -> None:
    rig.running.failures = {"connect": KafkaError("b is away"), "start": KafkaError("gone again")}
    rig.start()
    rig.wait(lambda: rig.task.report() == RUNS)
    assert rig.calls == [
        *("connect 0", "stop 0", "join 0"),
        *("connect 0", "start 0", "stop 0", "join 0"),
        *("connect 0", "start 0"),
    ]
    starts = rig.starts
    assert (starts.attempts, starts.successes, starts.failures) == (3, 1, 2)


def test_settings_that_cannot_work_wait_for_a_user(rig: Rig) -> None:
    rig.running.failures = {"connect": ConfigErrors([ConfigError("x", "1", "no")])}
    rig.start()
    rig.wait(lambda: rig.task.report().event is TaskEvent.RAISED)
    assert not threading.Event().wait(0.3)
    assert rig.calls == ["connect 0", "stop 0", "join 0"]
    assert "no" in rig.task.report().trace
    rig.task.restart()
    rig.wait(lambda: rig.task.report() == RUNS)


def test_a_restart_is_another_life_after_the_end_of_this_one(rig: Rig) -> None:
    rig.start()
    rig.wait(lambda: rig.task.report() == RUNS)
    rig.running.task_gate.clear()
    rig.task.restart()
    rig.wait(lambda: "join 0" in rig.calls)
    assert rig.task.report() == ENDED
    assert rig.calls.count("connect 0") == 1
    rig.running.task_gate.set()
    rig.wait(lambda: rig.task.report() == RUNS)
    assert rig.calls.count("start 0") == 2


def test_it_has_not_ended_as_long_as_its_executor_may_write(rig: Rig) -> None:
    """Spark has given up the job, but the executor may only be cut off: no other may start yet."""
    rig.start()
    rig.wait(lambda: rig.task.report() == RUNS)
    rig.running.is_released = False
    rig.task.restart()
    rig.wait(lambda: "join 0" in rig.calls)
    assert not threading.Event().wait(0.3)
    assert rig.calls.count("connect 0") == 1
    assert not rig.task.has_ended
    rig.running.is_released = True
    rig.wait(lambda: rig.calls.count("start 0") == 2)


def test_nothing_starts_while_another_worker_may_lead(rig: Rig) -> None:
    rig.may_run = False
    rig.start()
    rig.wait(lambda: rig.calls.count("join 0") > 1)
    assert "start 0" not in rig.calls
    rig.may_run = True
    rig.wait(lambda: rig.task.report() == RUNS)


def test_a_configuration_that_cannot_be_given_is_given_later(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.start()
    rig.wait(lambda: rig.task.report() == RUNS)
    rig.running.failures = {"reconfigure": KafkaError("positions cannot be read")}
    rig.task.reconfigure({0: {"x": "2"}})
    rig.wait(lambda: rig.calls.count("reconfigure 0") == 2)
    assert rig.task.report() == RUNS
    assert rig.calls.count("start 0") == 1
    assert "does not have its new configuration yet: positions cannot be read" in caplog.text


def test_the_last_topics_are_told_after_the_end(rig: Rig) -> None:
    rig.start()
    rig.wait(lambda: rig.task.report() == RUNS)
    rig.running.task_gate.clear()
    rig.task.stop()
    rig.wait(lambda: "join 0" in rig.calls)
    rig.running.topics = {"t"}
    rig.running.task_gate.set()
    rig.wait(lambda: rig.task.has_ended)
    assert rig.task.take_topics() == {"t"}
    assert rig.task.take_topics() == set()
