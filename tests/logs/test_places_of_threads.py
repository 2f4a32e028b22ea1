"""The threads of connectors and tasks write lines that begin with connector and task."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from sparkmirror.cli.flow_display import SUMMARY_SECONDS, FlowDisplay, FlowLog
from sparkmirror.connect.scheduler import Scheduler
from sparkmirror.connect.thread_task import ThreadTask
from sparkmirror.connect.warn_once import WarnOnce
from sparkmirror.errors import KafkaError
from sparkmirror.logs.log_format import LineFormatter
from sparkmirror.logs.places import LogPlace, at_place, place_of
from tests.clusters import wait_for
from tests.connect.fakes import Connector

SETTINGS = {"source.cluster.alias": "a", "target.cluster.alias": "b"}


class Lines(logging.Handler):
    """Formats as the real handler does, on the thread that logs."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.setFormatter(LineFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(self.format(record).split(" ", 2)[2])

    def wait_for(self, text: str) -> None:
        wait_for(lambda: text in self.found, within=10, describe=lambda: f"{text} in {self.found}")


@pytest.fixture
def lines() -> Iterator[Lines]:
    logger, handler = logging.getLogger("sparkmirror"), Lines()
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


def fail(_: object = None) -> None:
    raise KafkaError("no leader")


@pytest.mark.parametrize(
    "label", ["a->b|mirror-3", "mirror-3"], ids=["dedicated mode", "Connect mode"]
)
def test_a_task(lines: Lines, label: str) -> None:
    place = place_of("mirror", SETTINGS, 3)
    task = ThreadTask(label, {3: {}}, fail, lambda: True, 1.0, place=place)  # type: ignore[arg-type]
    task.start()
    try:
        lines.wait_for("ERROR [mirror|task-3] a->b: task failed: no leader")
    finally:
        task.stop()
        task.join(10)


def test_jobs_of_a_connector(lines: Lines) -> None:
    with at_place(place_of("mirror", SETTINGS)):
        scheduler = Scheduler("a->b")
    scheduler.repeat("looking for topics", 10, fail)
    scheduler.start()
    try:
        lines.wait_for("WARNING [mirror|worker] a->b: looking for topics failed: no leader")
    finally:
        scheduler.stop()
        scheduler.join(10)


def test_what_a_library_logs_in_such_a_thread(lines: Lines) -> None:
    def run() -> None:
        logging.getLogger("sparkmirror.wire").warning("broker 1 is away")

    with at_place(LogPlace("mirror", 0, "a->b")):
        scheduler = Scheduler("x")
    scheduler.repeat("x", 10, run)
    scheduler.start()
    lines.wait_for("WARNING [mirror|task-0] a->b: broker 1 is away")
    scheduler.stop()
    scheduler.join(10)


def test_warnings_of_a_flow(lines: Lines) -> None:
    with at_place(place_of("a->b.MirrorSourceConnector", SETTINGS)):
        WarnOnce("a->b").report({"t": "topic 't' is away"})
    assert lines.found == ["WARNING [a->b.MirrorSourceConnector|worker] topic 't' is away"]


class Failing:
    """A task for the display."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.last_error = "cluster 'b' cannot be reached"


@pytest.fixture
def flow(tmp_path_factory: pytest.TempPathFactory) -> Connector:
    connector = Connector(tmp_path_factory.mktemp("flow"), {"a->b.topics": "t"})
    connector.source.add("t")
    connector.refresh()
    connector.fake_tasks[0].numbers = {"behind": 0}
    return connector


FIGURES = "0 records/s, 0.0 MB/s, 0 records behind, 1 of 1 tasks running"


def test_the_summary_of_dedicated_mode(lines: Lines, flow: Connector) -> None:
    lines.found.clear()
    times = iter((0.0, SUMMARY_SECONDS + 1))
    tasks = [Failing("a->b|MirrorHeartbeatConnector-0")]
    FlowDisplay([flow], False, lambda: next(times), lambda: tasks).update()
    assert lines.found == [
        f"INFO [MirrorSourceConnector|worker] a->b: {FIGURES}",
        "INFO [MirrorHeartbeatConnector|task-0] a->b: cluster 'b' cannot be reached",
    ]


def test_the_summary_of_a_worker(lines: Lines, flow: Connector) -> None:
    lines.found.clear()
    times = iter((0.0, SUMMARY_SECONDS + 1))
    FlowLog(lambda: next(times)).update({"msc": flow}, {"hbc-0": Failing("hbc-0")})
    assert lines.found == [
        f"INFO [msc|worker] a->b: {FIGURES}",
        "INFO [hbc|task-0] cluster 'b' cannot be reached",
    ]


def test_no_thread_is_left() -> None:
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith(("ticker ", "task of mirror"))]
