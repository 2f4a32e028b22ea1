"""A flow's status, added up over its tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.connect.flow_status import FlowStatus, summarize
from sparkmirror.errors import TransportError
from sparkmirror.spark.task_runner import TaskState
from tests.connect.fakes import Connector

SETTINGS = {"a->b.topics": "t", "tasks.max": "2"}


@pytest.fixture
def connector(tmp_path: Path) -> Connector:
    connector = Connector(tmp_path, SETTINGS)
    connector.source.add("t", 2)
    connector.refresh()
    return connector


def fail_refresh(connector: Connector, reason: str) -> None:
    connector.source.failures.append(TransportError(reason))
    connector._schedule()
    connector.refresh_soon(["a.t"])
    connector._scheduler.run_due()


def test_a_flow_without_tasks(tmp_path: Path) -> None:
    assert summarize(Connector(tmp_path, SETTINGS)) == FlowStatus(
        flow="a->b", records=0, bytes=0, behind=0, tasks=0, running=0, lost=0, skipped=0,
        problems=0, error="",
    )  # fmt: skip


def test_totals_are_added_up(connector: Connector) -> None:
    for factor, task in enumerate(connector.fake_tasks, 1):
        task.records, task.bytes = 10 * factor, 100 * factor
        task.numbers = {
            "behind": factor,
            "lost_records": 2,
            "skipped_records": 3,
            "waiting": factor,
            "problems": {f"t-{factor}": "no leader"},
        }
    assert summarize(connector) == FlowStatus(
        flow="a->b", records=30, bytes=300, behind=3, tasks=2, running=2, lost=4, skipped=6,
        problems=3, error="",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("numbers", "states", "expected"),
    [
        pytest.param([5, 6], ["RUNNING", "RUNNING"], 11, id="all known"),
        pytest.param([5, None], ["RUNNING", "RUNNING"], None, id="one looks for its position"),
        pytest.param([5, 6], ["RUNNING", "FAILED"], None, id="one does not run"),
        pytest.param([0, 0], ["RUNNING", "RUNNING"], 0, id="all caught up"),
    ],
)
def test_behind_is_known_when_every_task_knows(
    connector: Connector, numbers: list[int | None], states: list[str], expected: int | None
) -> None:
    for task, behind, state in zip(connector.fake_tasks, numbers, states, strict=True):
        task.numbers, task.state = {"behind": behind}, TaskState(state)
    assert summarize(connector).behind == expected


def test_a_failed_task_is_named_with_its_reason(connector: Connector) -> None:
    fail_refresh(connector, "an older one")
    task = connector.fake_tasks[1]
    task.state, task.trace = TaskState.FAILED, "out of luck"
    status = summarize(connector)
    assert status.error == "a->b|MirrorSourceConnector-1 FAILED: out of luck"
    assert status.running == 1


def test_the_refresh_that_failed_last_is_told(connector: Connector) -> None:
    fail_refresh(connector, "list topics on 'a': time-out")
    assert summarize(connector).error == "list topics on 'a': time-out"
