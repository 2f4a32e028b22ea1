"""One task's life, with Spark and the control link played by the test."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from sparkmirror.errors import MirrorError
from sparkmirror.retry import RetryPolicy
from sparkmirror.spark import task_runner
from sparkmirror.spark.link.frames import LinkMessage
from sparkmirror.spark.link.task_token import TaskToken
from sparkmirror.spark.task_runner import TaskRunner, TaskState
from tests.clusters import wait_for

TASK = "a->b|MirrorSourceConnector-0"


def without_run(job: str) -> str:
    """The task that a Spark job runs."""
    return job.rpartition("#")[0]


JAVA = "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
FRAMES = "\tat org.apache.spark.rdd.RDD.collect(RDD.scala:1122)\n"
PYTHON = (
    f"{JAVA}: org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was "
    "thrown from the Python worker: Traceback (most recent call last):\n"
    '  File "worker.py", line 4327, in invoke_udf\n    run_process()\n'
)


class Spark:
    """An engine whose jobs end on demand."""

    driver_host = "10.1.2.3"
    master = "local[1]"

    def __init__(self) -> None:
        self.slots = 1
        self.submitted: list[tuple[TaskToken, str]] = []
        self.cancelled: list[str] = []
        self.gone = False
        self._ends: queue.Queue[str | Exception] = queue.Queue()

    def run_task(self, token: TaskToken, description: str) -> str:
        self.submitted.append((token, description))
        ended = self._ends.get()
        if isinstance(ended, Exception):
            raise ended
        return ended

    def cancel_task(self, task: str) -> None:
        self.cancelled.append(task)
        self.end(RuntimeError("cancelled"))

    def check_alive(self) -> None:
        if self.gone:
            raise MirrorError("Spark is gone")

    def describe_end(self) -> str:
        return "Spark's JVM runs"

    def end(self, how: str | Exception) -> None:
        self._ends.put(how)


class Links:
    """A link server to which no task connects."""

    released = False

    def token(self, host: str, task: str) -> TaskToken:
        return TaskToken(host, 4711, "secret", "fingerprint", task)

    def expect(self, task: str, peer: object, lease: object = None) -> None:
        """No task will connect."""

    def forget(self, task: str) -> None:
        """There is none."""

    def has_released(self, task: str) -> bool:
        return self.released


class Clock:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class RecordingConnection:
    """A link that remembers what was sent to the task."""

    def __init__(self, was_silent: bool = False) -> None:
        self.messages: list[LinkMessage] = []
        self.was_silent = was_silent
        self.silent_seconds = 0.0

    def send(self, message: LinkMessage) -> None:
        self.messages.append(message)


@pytest.fixture
def spark() -> Spark:
    return Spark()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def links() -> Links:
    return Links()


def make_runner(spark: Spark, links: Links, clock: Clock) -> Any:
    return TaskRunner(
        spark,  # type: ignore[arg-type]
        links,  # type: ignore[arg-type]
        TASK,
        lambda: {"type": "start"},
        lambda _topics: None,
        clock=clock,
    )


@pytest.fixture
def runner(
    spark: Spark, links: Links, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TaskRunner]:
    monkeypatch.setattr(task_runner, "RESTARTS", RetryPolicy(0.01, 60.0, jitter=0.0))
    made = make_runner(spark, links, clock)
    made.start()
    wait_for(lambda: spark.submitted, within=10)
    yield made
    made.stop()
    spark.end("stopped")
    made.join(10.0)


def report(runner: TaskRunner, link: Any, **numbers: object) -> None:
    runner.on_message(link, {"type": "numbers", **numbers})


def hello(runner: TaskRunner, **how: bool) -> Any:
    link: Any = RecordingConnection(**how)
    runner.on_hello(link)
    return link


def has_submitted(spark: Spark, count: int) -> bool:
    return len(spark.submitted) == count


def test_job_carries_the_address_and_reads_well(runner: TaskRunner, spark: Spark) -> None:
    token, description = spark.submitted[0]
    assert (token.host, token.port, without_run(token.task)) == ("10.1.2.3", 4711, TASK)
    assert description == "Copy a->b (MirrorSourceConnector-0)"
    assert token.secret not in repr(token)


def test_task_runs_from_its_call_to_the_end_of_its_link(runner: TaskRunner) -> None:
    states = [runner.state]
    link = hello(runner)
    assert link.messages == [{"type": "start"}]
    states.append(runner.state)
    runner.on_gone(link)
    states.append(runner.state)
    assert states == [TaskState.UNASSIGNED, TaskState.RUNNING, TaskState.UNASSIGNED]


def test_failed_task_keeps_its_trace_and_starts_again(
    runner: TaskRunner, spark: Spark, caplog: pytest.LogCaptureFixture
) -> None:
    link = hello(runner)
    trace = f"{PYTHON}sparkmirror.errors.RefusedError: offsets 1 to 2\n SQLSTATE: 38000\n{FRAMES}"
    spark.end(RuntimeError(trace))
    wait_for(lambda: len(spark.submitted) == 2, within=10)
    # The link's end is noticed by another thread, sometimes later.
    runner.on_gone(link)
    assert runner.trace == trace
    assert runner.restarts == 1
    assert f"[{TASK}] FAILED: RefusedError: offsets 1 to 2; starting it again" in caplog.text
    hello(runner)
    assert runner.state is TaskState.RUNNING
    assert runner.trace == trace


def test_end_of_the_link_does_not_hide_a_failure(runner: TaskRunner, spark: Spark) -> None:
    link = hello(runner)
    runner.state = TaskState.FAILED
    runner.on_gone(link)
    assert runner.state is TaskState.FAILED


def test_wait_grows_with_every_failure_in_a_row(
    runner: TaskRunner, spark: Spark, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(4):
        before = len(spark.submitted)
        spark.end(RuntimeError("no"))
        wait_for(partial(has_submitted, spark, before + 1), within=10)
    waits = [record.args[2] for record in caplog.records if record.args]  # type: ignore[index]
    assert waits == pytest.approx([0.01, 0.02, 0.04, 0.08])


def test_wait_starts_again_after_a_healthy_time(
    runner: TaskRunner, spark: Spark, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for healthy_seconds in (0, 0, 59, 60):
        before = len(spark.submitted)
        hello(runner)
        clock.now += healthy_seconds
        spark.end(RuntimeError("no"))
        wait_for(partial(has_submitted, spark, before + 1), within=10)
    waits = [record.args[2] for record in caplog.records if record.args]  # type: ignore[index]
    assert waits == pytest.approx([0.01, 0.02, 0.04, 0.01])


def test_totals_continue_over_attempts(runner: TaskRunner) -> None:
    first = hello(runner)
    report(runner, first, records=10, bytes=100, lost_records=1, skipped_records=2, behind=5)
    second = hello(runner)  # before the end of the first was noticed
    runner.on_gone(first)
    assert runner.state is TaskState.RUNNING
    report(runner, second, records=3, bytes=30, lost_records=0, skipped_records=1, behind=4)
    assert (runner.records, runner.bytes) == (13, 130)
    assert runner.numbers["lost_records"] == 1
    assert runner.numbers["skipped_records"] == 3
    assert runner.numbers["behind"] == 4


def test_messages_of_an_older_attempt_are_ignored(runner: TaskRunner) -> None:
    older = hello(runner)
    newer = hello(runner)
    report(runner, older, records=99)
    assert runner.records == 0
    report(runner, newer, records=1)
    assert runner.records == 1


def test_silent_task_is_killed_and_starts_again(runner: TaskRunner, spark: Spark) -> None:
    link = hello(runner, was_silent=True)
    runner.on_gone(link)
    assert [without_run(each) for each in spark.cancelled] == [TASK]
    wait_for(lambda: len(spark.submitted) == 2, within=10)


@pytest.mark.parametrize(
    ("clean", "expected"),
    [
        pytest.param({"clean": True}, True, id="committed"),
        pytest.param({"clean": False}, False, id="not committed"),
        pytest.param({}, False, id="not reported"),
    ],
)
def test_stop_is_clean_when_the_task_reports_it(
    runner: TaskRunner, spark: Spark, clean: dict[str, bool], expected: bool
) -> None:
    link = hello(runner)
    runner.stop()
    assert link.messages[-1] == {"type": "stop"}
    report(runner, link, records=1, **clean)
    runner.on_gone(link)
    spark.end("stopped")
    assert runner.join(10.0) is expected
    assert runner.state is TaskState.STOPPED
    assert spark.cancelled == []


def test_task_without_a_slot_is_cancelled_and_had_nothing_to_commit(
    runner: TaskRunner, spark: Spark
) -> None:
    runner.stop()
    assert [without_run(each) for each in spark.cancelled] == [TASK]
    assert runner.join(10.0) is True


def test_task_that_does_not_end_is_killed(
    runner: TaskRunner, spark: Spark, caplog: pytest.LogCaptureFixture
) -> None:
    hello(runner)
    runner.stop()
    assert runner.join(0.1) is False
    assert [without_run(each) for each in spark.cancelled] == [TASK]
    assert "did not stop in time; killing it" in caplog.text


@pytest.mark.parametrize(
    ("silent_seconds", "released", "expected"),
    [(3.5, True, True), (3.5, False, False), (2.5, True, False)],
    ids=["silent beyond its lease", "its lease lasts", "it reports"],
)
def test_task_is_cut_off_when_it_is_silent_beyond_its_lease(
    runner: TaskRunner, links: Links, silent_seconds: float, released: bool, expected: bool
) -> None:
    link = hello(runner)
    link.silent_seconds, links.released = silent_seconds, released
    assert runner.is_cut_off is expected


def test_end_of_a_task_that_is_cut_off_is_not_awaited(
    runner: TaskRunner, spark: Spark, links: Links
) -> None:
    link = hello(runner)
    link.silent_seconds, links.released = 3.5, True
    runner.stop()
    assert runner.join(60.0) is False
    assert [without_run(each) for each in spark.cancelled] == [TASK]


def test_task_that_was_never_started_has_nothing_to_end(
    spark: Spark, links: Links, clock: Clock
) -> None:
    runner = make_runner(spark, links, clock)
    runner.stop()
    assert runner.join(60.0) is True


def test_task_that_connects_while_stopping_gets_no_start_message(runner: TaskRunner) -> None:
    runner.stop()
    with pytest.raises(MirrorError, match="the task is stopping"):
        hello(runner)


def test_missing_slots_are_counted_once(
    runner: TaskRunner, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    clock.now += 9
    runner.check_slot(3)
    assert caplog.text == ""  # too early
    clock.now += 1
    runner.check_slot(3)
    runner.check_slot(3)
    text = "Spark (local[1]) has 1 slots for 3 tasks, 2 missing; add executors or cores"
    assert caplog.messages == [f"[{TASK}] UNASSIGNED: {text}, or lower tasks.max"]


def test_slow_start_is_not_a_missing_slot(
    runner: TaskRunner, spark: Spark, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    spark.slots = 7
    clock.now += 60
    runner.check_slot(3)
    assert caplog.messages == []
    clock.now += 1
    runner.check_slot(3)
    assert "has 7 slots, enough for all" in caplog.messages[0]


def test_running_task_lacks_no_slot(
    runner: TaskRunner, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    hello(runner)
    clock.now += 1000
    runner.check_slot(3)
    assert caplog.messages == []


def test_spark_that_is_gone_ends_the_worker(runner: TaskRunner, spark: Spark) -> None:
    spark.gone = True
    with pytest.raises(MirrorError, match="Spark is gone"):
        runner.check_slot(1)
