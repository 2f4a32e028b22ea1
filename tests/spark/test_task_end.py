"""The end of a task as the worker sees it: what it waits for, and what it logs."""

from __future__ import annotations

import threading
from typing import cast

import pytest

from sparkmirror.errors import KafkaError
from sparkmirror.spark.link.client import LinkClient, open_link
from sparkmirror.spark.link.frames import LinkMessage
from sparkmirror.spark.session import SparkEngine
from sparkmirror.spark.task_runner import TaskRunner, TaskState
from tests.spark import test_task_runner
from tests.spark.test_task_runner import (
    PYTHON_TRACE,
    START,
    TASK,
    FakeSpark,
    Rig,
    wait_for,
)
from tests.wire.rigs import WAIT_SECONDS

rig = test_task_runner.rig


def test_stop_reaches_the_task_and_a_clean_end_is_reported(rig: Rig) -> None:
    link = rig.begin()
    rig.runner.stop()
    assert link.wait_for_start() == {"type": "stop"}
    link.send({"type": "numbers", "records": 1, "clean": True})
    wait_for(lambda: rig.runner.records == 1)
    link.close()
    rig.spark.outcomes.put("stopped")
    assert rig.runner.join(WAIT_SECONDS) is True
    assert rig.runner.state is TaskState.STOPPED
    assert rig.runner.restarts == 0


def test_a_task_that_does_not_commit_is_not_clean(rig: Rig) -> None:
    link = rig.begin()
    link.send({"type": "numbers", "records": 1})
    wait_for(lambda: rig.runner.records == 1)
    rig.runner.stop()
    link.close()
    rig.spark.outcomes.put("stopped")
    assert rig.runner.join(WAIT_SECONDS) is False


def test_a_task_that_has_copied_nothing_is_not_waited_for(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Spark takes its time to start it, and to give it up.
    monkeypatch.setattr(rig.spark, "cancel_task", lambda _: None)
    token = rig.spark.tokens.get(timeout=WAIT_SECONDS)
    rig.runner.stop()
    assert rig.runner.join(3600) is True
    assert caplog.messages == []
    # Should it connect after all, it gets no start message.
    link = LinkClient(open_link(token))
    with pytest.raises(KafkaError):
        link.wait_for_start()
    link.close()


@pytest.mark.parametrize(
    ("last_report", "outcome", "reason"),
    [
        pytest.param(
            {"clean": False, "problems": {"offsets-3": "produce: NOT_ENOUGH_REPLICAS"}},
            "stopped",
            "offsets-3: produce: NOT_ENOUGH_REPLICAS",
            id="what kept them",
        ),
        pytest.param(
            {"clean": False},
            "stopped",
            "the cluster that keeps them did not respond in time",
            id="nothing known",
        ),
        pytest.param({}, "stopped", "without a last report; Spark's JVM runs", id="lost"),
        pytest.param(
            {},
            RuntimeError(PYTHON_TRACE.format(error="sparkmirror.errors.RefusedError: too large")),
            "RefusedError: too large",
            id="failed",
        ),
    ],
)
def test_the_reason_for_unstored_positions_is_logged(
    rig: Rig,
    caplog: pytest.LogCaptureFixture,
    last_report: LinkMessage,
    outcome: str | Exception,
    reason: str,
) -> None:
    link = rig.begin()
    rig.runner.stop()
    link.send({"type": "numbers", "records": 1} | last_report)
    wait_for(lambda: rig.runner.records == 1)
    link.close()
    rig.spark.outcomes.put(outcome)
    assert rig.runner.join(WAIT_SECONDS) is False
    (text,) = (text for text in caplog.messages if "positions not stored" in text)
    assert text.startswith(f"[{TASK}] last positions not stored: ")
    assert text.endswith(reason)


def test_a_task_that_does_not_end_is_killed(rig: Rig) -> None:
    link = rig.begin()
    rig.runner.stop()
    assert rig.runner.join(0.05) is False
    (cancelled,) = rig.spark.cancelled
    assert cancelled.startswith(f"{TASK}#")
    link.close()


def test_a_task_that_is_stopped_before_its_start_message_gets_none(rig: Rig) -> None:
    held = threading.Event()

    def make_start_slowly() -> LinkMessage:
        assert held.wait(WAIT_SECONDS)
        return START

    rig.make_start = make_start_slowly
    link = rig.call()
    rig.runner.stop()
    held.set()
    # Its job is cancelled: what it copied would not be known to the next attempt.
    with pytest.raises(KafkaError, match="the task is stopping"):
        link.wait_for_start()
    link.close()
    assert rig.runner.join(WAIT_SECONDS) is True


def test_a_late_call_is_not_taken_for_the_same_task_of_a_later_runner(rig: Rig) -> None:
    token = rig.spark.tokens.get(timeout=WAIT_SECONDS)
    rig.runner.stop()
    rig.runner.join(WAIT_SECONDS)
    later = TaskRunner(
        cast("SparkEngine", FakeSpark()), rig.links, TASK, rig.make_start_message, print
    )
    rig.links.expect(later._job, later)
    link = LinkClient(open_link(token))
    with pytest.raises(KafkaError):
        link.wait_for_start()
    link.close()


def test_a_message_to_a_task_that_does_not_run_is_dropped(rig: Rig) -> None:
    rig.runner.send({"type": "assign"})
    link = rig.begin()
    rig.runner.send({"type": "revoke"})
    assert link.wait_for_start() == {"type": "revoke"}
    link.close()


def test_what_changes_while_the_start_message_is_made_follows_it(rig: Rig) -> None:
    change: LinkMessage = {"type": "assign", "assigned": []}

    def make_start() -> LinkMessage:
        rig.runner.send(change)  # a refresh on another thread
        return START

    rig.make_start = make_start
    link = rig.call()
    assert [link.wait_for_start(), link.wait_for_start()] == [START, change]
    link.close()
