"""What a connector's tasks are and how they are, as seen from outside."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from sparkmirror.config.connector_spec import ParsedConnector, parse_connector
from sparkmirror.connect.entities import State
from sparkmirror.connect.runtime.running import (
    RunningCheckpoint,
    RunningHeartbeat,
    RunningSource,
    StateAndTrace,
    make_running,
    stop_now,
)
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.source.mirror_source_connector import MirrorSourceConnector
from sparkmirror.spark.task_runner import TaskRunner, TaskState
from sparkmirror.types import TopicPartition
from tests.connect.fakes import FakeTask
from tests.connect.herder_fakes import CONFIG, worker_file

MIRROR = "org.apache.kafka.connect.mirror."
NO_SPARK = Worker({})


def parsed(folder: Path, kind: str, **settings: str) -> ParsedConnector:
    given = {key.replace("_", "."): value for key, value in settings.items()}
    config = {**CONFIG, "connector.class": MIRROR + kind, **given}
    return parse_connector(config, worker_file(folder))


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("MirrorSourceConnector", RunningSource),
        ("MirrorCheckpointConnector", RunningCheckpoint),
        ("MirrorHeartbeatConnector", RunningHeartbeat),
    ],
)
def test_each_kind_has_its_own(tmp_path: Path, kind: str, made: type) -> None:
    running = make_running(parsed(tmp_path, kind), NO_SPARK)
    assert isinstance(running, made)
    assert running.task_class == kind.replace("Connector", "Task")
    assert stop_now(running, 1.0)


@pytest.mark.parametrize("kind", ["Source", "Checkpoint", "Heartbeat"])
def test_users_are_told_where_records_go(tmp_path: Path, kind: str) -> None:
    kind = f"Mirror{kind}Connector"
    assert make_running(parsed(tmp_path, kind), NO_SPARK).notice == ""
    elsewhere = parsed(tmp_path, kind, target_cluster_bootstrap_servers="127.0.0.1:2")
    notice = make_running(elsewhere, NO_SPARK).notice
    assert notice.startswith("records go to 127.0.0.1:1, not to target.cluster.bootstrap.servers")


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("MirrorSourceConnector", {"enabled": "false"}),
        ("MirrorCheckpointConnector", {"enabled": "false"}),
        ("MirrorCheckpointConnector", {"emit.checkpoints.enabled": "false"}),
        ("MirrorHeartbeatConnector", {"emit.heartbeats.enabled": "false"}),
    ],
    ids=str,
)
def test_what_is_off_runs_without_tasks(
    tmp_path: Path, kind: str, settings: dict[str, str]
) -> None:
    running = make_running(parsed(tmp_path, kind, **settings), NO_SPARK)
    running.connect()
    running.start()
    running.restart()
    assert running.tasks() == []
    assert running.take_topics() == {}
    assert stop_now(running, 1.0)


def test_groups_that_are_not_known_yet_are_no_tasks_yet(tmp_path: Path) -> None:
    running = make_running(parsed(tmp_path, "MirrorCheckpointConnector"), NO_SPARK)
    assert isinstance(running, RunningCheckpoint)
    assert running.tasks() is None
    running._connector._groups._follow(("g2", "g1"))
    assert running.tasks() == [{"task.index": "0", "task.assigned.groups": "g1,g2"}]
    assert running.view(0) == StateAndTrace(State.RUNNING)


def test_topics_are_those_that_got_records_since(tmp_path: Path) -> None:
    running = make_running(parsed(tmp_path, "MirrorHeartbeatConnector"), NO_SPARK)
    assert isinstance(running, RunningHeartbeat)
    assert running.take_topics() == {}
    running._connector._offsets.note(b"key")
    assert running.take_topics() == {"heartbeats": 0}
    assert running.take_topics() == {}


@pytest.mark.parametrize(
    ("state", "trace", "shown"),
    [
        (TaskState.UNASSIGNED, "", StateAndTrace(State.UNASSIGNED)),
        (TaskState.RUNNING, "", StateAndTrace(State.RUNNING)),
        (TaskState.RUNNING, "of an earlier attempt", StateAndTrace(State.RUNNING)),
        (TaskState.FAILED, "out of luck", StateAndTrace(State.FAILED, "out of luck")),
        (TaskState.UNASSIGNED, "out of luck", StateAndTrace(State.FAILED, "out of luck")),
    ],
)
def test_a_task_has_failed_until_its_next_attempt_runs(
    tmp_path: Path, state: TaskState, trace: str, shown: StateAndTrace
) -> None:
    running = make_running(parsed(tmp_path, "MirrorSourceConnector"), NO_SPARK)
    assert isinstance(running, RunningSource)
    task = FakeTask("t")
    task.state, task.trace = state, trace
    running._connector.tasks = [cast("TaskRunner", task)]
    assert running.view(0) == shown
    assert running.view(1) == StateAndTrace(State.UNASSIGNED)


def test_a_task_is_restarted_by_itself(tmp_path: Path) -> None:
    running = make_running(parsed(tmp_path, "MirrorSourceConnector"), NO_SPARK)
    assert isinstance(running, RunningSource)
    tasks = [FakeTask("0"), FakeTask("1")]
    running._connector.tasks = [cast("TaskRunner", task) for task in tasks]
    running._connector._assignment = [[TopicPartition("t", 0)], [TopicPartition("t", 1)]]
    assert running.tasks() is None
    running.restart_task(1)
    running.restart_task(7)
    assert [task.started for task in tasks] == [0, 1]


@pytest.mark.parametrize("kind", ["Checkpoint", "Heartbeat"])
def test_what_cannot_do_its_work_is_not_running(tmp_path: Path, kind: str) -> None:
    running = make_running(parsed(tmp_path, f"Mirror{kind}Connector"), NO_SPARK)
    assert isinstance(running, RunningCheckpoint | RunningHeartbeat)
    assert running.view(0) == StateAndTrace(State.RUNNING)
    running._connector.refused = "create topic 'x' on 'b': INVALID_REPLICATION_FACTOR"
    assert running.view(0) == StateAndTrace(State.FAILED, running._connector.refused)
    running._connector.refused = ""
    assert running.view(0) == StateAndTrace(State.RUNNING)


def test_a_copy_without_its_internal_topics_is_degraded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = make_running(parsed(tmp_path, "MirrorSourceConnector"), NO_SPARK)
    assert isinstance(running, RunningSource)
    reason = "create topic 'mm2-offset-syncs.b.internal' on 'a': INVALID_REPLICATION_FACTOR"
    monkeypatch.setattr(MirrorSourceConnector, "degraded", reason)
    assert running.notice == ""  # it has not tried yet
    running._is_started = True
    assert running.notice == f"DEGRADED: {reason}"
