"""The lag of partitions: of tasks that run here, of those that run nowhere, of whole flows."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.connect.entities import State, TargetState
from sparkmirror.connect.storage.backing_stores import StoredStatus
from sparkmirror.monitoring.lag import lag_model
from sparkmirror.monitoring.lag.lag_model import LagModel
from sparkmirror.monitoring.lag.partition_lag import (
    NoLoss,
    PartitionLag,
    PartitionState,
    Retention,
)
from sparkmirror.monitoring.lag.source_probe import Probe
from sparkmirror.spark.figures import LATENCY_BOUNDS_MS, TaskFigures, Window
from sparkmirror.spark.task_runner import TaskState
from sparkmirror.types import TopicPartition
from tests.monitoring.lag.fakes import NAME, T0, T1, Clock, World, row

KEY = ("", NAME)


class Rig:
    """A model whose thread the test plays."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.world = World(folder)
        self.model = LagModel(lambda: [self.world.group], self.clock, self.clock)
        self.probe = self.model._probe

    @property
    def now_ms(self) -> int:
        return int(self.clock.now * 1000)

    def found(self, tp: TopicPartition = T0, **values: int | str) -> None:
        """What a look at the source has found."""
        probe = Probe(self.now_ms, **values)  # type: ignore[arg-type]
        self.probe._found = {**self.probe._found, (KEY, tp): probe}

    def lags(self) -> dict[TopicPartition, PartitionLag]:
        self.clock.now += lag_model.KEEP_SECONDS
        return {lag.source: lag for lag in self.model.partitions()}


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_a_running_task_tells_the_lag_of_its_partitions(rig: Rig) -> None:
    (runner,) = rig.world.run("t-0,t-1")
    rig.clock.now += 1
    runner.report(
        row(T0, position=90, end_offset=100, oldest_ms=rig.now_ms - 4000, records=90, bytes=9000,
            latency=Window(1, 1, 1, 9, 9), lost_records=2),
        row(T1, position=5, end_offset=5, records=5, bytes=50),
        at=rig.clock.now + 1,
    )  # fmt: skip
    found = rig.lags()
    assert found.keys() == {T0, T1}
    lag = found[T0]
    assert (lag.flow, lag.connector, lag.task, lag.target) == ("a->b", NAME, 0, ("a.t", 0))
    assert (lag.position, lag.end_offset, lag.records_behind, lag.bytes_behind) == (
        90,
        100,
        10,
        1000,
    )
    assert lag.seconds_behind == pytest.approx(5.0)
    assert (lag.state, lag.is_running, lag.problem) == (PartitionState.LIVE, True, "")
    assert (lag.records, lag.lost_records, lag.latency.count) == (90, 2, 9)
    assert (lag.seconds_until_loss, lag.no_loss) == (None, NoLoss.UNKNOWN)
    lag = found[T1]
    assert (lag.records_behind, lag.seconds_behind, lag.bytes_behind) == (0, 0.0, 0)
    assert (lag.state, lag.oldest_ms) == (PartitionState.IDLE, None)


def test_ages_are_those_of_the_report_until_the_task_is_silent(rig: Rig) -> None:
    (runner,) = rig.world.run("t-0")
    runner.report(row(T0, position=1, end_offset=2, oldest_ms=rig.now_ms), at=rig.clock.now + 1)
    rig.clock.now += 1.5
    assert rig.lags()[T0].seconds_behind == pytest.approx(1.0)
    rig.clock.now += 10
    assert rig.lags()[T0].seconds_behind == pytest.approx(13.5)


def test_of_a_blocked_partition_the_source_tells_the_end(rig: Rig) -> None:
    (runner,) = rig.world.run("t-0")
    oldest = rig.now_ms - 60_000
    blocked = row(T0, position=5, oldest_ms=oldest, problem="no leader", records=5, bytes=50)
    runner.report(blocked, at=rig.clock.now)
    lag = rig.lags()[T0]
    assert (lag.state, lag.problem) == (PartitionState.STUCK, "no leader")
    assert (lag.records_behind, lag.bytes_behind) == (None, None)
    assert lag.seconds_behind == pytest.approx(60, abs=2)
    rig.found(start=0, end=25)
    lag = rig.lags()[T0]
    assert (lag.position, lag.records_behind, lag.bytes_behind) == (5, 20, 200)


def test_a_failed_task_stands_where_its_position_is_stored(rig: Rig) -> None:
    (runner,) = rig.world.run("t-0")
    runner.report(row(T0, position=9, end_offset=9, records=9), at=rig.clock.now)
    runner.state, runner.has_failed = TaskState.FAILED, True
    runner.trace = "sparkmirror.errors.RefusedError: too large"
    lag = rig.lags()[T0]
    assert (lag.state, lag.is_running) == (PartitionState.FAILED, False)
    assert "too large" in lag.problem
    assert (lag.position, lag.end_offset, lag.records_behind, lag.records) == (9, None, None, 9)
    rig.found(position=7, start=0, end=12, oldest_ms=rig.now_ms - 30_000)
    lag = rig.lags()[T0]
    assert (lag.position, lag.records_behind) == (7, 5)
    assert lag.seconds_behind == pytest.approx(30, abs=5)


def test_a_task_that_waits_for_spark_is_stuck(rig: Rig) -> None:
    (runner,) = rig.world.run("t-0")
    runner.state = TaskState.UNASSIGNED
    lag = rig.lags()[T0]
    assert (lag.state, lag.is_running) == (PartitionState.STUCK, False)
    assert "waits for Spark" in lag.problem


def test_a_paused_connector_has_a_lag_that_grows(rig: Rig) -> None:
    rig.world.run("t-0")
    rig.world.want(TargetState.PAUSED)
    lag = rig.lags()[T0]
    assert (lag.state, lag.records_behind, lag.seconds_behind) == (
        PartitionState.PAUSED,
        None,
        None,
    )
    assert (lag.target, lag.task) == (("a.t", 0), 0)
    rig.found(position=5, start=0, end=25, oldest_ms=rig.now_ms - 100_000)
    rig.probe._retention = {(KEY, "t"): Retention("delete", 200_000)}
    lag = rig.lags()[T0]
    assert lag.records_behind == 20
    assert lag.seconds_behind == pytest.approx(100, abs=5)
    assert lag.seconds_until_loss == pytest.approx(100, abs=5)
    rig.clock.now += 50
    later = rig.lags()[T0]
    assert later.seconds_behind == pytest.approx(150, abs=5)
    assert later.seconds_until_loss == pytest.approx(50, abs=5)


def test_what_retention_has_deleted_is_not_behind_but_lost(rig: Rig) -> None:
    rig.world.assign("t-0")
    rig.world.want(TargetState.PAUSED)
    rig.found(position=5, start=20, end=25, oldest_ms=rig.now_ms)
    assert rig.lags()[T0].records_behind == 5


def test_a_source_that_cannot_be_reached_is_the_problem_of_a_paused_partition(rig: Rig) -> None:
    rig.world.assign("t-0")
    rig.world.want(TargetState.PAUSED)
    rig.found(position=5, problem="no response within 5 s")
    lag = rig.lags()[T0]
    assert (lag.state, lag.problem) == (PartitionState.PAUSED, "no response within 5 s")
    assert lag.records_behind is None


def test_a_stopped_connector_has_the_partitions_of_its_positions(rig: Rig) -> None:
    rig.world.run("t-0")
    rig.world.want(TargetState.STOPPED)
    assert rig.lags() == {}
    rig.probe._positions = {KEY: (0.0, {T0: 5, T1: 6})}
    rig.found(T0, position=5, start=0, end=7)
    found = rig.lags()
    assert found.keys() == {T0, T1}
    assert (found[T0].state, found[T0].task) == (PartitionState.PAUSED, -1)
    assert found[T0].records_behind == 2


def test_tasks_of_other_workers_are_left_to_them(rig: Rig) -> None:
    (runner, _) = rig.world.run("t-0", "t-1")
    rig.world.loop.here[NAME] = rig.world.loop.here[NAME][:1]
    runner.report(row(T0), at=rig.clock.now)
    rig.world.loop.elsewhere[NAME, 1] = "http://worker-2:8083/"
    assert rig.lags().keys() == {T0}
    # Its worker is gone, and nobody has the task yet.
    rig.world.loop.elsewhere.clear()
    lag = rig.lags()[T1]
    assert lag.state is PartitionState.STUCK
    assert "assigned to no worker" in lag.problem
    rig.world.statuses.put_task(NAME, 1, StoredStatus(State.FAILED, "worker-2:8083", 1))
    assert rig.lags()[T1].state is PartitionState.FAILED
    # Only the leader can know.
    rig.world.loop.is_leader = False
    assert rig.lags().keys() == {T0}


def test_a_deleted_connector_has_no_lag(rig: Rig) -> None:
    rig.world.run("t-0")
    assert rig.lags()
    rig.world.configs.delete_connector(NAME)
    rig.world.loop.here.clear()
    assert rig.lags() == {}
    assert rig.model.flows() == []


def test_settings_that_cannot_be_used_hide_nothing_else(rig: Rig) -> None:
    (runner,) = rig.world.run("t-0")
    runner.report(row(T0, position=1, end_offset=1), at=rig.clock.now)
    rig.world.configs.put_connector(NAME, {**rig.world.config, "tasks.max": "many"}, None)
    assert rig.lags()[T0].flow == "a->b"


def test_new_partitions_are_those_of_the_report(rig: Rig) -> None:
    """A task may have left a partition that its settings still name, and the other way round."""
    (runner,) = rig.world.run("t-0")
    assert rig.lags().keys() == {T0}  # nothing is reported yet
    runner.report(row(T1), at=rig.clock.now)
    assert rig.lags().keys() == {T1}


def test_the_answer_is_kept_for_a_second(rig: Rig) -> None:
    (runner,) = rig.world.run("t-0")
    runner.report(row(T0, records=1), at=rig.clock.now)
    assert rig.lags()[T0].records == 1
    runner.report(row(T0, records=2), at=rig.clock.now)
    assert rig.model.partitions()[0].records == 1
    assert rig.lags()[T0].records == 2


def test_a_flow_is_as_bad_as_its_worst_partition(rig: Rig) -> None:
    first, second = rig.world.run("t-0", "t-1,u-0")
    u0 = TopicPartition("u", 0)
    old, older = rig.now_ms - 30_000, rig.now_ms - 90_000
    rig.probe._retention = {(KEY, "t"): Retention("delete", 100_000)}
    first.report(
        row(T0, position=0, end_offset=7, oldest_ms=old, records=3, bytes=30), at=rig.clock.now
    )
    second.report(
        row(T1, position=1, end_offset=3, oldest_ms=older, records=1, bytes=10, lost_records=4),
        row(u0, problem="denied", skipped_records=1),
        at=rig.clock.now,
    )
    first.numbers = {"records": 7, "bytes": 70, "lost_records": 1}
    second.numbers = {"records": 2, "bytes": 20, "lost_records": 4, "skipped_records": 1}
    buckets = [0] * len(LATENCY_BOUNDS_MS)
    first.reported = TaskFigures(
        "x", first.reported.partitions, (3, *buckets), 12.0, {"merged": 2}, rig.clock.now, True
    )
    second.reported = TaskFigures(
        "y", second.reported.partitions, (1, *buckets), 4.0, {"merged": 1}, rig.clock.now, True
    )
    (flow,) = rig.model.flows()
    assert (flow.flow, flow.partitions, flow.unknown) == ("a->b", 3, 1)
    assert flow.state is PartitionState.STUCK
    assert flow.states == {PartitionState.CATCHING_UP: 2, PartitionState.STUCK: 1}
    assert (flow.records_behind, flow.bytes_behind) == (9, 90)
    assert flow.seconds_behind == pytest.approx(90)
    assert flow.worst is not None
    assert flow.worst.source == T1
    assert flow.nearest_loss is not None
    assert flow.nearest_loss.source == T1
    assert flow.seconds_until_loss == pytest.approx(10)
    assert (flow.records, flow.bytes) == (9, 90)
    assert (flow.lost_records, flow.skipped_records) == (5, 1)
    assert (flow.latency_buckets[0], flow.latency_sum_ms, flow.slow) == (4, 16.0, {"merged": 3})
    assert flow.records_per_second is None


def test_a_flow_that_works_off_a_backlog_says_when_it_is_done(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rig.probe, "look", lambda wanted, is_fresh: None)
    monkeypatch.setattr(rig.probe, "look_at_retention", lambda flow, topics: None)
    (runner,) = rig.world.run("t-0")
    for second in range(13):
        runner.numbers = {"behind": 1000 - second * 20}
        runner.records, runner.bytes = second * 50, second * 500
        runner.report(row(T0), at=rig.clock.now)
        rig.model.turn()
        rig.clock.now += 1
    (flow,) = rig.model.flows()
    assert (flow.records_per_second, flow.bytes_per_second) == (50, 500)
    assert flow.backlog_per_second == -20
    assert flow.catch_up_seconds == pytest.approx((1000 - 12 * 20) / 20)
    rig.world.configs.delete_connector(NAME)
    rig.world.loop.here.clear()
    rig.model.turn()
    assert rig.model._readings == {}


def test_the_source_is_looked_at_every_15_seconds_and_when_tasks_change(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[list[object]] = []
    monkeypatch.setattr(
        rig.probe,
        "look",
        lambda wanted, is_fresh: looks.append(
            [tp for each in wanted for tp in each.positions] + [is_fresh] * is_fresh
        ),
    )
    monkeypatch.setattr(rig.probe, "look_at_retention", lambda flow, topics: None)
    (runner,) = rig.world.run("t-0")
    runner.report(row(T0, position=1, end_offset=1), at=rig.clock.now)
    for _ in range(31):
        rig.model.turn()
        rig.clock.now += 1
    assert looks == [[True], [], []]  # what runs tells all by itself
    rig.world.want(TargetState.PAUSED)
    for _ in range(35):
        rig.model.turn()
        rig.clock.now += 1
    assert looks[3:] == [[T0, True], [T0], [T0]]
