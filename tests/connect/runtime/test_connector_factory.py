"""What is made of a connector's settings, and of its tasks': connectors and tasks of each kind."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from sparkmirror.config.keys.plugins import UnusableConnector
from sparkmirror.connect.checkpoint.mirror_checkpoint_connector import MirrorCheckpointConnector
from sparkmirror.connect.checkpoint.mirror_checkpoint_task import MirrorCheckpointTask
from sparkmirror.connect.connector import Connector, TaskReport, TaskWork
from sparkmirror.connect.heartbeat.mirror_heartbeat_connector import MirrorHeartbeatConnector
from sparkmirror.connect.heartbeat.mirror_heartbeat_task import MirrorHeartbeatTask
from sparkmirror.connect.runtime.connector_factory import ConnectorFactory
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.source.mirror_source_connector import MirrorSourceConnector
from sparkmirror.connect.source.mirror_source_task import MirrorSourceTask
from sparkmirror.connect.states import TaskEvent
from sparkmirror.errors import ConfigErrors
from sparkmirror.mirror.task_configs import complete_settings
from sparkmirror.spark.link.lease import for_ever
from sparkmirror.spark.task_runner import TaskRunner, TaskState
from sparkmirror.types import TopicPartition
from tests.connect.fakes import FakeTask
from tests.connect.herder_fakes import CONFIG, worker_file

MIRROR = "org.apache.kafka.connect.mirror."
KINDS = ("Source", "Checkpoint", "Heartbeat")


class NoSpark(Worker):
    """Begins, and is never up."""

    begun = 0

    def begin(self) -> None:  # type: ignore[override]
        self.begun += 1


class Context:
    """A worker without stored tasks."""

    def __init__(self) -> None:
        self.requests = 0

    def request_task_reconfiguration(self) -> None:
        self.requests += 1

    def stored_tasks(self) -> tuple[dict[str, str], ...]:
        return ()


class Maker:
    """Makes connectors and tasks of one kind."""

    def __init__(self, folder: Path, kind: str, **settings: str) -> None:
        given = {key.replace("_", "."): value for key, value in settings.items()}
        self.config = {**CONFIG, "connector.class": f"{MIRROR}Mirror{kind}Connector", **given}
        self.kind = kind
        self.spark = NoSpark({})
        self.factory = ConnectorFactory(worker_file(folder), self.spark, lambda _: "")

    def connector(self) -> Connector:
        return self.factory.make_connector(self.config)

    def task(self, *own: dict[str, str]) -> TaskWork:
        configs = {
            at: complete_settings(self.config, f"Mirror{self.kind}Task", each)
            for at, each in enumerate(own)
        }
        return self.factory.make_work(configs, lambda *_: None, for_ever)


@pytest.mark.parametrize(
    ("kind", "connector", "task"),
    [
        ("Source", MirrorSourceConnector, MirrorSourceTask),
        ("Checkpoint", MirrorCheckpointConnector, MirrorCheckpointTask),
        ("Heartbeat", MirrorHeartbeatConnector, MirrorHeartbeatTask),
    ],
)
def test_each_kind_has_its_own(tmp_path: Path, kind: str, connector: type, task: type) -> None:
    maker = Maker(tmp_path, kind)
    made, work = maker.connector(), maker.task({})
    assert (type(made), type(work)) == (connector, task)
    assert made.task_class == f"Mirror{kind}Task"
    # It takes some seconds to start, and is needed.
    assert maker.spark.begun == (kind == "Source")
    for each in (made, work):
        each.stop()
        assert each.join(1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_users_are_told_where_records_go(tmp_path: Path, kind: str) -> None:
    assert Maker(tmp_path, kind).connector().notice == ""
    elsewhere = Maker(tmp_path, kind, target_cluster_bootstrap_servers="127.0.0.1:2")
    notice = elsewhere.connector().notice
    assert notice.startswith("records go to 127.0.0.1:1, not to target.cluster.bootstrap.servers")


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("Source", {"enabled": "false"}),
        ("Checkpoint", {"enabled": "false"}),
        ("Checkpoint", {"emit.checkpoints.enabled": "false"}),
        ("Heartbeat", {"emit.heartbeats.enabled": "false"}),
    ],
    ids=str,
)
def test_what_is_off_runs_without_tasks(
    tmp_path: Path, kind: str, settings: dict[str, str]
) -> None:
    maker = Maker(tmp_path, kind, **settings)
    connector = maker.connector()
    assert maker.spark.begun == 0
    connector.connect()
    connector.start(Context())
    assert connector.refresh() == ""
    assert connector.task_configs() == []
    connector.stop()
    assert connector.join(1.0)


def test_groups_that_are_not_known_yet_are_no_tasks_yet(tmp_path: Path) -> None:
    connector = Maker(tmp_path, "Checkpoint").connector()
    assert isinstance(connector, MirrorCheckpointConnector)
    assert connector.task_configs() is None
    connector._groups._follow(("g2", "g1"))
    assert connector.task_configs() == [{"task.index": "0", "task.assigned.groups": "g1,g2"}]


def test_checkpoint_tasks_of_one_connector_are_one_unit(tmp_path: Path) -> None:
    maker = Maker(tmp_path, "Checkpoint")
    work = maker.task({"task.assigned.groups": "g1,g2"}, {"task.assigned.groups": "a%2Cb"})
    assert isinstance(work, MirrorCheckpointTask)
    assert work.groups == ("g1", "g2", "a,b")
    work.reconfigure({0: {"task.assigned.groups": "g2"}})
    after: tuple[str, ...] = work.groups
    assert after == ("g2",)


def test_a_source_task_copies_what_its_settings_say(tmp_path: Path) -> None:
    work = Maker(tmp_path, "Source").task({"task.assigned.partitions": "t-0,a-b-12"})
    assert isinstance(work, MirrorSourceTask)
    assert work.partitions == [TopicPartition("t", 0), TopicPartition("a-b", 12)]


def test_tasks_of_one_connector_share_what_they_have_in_common(tmp_path: Path) -> None:
    maker = Maker(tmp_path, "Source")
    one, other = maker.task({"task.index": "0"}), maker.task({"task.index": "1"})
    assert isinstance(one, MirrorSourceTask)
    assert isinstance(other, MirrorSourceTask)
    assert one._settings is other._settings
    maker.config["topics"] = "others"
    changed = maker.task({"task.index": "0"})
    assert isinstance(changed, MirrorSourceTask)
    assert changed._settings is not one._settings


@pytest.mark.parametrize("kind", KINDS)
def test_settings_that_cannot_be_are_refused_where_they_are_used(tmp_path: Path, kind: str) -> None:
    maker = Maker(tmp_path, kind, tasks_max="none")
    with pytest.raises(ConfigErrors):
        maker.connector()
    with pytest.raises(ConfigErrors):
        maker.task({})
    maker.config["connector.class"] = "FileStreamSource"
    with pytest.raises(UnusableConnector):
        maker.task({})


def test_topics_are_those_that_got_records_since(tmp_path: Path) -> None:
    work = Maker(tmp_path, "Heartbeat").task({})
    assert isinstance(work, MirrorHeartbeatTask)
    assert work.take_topics() == set()
    work._offsets.note(b"key")
    assert work.take_topics() == {"heartbeats"}
    assert work.take_topics() == set()


@pytest.mark.parametrize(
    ("state", "trace", "attempts", "shown"),
    [
        (TaskState.UNASSIGNED, "", 0, TaskReport(TaskEvent.ENDED)),
        (TaskState.RUNNING, "", 1, TaskReport(TaskEvent.CALLED_IN)),
        (TaskState.FAILED, "out of luck", 1, TaskReport(TaskEvent.RAISED, "out of luck")),
        (TaskState.UNASSIGNED, "out of luck", 1, TaskReport(TaskEvent.RAISED, "out of luck")),
        # It ran again since, and its link was lost: what happened before is over.
        (TaskState.UNASSIGNED, "", 2, TaskReport(TaskEvent.ENDED)),
        # The attempt that shall end: it still runs.
        (TaskState.RUNNING, "", 7, TaskReport(TaskEvent.ENDED)),
    ],
)
def test_how_a_source_task_is(
    tmp_path: Path, state: TaskState, trace: str, attempts: int, shown: TaskReport
) -> None:
    work = Maker(tmp_path, "Source").task({})
    assert isinstance(work, MirrorSourceTask)
    runner = FakeTask("t")
    runner.attempts = 7
    work.runner = cast("TaskRunner", runner)
    assert work.restart()
    assert runner.started == 1
    runner.state, runner.trace, runner.attempts = state, trace, attempts
    runner.has_failed = bool(trace)
    assert work.report() == shown


@pytest.mark.parametrize("kind", ["Checkpoint", "Heartbeat"])
def test_what_cannot_do_its_work_is_not_running(tmp_path: Path, kind: str) -> None:
    work = Maker(tmp_path, kind).task({})
    assert isinstance(work, MirrorCheckpointTask | MirrorHeartbeatTask)
    assert work.report() == TaskReport(TaskEvent.CALLED_IN)
    work.refused = "create topic 'x' on 'b': INVALID_REPLICATION_FACTOR"
    assert work.report() == TaskReport(TaskEvent.RAISED, work.refused)
    work.refused = ""
    assert work.report() == TaskReport(TaskEvent.CALLED_IN)


def test_a_copy_without_its_internal_topics_is_degraded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector = Maker(tmp_path, "Source").connector()
    assert isinstance(connector, MirrorSourceConnector)
    reason = "create topic 'mm2-offset-syncs.b.internal' on 'a': INVALID_REPLICATION_FACTOR"
    monkeypatch.setattr(MirrorSourceConnector, "degraded", reason)
    assert connector.notice == ""  # it has not tried yet
    connector._context = Context()
    assert connector.notice == f"DEGRADED: {reason}"
