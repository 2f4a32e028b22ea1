"""The life of a task as the worker sees it, with a real control link and no Spark."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from sparkmirror.errors import MirrorError
from sparkmirror.events import FIELD, EventKind, EventMark, event
from sparkmirror.logs.located_text import TEMPLATE, locate
from sparkmirror.logs.places import LogPlace
from sparkmirror.retry import Backoff, RetryPolicy
from sparkmirror.spark import task_runner
from sparkmirror.spark.link.client import LinkClient, open_link
from sparkmirror.spark.link.frames import LinkMessage
from sparkmirror.spark.link.server import LinkServer
from sparkmirror.spark.link.task_log import encode_log
from sparkmirror.spark.link.task_token import TaskToken
from sparkmirror.spark.session import SparkEngine
from sparkmirror.spark.task_runner import TaskRunner, TaskState, reason_of
from tests.wire.rigs import WAIT_SECONDS

TASK = "a->b|MirrorSourceConnector-0"
START: LinkMessage = {"type": "start"}
# No attempt by itself after a failure.
NEVER = Backoff(RetryPolicy.every(WAIT_SECONDS * 2))

PYTHON_TRACE = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collect.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed \
1 times, most recent failure: Lost task 0.0 in stage 3.0 (TID 3) (host executor driver): \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/venv/pyspark/worker.py", line 3306, in main
    process()
  File "/venv/sparkmirror/spark/copy_loop.py", line 12, in run
    raise RefusedError(text)
{error}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handle(PythonRunner.scala:572)
\tat java.base/java.lang.Thread.run(Thread.java:840)

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.$anonfun$abortStage$3(DAGScheduler.scala:3122)
"""


class FakeSpark:
    """Runs a task in the runner's thread, as the test scripts it."""

    master = "local[2]"
    driver_host = "127.0.0.1"
    slots = 2
    is_local = True

    def __init__(self) -> None:
        self.tokens: queue.Queue[TaskToken] = queue.Queue()
        self.outcomes: queue.Queue[str | Exception] = queue.Queue()
        self.cancelled: list[str] = []

    def run_task(self, token: TaskToken, description: str) -> str:
        self.tokens.put(token)
        outcome = self.outcomes.get(timeout=WAIT_SECONDS)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def cancel_task(self, task: str) -> None:
        self.cancelled.append(task)
        self.outcomes.put(RuntimeError("cancelled"))

    def check_alive(self) -> None:
        """It is."""

    def describe_end(self) -> str:
        return "Spark's JVM runs"


class Rig:
    """A runner, the Spark and the link under it."""

    def __init__(self) -> None:
        self.spark = FakeSpark()
        self.lent = 0.0
        self.links = LinkServer("127.0.0.1", lend=lambda: lambda: self.lent)
        self.missing: list[str] = []
        self.make_start: Callable[[], LinkMessage] = lambda: START
        self.runner = TaskRunner(
            cast("SparkEngine", self.spark),
            self.links,
            TASK,
            self.make_start_message,
            self.missing.extend,
        )

    def make_start_message(self) -> LinkMessage:
        """Called on the link's thread."""
        return self.make_start()

    def call(self) -> LinkClient:
        """What a task does first."""
        token = self.spark.tokens.get(timeout=WAIT_SECONDS)
        return LinkClient(open_link(token))

    def begin(self) -> LinkClient:
        """A task that has its start message."""
        link = self.call()
        assert link.wait_for_start() == START
        wait_for(lambda: self.runner.state is TaskState.RUNNING)
        return link

    def close(self) -> None:
        """End everything."""
        self.runner.stop()
        self.spark.outcomes.put("stopped")
        self.runner.join(WAIT_SECONDS)
        self.links.close()


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr(task_runner, "RESTARTS", RetryPolicy(0.01, 60.0))
    rig = Rig()
    rig.runner.start()
    yield rig
    rig.close()


def wait_for(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_task_is_running_when_it_has_its_start_message(rig: Rig) -> None:
    assert rig.runner.state is TaskState.UNASSIGNED
    link = rig.begin()
    link.send({"type": "numbers", "records": 5, "bytes": 70, "behind": 1})
    wait_for(lambda: rig.runner.records == 5)
    assert rig.runner.bytes == 70
    assert rig.runner.numbers["behind"] == 1
    link.close()


def test_a_token_does_not_show_its_secret(rig: Rig) -> None:
    token = rig.spark.tokens.get(timeout=WAIT_SECONDS)
    assert token == rig.links.token(token.host, token.task)
    assert token.secret not in repr(token)


def test_topics_that_a_task_misses_are_passed_on(rig: Rig) -> None:
    link = rig.begin()
    link.send({"type": "numbers", "missing_topics": ["a.t"]})
    wait_for(lambda: rig.missing == ["a.t"])
    link.close()


def test_warnings_of_a_task_are_in_the_workers_log(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    link = rig.begin()
    link.send({"type": "log", "level": 30, "text": "t-0 waits"})
    wait_for(lambda: f"[{TASK}] t-0 waits" in caplog.text)
    link.close()


def test_a_task_that_fails_is_started_again_and_its_reason_kept(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    link = rig.begin()
    link.send({"type": "numbers", "records": 5, "bytes": 70})
    wait_for(lambda: rig.runner.records == 5)
    link.close()
    rig.spark.outcomes.put(
        RuntimeError(PYTHON_TRACE.format(error="sparkmirror.errors.RefusedError: too large"))
    )
    wait_for(lambda: rig.runner.restarts == 1)
    assert "RefusedError: too large" in rig.runner.trace
    again = rig.begin()
    again.send({"type": "numbers", "records": 2, "bytes": 10})
    wait_for(lambda: rig.runner.records == 7)
    assert rig.runner.bytes == 80
    assert "FAILED: RefusedError: too large" in caplog.text
    again.close()


def test_a_task_that_ends_by_itself_is_started_again(rig: Rig) -> None:
    rig.begin().close()
    rig.spark.outcomes.put("link lost")
    rig.begin().close()
    assert rig.runner.restarts == 1


def test_a_restart_ends_a_running_task_and_starts_it_again_at_once(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.runner._backoff = NEVER
    link = rig.begin()
    rig.runner.restart()
    assert link.wait_for_start() == {"type": "stop"}
    link.close()
    rig.spark.outcomes.put("stopped")
    rig.begin().close()
    assert "starting it again" not in caplog.text


def test_a_restart_ends_the_pause_after_a_failure(rig: Rig) -> None:
    rig.begin().close()
    rig.runner._backoff = NEVER
    rig.spark.outcomes.put(RuntimeError("one"))
    wait_for(lambda: rig.runner.restarts == 1)
    rig.runner.restart()
    rig.begin().close()


@pytest.mark.parametrize("is_local", [True, False])
def test_a_task_that_spark_has_lost_may_write_until_its_lease_ends(
    rig: Rig, is_local: bool
) -> None:
    """On another machine it may only be cut off, and writes on."""
    rig.spark.is_local, rig.lent = is_local, 1.5
    link = rig.begin()
    link.ask({"type": "renew", "at": 0.0}, "lease")
    rig.runner.stop()
    rig.spark.outcomes.put(RuntimeError("executor lost"))
    assert not rig.runner.join(WAIT_SECONDS)
    assert rig.runner.is_released == is_local
    wait_for(lambda: rig.runner.is_released)
    link.close()


def test_topics_that_a_task_writes_are_taken_once(rig: Rig) -> None:
    link = rig.begin()
    link.send({"type": "numbers", "records": 1, "active_topics": ["a.t", "a.u"]})
    link.send({"type": "numbers", "records": 2, "active_topics": ["a.t"]})
    wait_for(lambda: rig.runner.records == 2)
    assert rig.runner.take_topics() == {"a.t", "a.u"}
    assert rig.runner.take_topics() == set()
    assert "active_topics" not in rig.runner.numbers
    link.close()


def test_spark_may_run_the_task_again_by_itself(rig: Rig) -> None:
    token = rig.spark.tokens.get(timeout=WAIT_SECONDS)
    links = []
    for _ in range(2):
        link = LinkClient(open_link(token))
        assert link.wait_for_start() == START
        links.append(link)
    links[1].send({"type": "numbers", "records": 1})
    wait_for(lambda: rig.runner.records == 1)
    assert rig.runner.state is TaskState.RUNNING
    for link in links:
        link.close()


def test_a_task_without_a_start_message_gets_the_reason(rig: Rig) -> None:
    def fail() -> LinkMessage:
        raise MirrorError("the offsets topic cannot be read")

    rig.make_start = fail
    link = rig.call()
    with pytest.raises(MirrorError, match="the offsets topic cannot be read"):
        link.wait_for_start()
    link.close()


def test_a_task_without_a_slot_is_logged_once(
    rig: Rig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_runner, "SLOT_SECONDS", 0.0)
    rig.spark.tokens.get(timeout=WAIT_SECONDS)
    for _ in range(3):
        rig.runner.check_slot(tasks_wanted=5)
    assert caplog.text.count("UNASSIGNED: Spark (local[2]) has 2 slots for 5 tasks, 3 missing") == 1


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        pytest.param("", "no reason given", id="nothing"),
        pytest.param("Spark is gone", "Spark is gone", id="one line"),
        pytest.param(
            PYTHON_TRACE.format(error="sparkmirror.errors.RefusedError: offsets 1 to 1 of t-0: no"),
            "RefusedError: offsets 1 to 1 of t-0: no",
            id="an error of ours",
        ),
        pytest.param(
            PYTHON_TRACE.format(error="sparkmirror.errors.KafkaError: one\ntwo"),
            "KafkaError: one two",
            id="an error of several lines",
        ),
        pytest.param(
            PYTHON_TRACE.format(error="KeyError: 'topic'"), "KeyError: 'topic'", id="a bug"
        ),
        pytest.param(
            "An error occurred while calling o1.collect.\n"
            ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage "
            "0.0 failed 1 times, most recent failure: Lost task 0.0 in stage 0.0: ExecutorLost "
            "(executor 1 exited)\nDriver stacktrace:\n\tat org.apache.spark",
            "Lost task 0.0 in stage 0.0: ExecutorLost (executor 1 exited)",
            id="a lost executor",
        ),
    ],
)
def test_the_reason_in_a_trace(trace: str, expected: str) -> None:
    assert reason_of(trace) == expected


def test_a_task_that_recovers_is_logged(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="sparkmirror")
    rig.begin().close()
    assert caplog.messages == []
    rig.spark.outcomes.put(RuntimeError("no more memory"))
    rig.begin().close()
    wait_for(lambda: len(caplog.messages) > 1)
    failed, again = caplog.messages[:2]
    assert f"[{TASK}] FAILED: no more memory; starting it again" in failed
    assert again == f"[{TASK}] RUNNING again, after 1 restarts"


def test_lines_of_an_executor_look_like_the_workers(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    link = rig.begin()
    text = "t-0 waits: no leader"
    link.send({"type": "log", "level": 30, "text": text, "template": "%s waits: %s", "logger": "x"})
    wait_for(lambda: bool(caplog.records))
    link.send({"type": "log", "level": 30, "text": "of an older version"})
    wait_for(lambda: len(caplog.records) > 1)
    for record, found in zip(caplog.records, (text, "of an older version"), strict=True):
        assert locate(record) == (LogPlace("MirrorSourceConnector", 0, "a->b"), found)
    assert caplog.records[0].__dict__[TEMPLATE] == "%s waits: %s"
    link.close()


def test_figures_of_partitions_are_kept_and_added_up(rig: Rig) -> None:
    link = rig.begin()
    row = ["t", "a.t", 0, 5, 9, None, 5, 70, None, None, 0, 0, ""]
    link.send({"type": "figures", "is_first": True, "rows": [row]})
    wait_for(lambda: bool(rig.runner.figures().partitions))
    (found,) = rig.runner.figures().partitions
    assert (found.source, found.target, found.behind) == (("t", 0), ("a.t", 0), 4)
    link.close()
    rig.spark.outcomes.put("link lost")
    again = rig.begin()
    again.send({"type": "figures", "is_first": True, "rows": [row]})
    wait_for(lambda: rig.runner.figures().is_complete)
    assert rig.runner.figures().partitions[0].records == 10
    again.close()


def test_an_event_of_a_task_is_one_of_its_connector(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    link = rig.begin()
    made = logging.LogRecord("x", logging.WARNING, "x", 1, "t-0: gone", (), None)
    mark = event(EventKind.LOST, topic="t", partition=0, key="waiting")
    made.__dict__.update(mark)
    link.send(encode_log(made))
    wait_for(lambda: bool(caplog.records))
    (record,) = [each for each in caplog.records if "gone" in each.message]
    assert record.message == f"[{TASK}] t-0: gone"
    found = record.__dict__[FIELD]
    assert found == EventMark(
        EventKind.LOST,
        flow="a->b",
        connector="MirrorSourceConnector",
        task="0",
        topic="t",
        partition=0,
        key=f"{TASK} waiting",
    )
    link.close()
