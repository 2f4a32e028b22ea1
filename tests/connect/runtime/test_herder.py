"""What the REST API is answered, and what its requests lead to, with connectors that are fakes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparkmirror.connect.entities import ConnectorInfo, NotLeader, RequestError, State, TargetState
from sparkmirror.connect.runtime import herder as herder_module
from sparkmirror.errors import MirrorError
from sparkmirror.retry import wait_for
from sparkmirror.wire.produce.transactional_writer import FencedError
from tests.connect.connector_fakes import SECONDS
from tests.connect.herder_fakes import CONFIG, NAME, WORKER_ID, FakeWorker

PARTITION = {"sourceClusterAlias": "a", "targetClusterAlias": "b"}
STOPPED_FIRST = "Connectors must be in the STOPPED state before their offsets can be modified."


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[FakeWorker]:
    worker = FakeWorker(tmp_path)
    worker.start()
    yield worker
    worker.stop()


@pytest.fixture
def running(worker: FakeWorker) -> FakeWorker:
    worker.herder.create(NAME, CONFIG, None)
    worker.wait_for_states(State.RUNNING, State.RUNNING)
    return worker


def refused(error: pytest.ExceptionInfo[RequestError]) -> tuple[int, str]:
    return error.value.status, error.value.text


def test_a_connector_is_created_and_runs(running: FakeWorker) -> None:
    herder = running.herder
    assert herder.connectors() == [NAME]
    assert herder.connector_info(NAME) == ConnectorInfo(NAME, CONFIG, 1)
    status = herder.connector_status(NAME)
    assert (status.state, status.worker_id, status.version) == ("RUNNING", WORKER_ID, "4.3.1")
    assert [(task.id, task.state, task.worker_id) for task in status.tasks] == [
        (0, "RUNNING", WORKER_ID)
    ]
    assert herder.task_status(NAME, 0) == status.tasks[0]
    (task,) = herder.task_configs(NAME)
    assert task == {
        **CONFIG,
        "task.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatTask",
        "task.index": "0",
    }
    stored = running.statuses.connector(NAME)
    assert stored is not None
    assert stored.generation == 7


def test_what_is_answered_to_a_creation_has_no_tasks_yet(worker: FakeWorker) -> None:
    assert worker.herder.create(NAME, CONFIG, None) == ConnectorInfo(NAME, CONFIG, 0)
    worker.wait_for_states(State.RUNNING, State.RUNNING)


@pytest.mark.parametrize(
    ("state", "shown"),
    [(TargetState.PAUSED, State.PAUSED), (TargetState.STOPPED, State.STOPPED)],
)
def test_a_connector_may_begin_idle(worker: FakeWorker, state: TargetState, shown: State) -> None:
    worker.herder.create(NAME, CONFIG, state)
    worker.wait_for_states(shown)
    assert worker.made == []


def test_pause_keeps_the_tasks_and_resume_starts_them(running: FakeWorker) -> None:
    running.herder.set_target_state(NAME, TargetState.PAUSED)
    running.wait_for_states(State.PAUSED, State.PAUSED)
    assert running.made[0].calls[-2:] == ["stop", "join"]
    assert running.herder.connector_info(NAME).tasks == 1
    running.herder.set_target_state(NAME, TargetState.STARTED)
    running.wait_for_states(State.RUNNING, State.RUNNING)
    assert len(running.made) == 2


def test_every_request_that_changes_something_leaves_one_line_in_the_log(
    running: FakeWorker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="sparkmirror")
    herder = running.herder
    herder.put_config(NAME, CONFIG | {"emit.heartbeats.interval.seconds": "5"})
    wait_for(lambda: len(running.made) == 2, within=SECONDS, describe="new settings")
    running.wait_for_states(State.RUNNING, State.RUNNING)
    herder.restart_connector(NAME, include_tasks=False, only_failed=False)
    herder.set_target_state(NAME, TargetState.PAUSED)
    running.wait_for_states(State.PAUSED, State.PAUSED)
    herder.set_target_state(NAME, TargetState.STARTED)
    running.wait_for_states(State.RUNNING, State.RUNNING)
    herder.set_target_state(NAME, TargetState.STOPPED)
    running.wait_for_states(State.STOPPED)
    herder.alter_offsets(NAME, [(PARTITION, {"offset": 0})])
    herder.reset_offsets(NAME)
    herder.delete(NAME)
    wait_for(lambda: "deleted" in caplog.text, within=SECONDS, describe="deleted")
    told = [text.removeprefix(f"connector {NAME}") for text in caplog.messages]
    assert told == [
        ": settings changed: emit.heartbeats.interval.seconds",
        " started",
        ": restart of the connector",
        ": paused",
        ": resumed",
        " started",
        ": stopped, its tasks are taken away",
        ": offsets of 1 partitions altered",
        ": offsets reset",
        " deleted",
    ]


def test_stop_takes_the_tasks_away(running: FakeWorker) -> None:
    running.herder.set_target_state(NAME, TargetState.STOPPED)
    assert not running.herder.task_configs(NAME)
    running.wait_for_states(State.STOPPED)
    assert not running.configs.snapshot().tasks[NAME]


def test_delete_leaves_nothing_but_the_offsets(running: FakeWorker) -> None:
    running.offsets.write(NAME, [(PARTITION, {"offset": 0})])
    running.statuses.put_topic("heartbeats", NAME, 0, 1)
    running.herder.delete(NAME)
    running.wait_for_states()
    assert running.herder.connectors() == []
    assert running.herder.active_topics(NAME) == []
    assert running.made[0].calls[-2:] == ["stop", "join"]
    assert running.offsets.list(NAME) == [(PARTITION, {"offset": 0})]


def test_a_connector_may_be_deleted_and_made_again_at_once(running: FakeWorker) -> None:
    running.made[0].gate.clear()
    running.herder.delete(NAME)
    wait_for(lambda: "stop" in running.made[0].calls, within=SECONDS)
    running.herder.create(NAME, CONFIG, None)
    running.made[0].gate.set()
    running.wait_for_states(State.RUNNING, State.RUNNING)
    wait_for(lambda: len(running.made) == 2, within=SECONDS)


def test_other_settings_start_the_connector_anew(running: FakeWorker) -> None:
    changed = {**CONFIG, "emit.heartbeats.interval.seconds": "5"}
    is_new, info = running.herder.put_config(NAME, changed)
    assert (is_new, info) == (False, ConnectorInfo(NAME, changed, 1))
    wait_for(lambda: len(running.made) == 2, within=SECONDS)
    assert running.made[1].config == changed
    wait_for(
        lambda: running.configs.snapshot().tasks[NAME][0].get("emit.heartbeats.interval.seconds"),
        within=SECONDS,
    )


def test_the_same_settings_disturb_nobody(running: FakeWorker) -> None:
    running.herder.put_config(NAME, CONFIG)
    running.loop.reconcile()
    assert len(running.made) == 1


def test_a_patch_changes_adds_and_deletes(running: FakeWorker) -> None:
    info = running.herder.patch_config(NAME, {"x.y": "z", "tasks.max": None})
    expected = {**CONFIG, "x.y": "z"}
    del expected["tasks.max"]
    assert info.config == expected


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda h: h.connector_info("no"), "Connector no not found"),
        (lambda h: h.connector_status("no"), "No status found for connector no"),
        (lambda h: h.task_configs("no"), "Connector no not found"),
        (lambda h: h.task_status("no", 3), "No status found for task no-3"),
        (lambda h: h.offsets("no"), "Connector no not found"),
        (lambda h: h.patch_config("no", {}), "Connector no not found"),
        (lambda h: h.delete("no"), "Connector no not found"),
        (lambda h: h.set_target_state("no", TargetState.PAUSED), "Unknown connector no"),
        (
            lambda h: h.restart_connector("no", include_tasks=False, only_failed=False),
            "Unknown connector: no",
        ),
        (lambda h: h.restart_task("no", 0), "Unknown connector: no"),
        (lambda h: h.alter_offsets("no", []), "Connector no not found"),
        (lambda h: h.reset_offsets("no"), "Connector no not found"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_unknown_names_are_not_found(worker: FakeWorker, call: object, text: str) -> None:
    assert callable(call)
    with pytest.raises(RequestError) as error:
        call(worker.herder)
    assert refused(error) == (404, text)


def test_a_name_is_taken_once(running: FakeWorker) -> None:
    with pytest.raises(RequestError) as error:
        running.herder.create(NAME, CONFIG, None)
    assert refused(error) == (409, f"Connector {NAME} already exists")


@pytest.mark.parametrize(
    ("config", "start"),
    [
        ({"name": "x"}, "Connector config {name=x} contains no connector type"),
        (
            {"name": "x", "connector.class": "NoSuch"},
            "org.apache.kafka.connect.errors.ConnectException: Failed to find any class",
        ),
        (
            {**CONFIG, "tasks.max": "zero"},
            "Connector configuration is invalid and contains the following 2 error(s):\n",
        ),
    ],
    ids=["no class", "unknown class", "bad value"],
)
def test_settings_that_cannot_be_are_refused(
    worker: FakeWorker, config: dict[str, str | None], start: str
) -> None:
    with pytest.raises(RequestError) as error:
        worker.herder.create("x", config, None)
    assert error.value.status == 400
    assert error.value.text.startswith(start)
    assert worker.herder.connectors() == []


def test_a_follower_reads_but_does_not_write(running: FakeWorker) -> None:
    running.group.lose()
    herder = running.herder
    assert herder.connectors() == [NAME]
    writes: list[Callable[[], object]] = [
        lambda: herder.create("x", CONFIG, None),
        lambda: herder.put_config(NAME, CONFIG),
        lambda: herder.patch_config(NAME, {}),
        lambda: herder.delete(NAME),
        lambda: herder.set_target_state(NAME, TargetState.PAUSED),
        lambda: herder.restart_connector(NAME, include_tasks=True, only_failed=False),
        lambda: herder.restart_task(NAME, 0),
        lambda: herder.reset_active_topics(NAME),
        lambda: herder.alter_offsets(NAME, []),
        lambda: herder.reset_offsets(NAME),
        lambda: herder.set_logger("root", "INFO", cluster=True),
        # Of a connector that only the leader knows yet.
        lambda: herder.patch_config("new", {}),
        lambda: herder.delete("new"),
        lambda: herder.set_target_state("new", TargetState.STOPPED),
        lambda: herder.restart_connector("new", include_tasks=False, only_failed=False),
        lambda: herder.restart_task("new", 0),
    ]
    for write in writes:
        with pytest.raises(NotLeader) as error:
            write()
        assert error.value.leader_url == "http://worker-2:8083/"


def test_topics_are_known_until_they_are_reset(running: FakeWorker) -> None:
    running.made[0].topics = {"heartbeats"}
    wait_for(lambda: running.herder.active_topics(NAME) == ["heartbeats"], within=SECONDS)
    running.herder.reset_active_topics(NAME)
    assert running.herder.active_topics(NAME) == []
    running.made[0].topics = {"heartbeats"}
    wait_for(lambda: running.herder.active_topics(NAME) == ["heartbeats"], within=SECONDS)
    assert running.herder.active_topics("no") == []


def test_offsets_are_changed_while_the_connector_is_stopped_only(running: FakeWorker) -> None:
    herder = running.herder
    changes: list[Callable[[], str]] = [
        lambda: herder.alter_offsets(NAME, [(PARTITION, {"offset": 0})]),
        lambda: herder.reset_offsets(NAME),
    ]
    for change in changes:
        with pytest.raises(RequestError) as error:
            change()
        assert error.value.status == 400
        assert error.value.text.startswith(STOPPED_FIRST)
    herder.set_target_state(NAME, TargetState.STOPPED)
    assert herder.alter_offsets(NAME, [(PARTITION, {"offset": 0})]).endswith("altered successfully")
    assert herder.offsets(NAME) == [(PARTITION, {"offset": 0})]
    assert herder.reset_offsets(NAME).endswith("reset successfully")
    assert herder.offsets(NAME) == []


def test_offsets_wait_for_tasks_that_are_ending(running: FakeWorker) -> None:
    made = running.made[0]
    made.task_gate.clear()
    running.herder.set_target_state(NAME, TargetState.STOPPED)
    wait_for(lambda: "join 0" in made.task_calls, within=SECONDS)
    release = threading.Timer(0.3, made.task_gate.set)
    release.start()
    running.herder.reset_offsets(NAME)
    assert made.task_gate.is_set()
    release.join()


def test_offsets_do_not_wait_for_ever(running: FakeWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(herder_module, "WAIT_SECONDS", 0.1)
    running.made[0].task_gate.clear()
    running.herder.set_target_state(NAME, TargetState.STOPPED)
    wait_for(lambda: "join 0" in running.made[0].task_calls, within=SECONDS)
    with pytest.raises(RequestError, match="still ending") as error:
        running.herder.reset_offsets(NAME)
    assert error.value.status == 409


def test_who_the_worker_is(worker: FakeWorker) -> None:
    assert worker.herder.root() == {
        "version": "4.3.1",
        "commit": "26b251a451ce941d",
        "kafka_cluster_id": "cluster-1",
    }
    assert worker.herder.health()[0] == "healthy"
    worker.group.leader_url = ""  # it has joined before
    assert worker.herder.health()[0] == "healthy"
    worker.spark.failure = MirrorError("Spark is gone")
    wait_for(lambda: worker.loop.problem == "Spark is gone", within=SECONDS)
    assert worker.herder.health()[0] == "unhealthy"


def test_a_worker_that_knows_no_leader_is_starting(tmp_path: Path) -> None:
    worker = FakeWorker(tmp_path)
    worker.group.leader_url = ""
    assert worker.herder.health()[0] == "starting"
    worker.herder.start()
    assert worker.herder.health()[0] == "starting"
    worker.group.leader_url = "http://worker-2:8083/"
    assert worker.herder.health()[0] == "healthy"


def test_a_leader_that_was_fenced_says_so(running: FakeWorker) -> None:
    running.configs.failures = [FencedError("another worker has claimed")]
    with pytest.raises(RequestError) as error:
        running.herder.set_target_state(NAME, TargetState.STOPPED)
    assert error.value.status == 409


def test_offsets_of_connectors_of_other_kinds_are_not_ours_to_write(worker: FakeWorker) -> None:
    foreign = {"name": "f", "connector.class": "FileStreamSource"}
    worker.configs.put_connector("f", foreign, TargetState.STOPPED)
    worker.wait_for_states(State.STOPPED, name="f")
    with pytest.raises(RequestError, match="Failed to find any class") as error:
        worker.herder.alter_offsets("f", [({"x": 1}, {"y": 2})])
    assert error.value.status == 500


def test_plugins_are_listed_and_checked(worker: FakeWorker) -> None:
    listed = [plugin["class"] for plugin in worker.herder.plugins(connectors_only=True)]
    assert len(listed) == 3
    names = {key["name"] for key in worker.herder.plugin_definitions("MirrorSource", None)}
    assert "offset.lag.max" in names
    with pytest.raises(RequestError) as error:
        worker.herder.plugin_definitions("NoSuch", None)
    assert refused(error) == (404, "Unknown plugin NoSuch.")
    assert worker.herder.validate("MirrorHeartbeatConnector", CONFIG)["error_count"] == 0
    with pytest.raises(RequestError, match="does not match") as error:
        worker.herder.validate("MirrorSourceConnector", CONFIG)
    assert error.value.status == 400
    with pytest.raises(RequestError, match="contains no connector type") as error:
        worker.herder.validate("MirrorSourceConnector", {})
    assert error.value.status == 500


def test_levels_are_set_here_or_everywhere(worker: FakeWorker) -> None:
    name = "org.apache.kafka.connect.mirror.Scheduler"
    scheduler = logging.getLogger("sparkmirror.connect.scheduler")
    before = scheduler.level
    try:
        assert worker.herder.set_logger(name, "TRACE", cluster=False) == [name]
        assert scheduler.level == 5
        assert worker.herder.set_logger(name, "WARN", cluster=True) is None
        level = worker.herder.logger(name)
        assert level is not None
        assert (level.level, scheduler.level) == ("WARN", logging.WARNING)
        assert level.last_modified is not None
        assert worker.herder.loggers()[name] == level
        assert worker.herder.logger("no.such") is None
    finally:
        scheduler.setLevel(before)
