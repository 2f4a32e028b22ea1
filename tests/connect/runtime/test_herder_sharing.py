"""Tasks that the workers of a group share: which run here, and what the leader waits for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sparkmirror.connect import thread_task
from sparkmirror.connect.entities import NotLeader, State
from sparkmirror.connect.group.connect_protocol import Assignment, MemberState
from sparkmirror.connect.runtime import worker_connector
from sparkmirror.connect.runtime.connector_tasks import SOURCE_TASK
from sparkmirror.mirror.task_configs import TASK_CLASS
from sparkmirror.retry import wait_for
from sparkmirror.types import ConnectorTaskId
from tests.connect.connector_fakes import SECONDS, FakeRunning
from tests.connect.herder_fakes import CONFIG, NAME, OTHER_ID, WORKER_ID, FakeWorker

TASK = ConnectorTaskId(NAME, 0)


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWorker]:
    monkeypatch.setattr(worker_connector, "TICK_SECONDS", 0.05)
    monkeypatch.setattr(thread_task, "DOUBT_SECONDS", 0.05)
    worker = FakeWorker(tmp_path)
    yield worker
    worker.stop()


def start_one(worker: FakeWorker) -> FakeRunning:
    worker.configs.put_connector(NAME, CONFIG)
    worker.start()
    worker.wait_for_states(State.RUNNING, State.RUNNING)
    return worker.made[0]


def test_a_worker_that_only_lost_the_lead_keeps_its_tasks(worker: FakeWorker) -> None:
    running = start_one(worker)
    worker.group.lose_lead()
    wait_for(lambda: running.calls[-1] == "join", within=SECONDS)
    worker.loop.reconcile()
    assert running.task_calls == ["connect 0", "start 0"]
    assert worker.statuses.tasks(NAME)[0].state == State.RUNNING
    assert worker.statuses.tasks(NAME)[0].worker_id == WORKER_ID


def test_a_follower_runs_the_tasks_that_it_was_assigned(worker: FakeWorker) -> None:
    worker.group.leads = False
    worker.configs.put_connector(NAME, CONFIG)
    worker.configs.put_tasks(NAME, [{"task.index": "0"}, {"task.index": "1"}])
    worker.configs.put_connector("other", {**CONFIG, "name": "other"})
    worker.configs.put_tasks("other", [{"task.index": "0"}])
    worker.start()
    worker.group.take(Assignment(tasks=frozenset({TASK})))
    wait_for(lambda: 0 in worker.statuses.tasks(NAME), within=SECONDS)
    worker.wait_for_states(State.RUNNING, State.RUNNING)  # one unit, as of a checkpoint connector
    assert worker.made == []
    assert worker.loop.describe().tasks == {TASK}
    assert worker.states("other") == []


def test_tasks_wait_until_what_the_leader_has_read_is_read(worker: FakeWorker) -> None:
    worker.group.leads = False
    worker.configs.put_connector(NAME, CONFIG)
    worker.configs.put_tasks(NAME, [{"task.index": "0"}])
    worker.start()
    unread = worker.configs.snapshot().end_offset + 1
    worker.group.take(Assignment(config_offset=unread, tasks=frozenset({TASK})))
    worker.loop.reconcile()
    assert worker.states() == []
    worker.configs.put_logger("kafka", "INFO")
    worker.wait_for_states(State.RUNNING)


def test_a_worker_rejoins_once_when_what_it_gives_up_has_ended(worker: FakeWorker) -> None:
    running = start_one(worker)
    worker.group.leads = False
    running.task_gate.clear()
    rejoins = worker.group.rejoins
    worker.group.take(Assignment(revoked=frozenset({TASK}), follow_up=True))
    wait_for(lambda: "join 0" in running.task_calls, within=SECONDS)
    worker.loop.reconcile()
    assert worker.loop.describe().tasks == {TASK}
    assert worker.group.rejoins == rejoins
    running.task_gate.set()
    wait_for(lambda: worker.group.rejoins == rejoins + 1, within=SECONDS)
    assert worker.loop.describe().tasks == frozenset()
    worker.wait_for_states(State.RUNNING, State.UNASSIGNED)  # the leader has not stopped it yet
    worker.loop.reconcile()
    assert worker.group.rejoins == rejoins + 1


def test_a_connector_that_is_deleted_waits_for_tasks_of_other_workers(worker: FakeWorker) -> None:
    other = MemberState(OTHER_ID, slots=256, tasks=frozenset({TASK}))
    worker.group.others = {"member-2": other}
    worker.configs.put_connector(NAME, CONFIG)
    worker.start()
    worker.wait_for_states(State.RUNNING)
    wait_for(lambda: worker.configs.puts, within=SECONDS)
    wait_for(lambda: worker.loop.worker_of(NAME, 0) == OTHER_ID, within=SECONDS)
    worker.herder.start()
    worker.herder.delete(NAME)
    wait_for(lambda: worker.made[0].calls[-1] == "join", within=SECONDS)
    worker.loop.reconcile()
    assert worker.statuses.connector(NAME) is not None
    worker.group.others = {"member-2": replace(other, tasks=frozenset())}
    worker.group.request_rejoin()
    worker.wait_for_states()


def test_partitions_that_move_between_tasks_wait_until_none_runs_anywhere(
    worker: FakeWorker,
) -> None:
    worker.prepare = lambda running: setattr(running, "partitions", ["t-0,t-1"])
    worker.configs.put_connector(NAME, CONFIG)
    worker.start()
    worker.wait_for_states(State.RUNNING, State.RUNNING)
    running = worker.made[0]
    running.task_gate.clear()
    running.partitions = ["t-0", "t-1"]
    running.reports = running.reports * 2
    wait_for(lambda: "join 0" in running.task_calls, within=SECONDS)
    assert not worker.configs.snapshot().tasks[NAME]
    running.task_gate.set()
    worker.wait_for_states(*[State.RUNNING] * 3)
    assert worker.configs.puts == [(NAME, 1), (NAME, 0), (NAME, 2)]


def test_the_leader_looks_for_topics_that_tasks_miss_on_other_workers(worker: FakeWorker) -> None:
    running = start_one(worker)
    worker.loop.refresh_soon(NAME, ["b.t"])
    assert running.calls[-1] == "refresh for b.t"
    missing = MemberState(OTHER_ID, slots=256, missing={NAME: ("b.u",), "unknown": ("b.v",)})
    worker.group.others = {"member-2": missing}
    worker.group.request_rejoin()
    assert running.calls[-1] == "refresh for b.u"


def test_a_follower_tells_the_leader_once_which_topics_its_tasks_miss(worker: FakeWorker) -> None:
    worker.group.leads = False
    worker.start()
    worker.loop.refresh_soon(NAME, [f"b.t{at}" for at in range(12)])
    wait_for(lambda: worker.group.rejoins, within=SECONDS)
    assert worker.loop.describe().missing == {NAME: tuple(f"b.t{at}" for at in range(10))}
    assert worker.loop.describe().missing == {}


def test_a_task_restarts_on_the_worker_that_runs_it(worker: FakeWorker) -> None:
    other = MemberState(OTHER_ID, slots=256, tasks=frozenset({TASK}))
    worker.group.others = {"member-2": other}
    worker.configs.put_connector(NAME, CONFIG)
    worker.start()
    wait_for(lambda: worker.loop.worker_of(NAME, 0) == OTHER_ID, within=SECONDS)
    with pytest.raises(NotLeader) as error:
        worker.herder.restart_task(NAME, 0)
    assert error.value.leader_url == OTHER_ID


def test_a_follower_restarts_its_own_tasks_and_asks_the_leader_for_others(
    worker: FakeWorker,
) -> None:
    running = start_one(worker)
    worker.group.lose_lead()
    worker.herder.restart_task(NAME, 0)
    wait_for(lambda: running.task_calls.count("start 0") == 2, within=SECONDS)
    worker.group.take(Assignment(revoked=frozenset({TASK})))
    with pytest.raises(NotLeader) as error:
        worker.herder.restart_task(NAME, 0)
    assert error.value.leader_url == worker.group.leader_url


def test_every_worker_restarts_its_own_tasks_when_a_connector_restarts(worker: FakeWorker) -> None:
    running = start_one(worker)
    worker.herder.start()
    worker.group.lose_lead()
    wait_for(lambda: running.calls[-1] == "join", within=SECONDS)
    worker.configs.put_restart(NAME, include_tasks=True, only_failed=False)
    wait_for(lambda: running.task_calls.count("start 0") == 2, within=SECONDS)
    assert "refresh" not in running.calls


def test_fewer_slots_are_told_to_the_group(worker: FakeWorker) -> None:
    start_one(worker)
    worker.spark.slots = 300
    wait_for(lambda: worker.loop.describe().slots == 300, within=SECONDS)


def test_a_worker_gets_no_tasks_of_others_before_its_spark_is_up(worker: FakeWorker) -> None:
    worker.spark.is_up = False
    worker.group.leads = False
    assert worker.loop.describe().slots == 0  # what there is to run is not known yet
    worker.start()
    assert worker.loop.describe().slots == 256  # nothing here needs Spark
    worker.configs.put_connector(NAME, CONFIG)
    worker.configs.put_tasks(NAME, [{TASK_CLASS: SOURCE_TASK}])
    assert worker.loop.describe().slots == 0
    worker.group.take(Assignment(tasks=frozenset({TASK})))
    assert worker.loop.describe().slots == 1  # what it has it keeps
    rejoins = worker.group.rejoins
    worker.loop.reconcile()
    assert worker.group.rejoins == rejoins
    worker.spark.is_up = True
    wait_for(lambda: worker.group.rejoins == rejoins + 1, within=SECONDS)
    assert worker.loop.describe().slots == 256
