"""What a restart of a connector does, and who may ask for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.connect.connector import TaskReport
from sparkmirror.connect.entities import RequestError, State
from sparkmirror.connect.states import TaskEvent
from sparkmirror.retry import wait_for
from tests.connect.connector_fakes import RUNS, SECONDS, FakeRunning
from tests.connect.herder_fakes import CONFIG, NAME, FakeWorker


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[FakeWorker]:
    worker = FakeWorker(tmp_path)
    worker.start()
    yield worker
    worker.stop()


@pytest.fixture
def running(worker: FakeWorker) -> FakeWorker:
    worker.herder.create(NAME, CONFIG, None)
    worker.wait_for_states(State.RUNNING, State.RUNNING)
    return worker


def refused(error: pytest.ExceptionInfo[RequestError]) -> tuple[int, str]:
    return error.value.status, error.value.text


def test_restart_of_the_connector_alone_leaves_its_tasks(running: FakeWorker) -> None:
    assert running.herder.restart_connector(NAME, include_tasks=False, only_failed=False) is None
    assert running.made[0].calls == ["connect", "start", "refresh"]


def test_restart_with_tasks_says_what_to_expect(running: FakeWorker) -> None:
    expected = running.herder.restart_connector(NAME, include_tasks=True, only_failed=False)
    assert expected is not None
    assert [expected.state, *(task.state for task in expected.tasks)] == ["RESTARTING"] * 2
    made = running.made[0]
    wait_for(lambda: made.task_calls.count("start 0") == 2, within=SECONDS)
    running.wait_for_states(State.RUNNING, State.RUNNING)
    assert made.calls == ["connect", "start", "refresh"]
    assert (NAME, None, "RESTARTING") in running.statuses.said
    assert (NAME, 0, "RESTARTING") in running.statuses.said


def test_restart_of_what_failed_leaves_what_runs(running: FakeWorker) -> None:
    expected = running.herder.restart_connector(NAME, include_tasks=True, only_failed=True)
    assert expected is not None
    assert [expected.state, *(task.state for task in expected.tasks)] == ["RUNNING"] * 2
    running.herder.restart_connector(NAME, include_tasks=False, only_failed=False)
    assert len(running.made) == 1


def test_one_of_several_tasks_is_restarted(worker: FakeWorker) -> None:
    def with_two_tasks(running: FakeRunning) -> None:
        running.task_class = "MirrorSourceTask"
        running.reports = [RUNS, TaskReport(TaskEvent.RAISED, "out of luck")]

    worker.prepare = with_two_tasks
    worker.herder.create(NAME, CONFIG, None)
    worker.wait_for_states(State.RUNNING, State.RUNNING, State.FAILED)
    assert worker.herder.task_status(NAME, 1).trace == "out of luck"
    worker.herder.restart_connector(NAME, include_tasks=True, only_failed=True)
    calls = worker.made[0].task_calls
    wait_for(lambda: "restart 1" in calls, within=SECONDS)
    worker.herder.restart_task(NAME, 0)
    assert calls[-1] == "restart 0"
    assert calls.count("start 0") == calls.count("start 1") == 1
    with pytest.raises(RequestError) as error:
        worker.herder.restart_task(NAME, 2)
    assert refused(error) == (404, f"Unknown task: {NAME}-2")


def test_a_restart_without_a_status_has_nothing_to_go_by(worker: FakeWorker) -> None:
    def never(running: FakeRunning) -> None:
        running.gate.clear()

    worker.prepare = never
    worker.herder.create(NAME, CONFIG, None)
    with pytest.raises(RequestError) as error:
        worker.herder.restart_connector(NAME, include_tasks=True, only_failed=False)
    assert refused(error) == (404, f"Status for connector {NAME} not found")
