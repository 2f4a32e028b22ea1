"""Who runs connectors when, what fails, and what a worker that leads no more leaves behind."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sparkmirror.config.config_def import Secret
from sparkmirror.config.masking import remember_provided
from sparkmirror.connect import start_failures, thread_task
from sparkmirror.connect.entities import RequestError, State, TargetState
from sparkmirror.connect.runtime import worker_connector as keeper_module
from sparkmirror.connect.runtime.herder_loop import HerderLoop
from sparkmirror.connect.runtime.worker_connector import PendingRestart
from sparkmirror.connect.storage.backing_stores import StoredStatus
from sparkmirror.errors import ConfigError, ConfigErrors, KafkaError, MirrorError
from sparkmirror.retry import RetryPolicy, wait_for
from tests.connect.connector_fakes import SECONDS, FakeRunning
from tests.connect.herder_fakes import CONFIG, NAME, OTHER_ID, WORKER_ID, FakeWorker


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWorker]:
    monkeypatch.setattr(keeper_module, "TICK_SECONDS", 0.05)
    monkeypatch.setattr(start_failures, "RETRIES", RetryPolicy(0.05, 60))
    monkeypatch.setattr(thread_task, "DOUBT_SECONDS", 0.05)
    worker = FakeWorker(tmp_path)
    yield worker
    worker.stop()


def start_one(worker: FakeWorker) -> FakeRunning:
    worker.configs.put_connector(NAME, CONFIG)
    worker.start()
    worker.wait_for_states(State.RUNNING, State.RUNNING)
    return worker.made[0]


def test_a_follower_runs_nothing(worker: FakeWorker) -> None:
    worker.group.leads = False
    worker.configs.put_connector(NAME, CONFIG)
    worker.start()
    worker.loop.reconcile()
    assert worker.made == []
    assert worker.statuses.said == []
    assert worker.configs.claims == 0


def test_what_users_shall_know_is_in_the_status_of_what_runs(worker: FakeWorker) -> None:
    def with_notice(running: FakeRunning) -> None:
        running.notice = "records go elsewhere"

    worker.prepare = with_notice
    start_one(worker)
    status = worker.herder.connector_status(NAME)
    assert (status.state, status.trace) == (State.RUNNING, "records go elsewhere")
    assert status.tasks[0].trace == ""


def test_a_leader_claims_the_topic_once(worker: FakeWorker) -> None:
    start_one(worker)
    worker.group.generation += 1  # another worker joined; we lead on
    worker.loop.reconcile()
    assert worker.configs.claims == 1
    assert len(worker.made) == 1


def test_who_leads_no_more_stops_without_a_word(worker: FakeWorker) -> None:
    running = start_one(worker)
    said = len(worker.statuses.said)
    worker.group.lose()
    wait_for(lambda: running.calls[-1] == "join", within=SECONDS)
    wait_for(lambda: worker.spark.closed, within=SECONDS)
    assert len(worker.statuses.said) == said
    assert worker.loop.connector(NAME) is None


def test_a_gap_in_the_lead_is_noticed_although_it_is_over(worker: FakeWorker) -> None:
    running = start_one(worker)
    worker.group.tenures += 1  # frozen; the group has elected us again since
    wait_for(lambda: "join" in running.calls, within=SECONDS)
    wait_for(lambda: len(worker.made) == 2, within=SECONDS)
    assert worker.configs.claims == 2


def test_a_leader_in_doubt_stops_nothing_and_begins_nothing(worker: FakeWorker) -> None:
    running = start_one(worker)
    worker.group.is_in_doubt = True  # its coordinator crashed, say
    worker.configs.put_connector("another", CONFIG)
    worker.loop.reconcile()
    assert len(worker.made) == 1
    worker.group.is_in_doubt = False  # and its successor knows of no other leader
    worker.loop.reconcile()
    wait_for(lambda: len(worker.made) == 2, within=SECONDS)
    assert running.calls == ["connect", "start"]
    assert worker.configs.claims == 1


def test_nothing_is_told_of_a_start_that_took_longer_than_the_lease(worker: FakeWorker) -> None:
    worker.prepare = lambda running: running.gate.clear()
    worker.configs.put_connector(NAME, CONFIG)
    worker.start()
    wait_for(lambda: worker.made and worker.made[0].calls == ["connect"], within=SECONDS)
    worker.group.leads = False
    worker.made[0].gate.set()
    wait_for(lambda: worker.made[0].calls == ["connect", "stop", "join"], within=SECONDS)
    assert worker.statuses.said == []


def test_what_another_worker_left_is_unassigned_until_it_runs(worker: FakeWorker) -> None:
    worker.statuses.put_connector(NAME, StoredStatus("RUNNING", OTHER_ID, 3))
    worker.statuses.put_task(NAME, 0, StoredStatus("RUNNING", OTHER_ID, 3))
    worker.prepare = lambda running: running.gate.clear()
    worker.configs.put_connector(NAME, CONFIG)
    worker.configs.put_tasks(NAME, [{"task.index": "0"}])
    worker.statuses.said.clear()
    worker.start()
    # The task need not wait for its connector: the config topic says what it does.
    wait_for(lambda: worker.statuses.tasks(NAME)[0].worker_id == WORKER_ID, within=SECONDS)
    worker.wait_for_states(State.UNASSIGNED, State.RUNNING)
    status = worker.statuses.connector(NAME)
    assert status is not None
    assert status.worker_id == WORKER_ID
    worker.made[0].gate.set()
    worker.wait_for_states(State.RUNNING, State.RUNNING)


def test_a_worker_that_ends_says_that_nobody_runs_its_connectors(worker: FakeWorker) -> None:
    start_one(worker)
    worker.stop()
    assert worker.states() == ["UNASSIGNED", "UNASSIGNED"]


def test_a_connector_that_cannot_start_fails_and_is_tried_again(worker: FakeWorker) -> None:
    worker.prepare = lambda running: running.failures.update(connect=KafkaError("b is away"))
    worker.configs.put_connector(NAME, CONFIG)
    worker.configs.put_connector("other", {**CONFIG, "name": "other"}, TargetState.PAUSED)
    worker.start()
    worker.wait_for_states(State.FAILED)
    assert worker.herder.connector_status(NAME).trace == "sparkmirror.errors.KafkaError: b is away"
    assert worker.made[0].calls == ["connect", "stop", "join"]
    worker.wait_for_states(State.PAUSED, name="other")
    worker.prepare = lambda running: None
    worker.wait_for_states(State.RUNNING, State.RUNNING)
    assert worker.herder.connector_status(NAME).trace == ""


def test_code_of_a_user_that_ends_the_program_fails_its_connector_only(worker: FakeWorker) -> None:
    worker.prepare = lambda running: running.failures.update(connect=SystemExit(3))
    worker.configs.put_connector(NAME, CONFIG)
    worker.start()
    worker.wait_for_states(State.FAILED)
    assert worker.herder.connector_status(NAME).trace.endswith("SystemExit: 3\n")
    worker.prepare = lambda running: None
    worker.wait_for_states(State.RUNNING, State.RUNNING)


def test_settings_that_cannot_work_wait_for_others_or_for_a_restart(worker: FakeWorker) -> None:
    error = ConfigErrors([ConfigError("topics", "(", "not a pattern")])
    worker.prepare = lambda running: running.failures.update(connect=error)
    worker.configs.put_connector(NAME, CONFIG)
    worker.start()
    worker.wait_for_states(State.FAILED)
    time.sleep(0.3)
    assert len(worker.made) == 1
    worker.herder.start()
    with pytest.raises(MirrorError, match="not a pattern"):
        worker.herder.restart_connector(NAME, include_tasks=False, only_failed=False)
    assert len(worker.made) == 2
    worker.prepare = lambda running: None
    worker.configs.put_connector(NAME, {**CONFIG, "x": "y"})
    worker.wait_for_states(State.RUNNING, State.RUNNING)


def test_a_mistake_of_ours_is_a_state_too(
    worker: FakeWorker, caplog: pytest.LogCaptureFixture
) -> None:
    worker.prepare = lambda running: running.failures.update(start=ZeroDivisionError("oh"))
    worker.configs.put_connector(NAME, CONFIG)
    worker.start()
    worker.wait_for_states(State.FAILED)
    trace = worker.herder.connector_status(NAME).trace
    assert trace.startswith("Traceback")
    assert trace.rstrip().endswith("ZeroDivisionError: oh")
    assert f"connector {NAME} failed: oh" in caplog.messages


def test_a_trace_has_no_secret_of_the_settings(worker: FakeWorker) -> None:
    def fail(running: FakeRunning) -> None:
        Secret("password-in-a-trace")
        remember_provided("host-in-a-trace:9092")
        text = "no password-in-a-trace at host-in-a-trace:9092"
        running.failures.update(connect=KafkaError(text))

    worker.prepare = fail
    worker.configs.put_connector(NAME, CONFIG)
    worker.start()
    worker.wait_for_states(State.FAILED)
    trace = worker.herder.connector_status(NAME).trace
    assert trace == "sparkmirror.errors.KafkaError: no [hidden] at [hidden]"


def test_one_that_hangs_holds_up_nobody(worker: FakeWorker) -> None:
    worker.prepare = lambda running: (
        running.gate.clear() if running.config["name"] == NAME else None
    )
    worker.configs.put_connector(NAME, CONFIG)
    worker.configs.put_connector("other", {**CONFIG, "name": "other"})
    worker.start()
    worker.wait_for_states(State.RUNNING, State.RUNNING, name="other")
    assert worker.states() == []


def test_tasks_that_come_and_go_are_told(worker: FakeWorker) -> None:
    running = start_one(worker)
    running.reports = running.reports * 3
    worker.wait_for_states(*[State.RUNNING] * 4)
    assert len(worker.configs.snapshot().tasks[NAME]) == 3
    running.reports = running.reports[:1]
    worker.wait_for_states(State.RUNNING, State.RUNNING)
    assert worker.configs.puts == [(NAME, 1), (NAME, 3), (NAME, 1)]


def test_a_connector_knows_its_stored_tasks_unless_there_may_be_another_number(
    worker: FakeWorker,
) -> None:
    first = start_one(worker)
    assert first.stored == ()
    worker.configs.put_connector(NAME, {**CONFIG, "x": "y"})
    wait_for(
        lambda: len(worker.made) == 2 and worker.made[1].calls[-1:] == ["start"], within=SECONDS
    )
    assert [task["task.index"] for task in worker.made[1].stored] == ["0"]
    worker.wait_for_states(State.RUNNING, State.RUNNING)
    worker.configs.put_connector(NAME, {**CONFIG, "tasks.max": "2"})
    wait_for(
        lambda: len(worker.made) == 3 and worker.made[2].calls[-1:] == ["start"], within=SECONDS
    )
    assert worker.made[2].stored == ()


def test_what_cannot_be_stored_is_stored_later(
    worker: FakeWorker, caplog: pytest.LogCaptureFixture
) -> None:
    worker.configs.failures = [KafkaError("fenced")]
    start_one(worker)
    assert any("its state cannot be stored: fenced" in text for text in caplog.messages)


def test_no_change_is_no_work(worker: FakeWorker) -> None:
    for at in range(200):
        name = f"c{at}"
        worker.configs.put_connector(name, {**CONFIG, "name": name}, TargetState.PAUSED)
    worker.start()
    wait_for(lambda: len(worker.statuses.said) == 200, within=SECONDS)
    began = time.thread_time()  # without what the connectors' threads take meanwhile
    worker.loop.reconcile()
    assert time.thread_time() - began < 0.1
    assert len(worker.statuses.said) == 200


def test_spark_that_is_gone_is_a_problem_of_the_worker(worker: FakeWorker) -> None:
    start_one(worker)
    worker.spark.failure = MirrorError("Spark is gone")
    wait_for(lambda: worker.loop.problem == "Spark is gone", within=SECONDS)


def test_many_requests_in_any_order_leave_nothing_behind(worker: FakeWorker) -> None:
    worker.start()
    herder, chance = worker.herder, random.Random(5)
    requests: list[Callable[[str], object]] = [
        lambda name: herder.put_config(name, {**CONFIG, "name": name, "x": str(chance.random())}),
        lambda name: herder.set_target_state(name, TargetState.PAUSED),
        lambda name: herder.set_target_state(name, TargetState.STARTED),
        lambda name: herder.set_target_state(name, TargetState.STOPPED),
        lambda name: herder.restart_connector(name, include_tasks=True, only_failed=False),
        lambda name: herder.restart_connector(name, include_tasks=False, only_failed=False),
        herder.delete,
    ]
    began = time.monotonic()
    for _ in range(100):
        with suppress(RequestError):
            chance.choice(requests)(chance.choice(("c1", "c2", "c3")))
    assert time.monotonic() - began < 20.0
    for name in herder.connectors():
        herder.delete(name)
    for name in ("c1", "c2", "c3"):
        worker.wait_for_states(name=name)
    wait_for(lambda: not _connector_threads(), within=SECONDS)
    ended = [running.calls.count("join") for running in worker.made]
    assert ended == [1] * len(worker.made)
    assert ended


def _connector_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("connector ")]


def test_a_restart_that_meets_a_deleted_namesake_is_tried_again(
    worker: FakeWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = start_one(worker)
    worker.herder.start()
    made.gate.clear()
    worker.herder.delete(NAME)
    wait_for(lambda: made.calls[-1] == "stop", within=SECONDS)
    connector = worker.loop.connector(NAME)
    assert connector is not None
    missed = PendingRestart(connector=True)
    assert connector.restart(missed)
    made.gate.set()
    assert missed.done.wait(SECONDS)
    assert missed.is_missed
    worker.herder.put_config(NAME, CONFIG)
    met: list[bool] = []

    def restart(name: str, asked: PendingRestart) -> bool:
        """As if the first to be asked were the one that is on the way out."""
        met.append(True)
        if len(met) == 1:
            asked.is_missed = True
            asked.done.set()
            return True
        return HerderLoop.restart(worker.loop, name, asked)

    monkeypatch.setattr(worker.loop, "restart", restart)
    assert worker.herder.restart_connector(NAME, include_tasks=False, only_failed=False) is None
    assert len(met) > 1
    assert worker.made[-1].calls[:2] == ["connect", "start"]


def test_a_restart_of_what_is_deleted_meanwhile_is_not_found(
    worker: FakeWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_one(worker)
    worker.herder.start()

    def restart(name: str, asked: PendingRestart) -> bool:
        worker.configs.delete_connector(name)
        asked.is_missed = True
        asked.done.set()
        return True

    monkeypatch.setattr(worker.loop, "restart", restart)
    with pytest.raises(RequestError, match=f"Unknown connector: {NAME}"):
        worker.herder.restart_connector(NAME, include_tasks=False, only_failed=False)


def test_topics_that_are_told_at_the_end_only_are_known_too(worker: FakeWorker) -> None:
    made = start_one(worker)
    made.task_gate.clear()
    worker.herder.set_target_state(NAME, TargetState.PAUSED)
    wait_for(lambda: "join 0" in made.task_calls, within=SECONDS)
    made.topics = {"heartbeats"}
    made.task_gate.set()
    wait_for(lambda: worker.herder.active_topics(NAME) == ["heartbeats"], within=SECONDS)
