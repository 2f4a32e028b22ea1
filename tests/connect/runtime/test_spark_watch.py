"""What the herder learns of its worker's Spark: when it starts, slots, its end."""

from __future__ import annotations

from typing import cast
from unittest.mock import Mock

import pytest

from sparkmirror.connect.runtime.spark_watch import CUT_OFF_SECONDS, LOST_SECONDS, SparkWatch
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.storage.config_records import ConfigSnapshot
from sparkmirror.errors import MirrorError
from sparkmirror.spark.task_runner import TaskRunner
from tests.connect.herder_fakes import FakeSpark

MIRROR = "org.apache.kafka.connect.mirror."


class Rig:
    """A clock and a Spark of the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("time.monotonic", lambda: self.now)
        self.spark = FakeSpark()
        self.watch = SparkWatch(cast("Worker", self.spark))

    def slots_after(self, seconds: float, slots: int, *cut_off: bool) -> int:
        """`cut_off`: of each task, whether it cannot be reached."""
        self.now += seconds
        self.spark.slots = slots
        tasks = [Mock(runner=Mock(spec=TaskRunner, is_cut_off=each)) for each in cut_off]
        self.watch.look(tasks)
        return self.watch.slots


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(monkeypatch)


def test_slots_that_come_count_at_once_and_lost_ones_after_a_while(rig: Rig) -> None:
    assert rig.slots_after(1, 300) == 300
    assert rig.slots_after(1, 4) == 300
    assert rig.slots_after(LOST_SECONDS - 1, 4) == 300
    assert rig.slots_after(1, 4) == 4


def test_an_executor_that_comes_back_in_time_was_never_lost(rig: Rig) -> None:
    rig.slots_after(1, 8)
    rig.slots_after(LOST_SECONDS, 4)
    assert rig.slots_after(1, 256) == 256
    assert rig.slots_after(LOST_SECONDS, 4) == 256


def test_executors_that_cannot_be_reached_have_no_slots_until_spark_misses_them(rig: Rig) -> None:
    assert rig.slots_after(1, 8, False, False, False, False) == 256
    rig.slots_after(LOST_SECONDS, 8)
    assert rig.slots_after(LOST_SECONDS, 8, False, False, True, True) == 4
    assert rig.slots_after(1, 8, True, True) == 0
    assert rig.slots_after(CUT_OFF_SECONDS - 1, 8) == 0  # its tasks have moved
    assert rig.slots_after(1, 8) == 8


@pytest.mark.parametrize(("kind", "begun"), [("Source", 1), ("Heartbeat", 0)])
def test_spark_starts_for_tasks_that_copy(rig: Rig, kind: str, begun: int) -> None:
    tasks = {"c": [{"task.class": f"{MIRROR}Mirror{kind}Task"}], "d": []}
    rig.watch.warm_up(ConfigSnapshot({}, tasks, {}, {}, 0))
    assert rig.spark.begun == begun


def test_a_spark_that_has_ended_is_a_problem_of_the_worker(rig: Rig) -> None:
    rig.spark.failure = MirrorError("Spark is gone")
    for _ in range(2):
        rig.slots_after(1, 0)
    assert rig.watch.problem == "Spark is gone"
