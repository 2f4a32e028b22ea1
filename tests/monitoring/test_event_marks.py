"""Which log lines are events: of connectors, of partitions that lose records or wait."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.connect.entities import State, TargetState
from sparkmirror.connect.warn_once import WarnOnce
from sparkmirror.errors import KafkaError, TransportError
from sparkmirror.events import EventKind
from sparkmirror.monitoring.event_log import Event, EventLog
from sparkmirror.spark.copy import partition_problems
from sparkmirror.spark.copy.partition_problems import PartitionProblems
from sparkmirror.types import TopicPartition
from tests.connect.connector_fakes import FakeRunning
from tests.connect.herder_fakes import CONFIG, NAME, FakeWorker

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def events() -> Iterator[EventLog]:
    handler, logger = EventLog(), logging.getLogger("sparkmirror")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


def kinds(events: EventLog) -> list[EventKind]:
    return [each.kind for each in events.events()]


def test_the_life_of_a_connector_is_told_in_events(events: EventLog, tmp_path: Path) -> None:
    worker = FakeWorker(tmp_path)
    failures = [TransportError("no broker")]

    def fail_once(running: FakeRunning) -> None:
        if failures:
            running.failures["start"] = failures.pop()

    worker.prepare = fail_once
    worker.start()
    try:
        worker.herder.create(NAME, CONFIG, None)
        worker.wait_for_states(State.RUNNING, State.RUNNING)
        worker.herder.set_target_state(NAME, TargetState.PAUSED)
        worker.wait_for_states(State.PAUSED, State.PAUSED)
        worker.herder.set_target_state(NAME, TargetState.STARTED)
        worker.wait_for_states(State.RUNNING, State.RUNNING)
    finally:
        worker.stop()
    found = [each for each in events.events() if each.connector == NAME]
    assert [each.kind for each in found] == [
        EventKind.FAILED,
        EventKind.STARTED,
        EventKind.ACTION,
        EventKind.ACTION,
        EventKind.STARTED,
    ]
    failed: Event = found[0]
    assert "no broker" in failed.text
    assert failed.lasts
    assert failed.ended_ms is not None
    assert "paused" in found[2].text


def test_partitions_that_wait_are_stuck_until_none_waits(
    events: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_problems, "PASSING_SECONDS", 0.0)
    problems = PartitionProblems(time.monotonic)
    problems.note(T0, KafkaError("no leader"))
    problems.note(T1, KafkaError("no leader"))
    time.sleep(0.01)
    problems.log_lasting()
    assert kinds(events) == [EventKind.STUCK] * 2
    assert [each.partition for each in events.events()] == [0, 1]
    problems.pop(T0)
    problems.log_lasting()
    problems.log_lasting()
    assert [each.ended_ms for each in events.events()[:2]] == [None, None]
    problems.pop(T1)
    problems.log_lasting()
    problems.log_lasting()
    assert kinds(events)[2:] == [EventKind.RECOVERED] * 2
    assert None not in [each.ended_ms for each in events.events()[:2]]


def test_a_topic_that_cannot_be_mirrored_is_blocked(events: EventLog) -> None:
    said = WarnOnce("a->b", EventKind.BLOCKED)
    said.report({"a.t": "'a.t' is not created: denied"})
    said.report({"a.t": "'a.t' is not created: denied"})
    WarnOnce("a->b").report({"x": "no event"})
    (found,) = events.events()
    assert (found.kind, found.flow, found.count) == (EventKind.BLOCKED, "a->b", 1)
