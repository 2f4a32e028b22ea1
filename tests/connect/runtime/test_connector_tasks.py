"""Tasks of one connector on one worker: no partition ever has two, and who notices a change."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from sparkmirror.connect.connector import TaskConfigs, TaskReport
from sparkmirror.connect.entities import State, TargetState
from sparkmirror.connect.runtime.connector_tasks import ConnectorTasks
from sparkmirror.connect.runtime.status_publisher import TaskStatuses, WorkerIdentity
from sparkmirror.connect.states import TaskEvent
from sparkmirror.connect.storage.backing_stores import StoredStatus, Stores
from tests.connect.herder_fakes import (
    NAME,
    OTHER_ID,
    WORKER_ID,
    FakeConfigs,
    FakeGroup,
    FakeOffsets,
    FakeStatuses,
)

CLASS = "org.apache.kafka.connect.mirror.Mirror{}Task"


class StubTask:
    """Runs until the test ends it."""

    runner = work = None
    last_error = ""
    name = "stub"
    is_starting = False
    is_clean = True

    def __init__(self, configs: TaskConfigs, calls: list[str]) -> None:
        self.configs = configs
        self.has_ended = False
        self.is_stopping = False
        self.event = TaskEvent.CALLED_IN
        self._calls = calls

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(sorted(self.configs))

    @property
    def partitions(self) -> set[str]:
        texts = (each.get("task.assigned.partitions", "") for each in self.configs.values())
        return {part for text in texts for part in text.split(",") if part}

    def start(self) -> None:
        self._note("start")

    def reconfigure(self, configs: TaskConfigs) -> None:
        self.configs = configs
        self._note("reconfigure")

    def restart(self) -> None:
        self._note("restart")

    def stop(self) -> None:
        self.is_stopping = True
        self._note("stop")

    def join(self, seconds: float) -> None:
        self.has_ended = self.is_stopping and seconds > 0

    def report(self) -> TaskReport:
        return TaskReport(self.event, "why" if self.event is TaskEvent.RAISED else "")

    def take_topics(self) -> set[str]:
        return set()

    def _note(self, call: str) -> None:
        self._calls.append(f"{call} {','.join(map(str, self.ids))}")


class Rig:
    """The tasks of one connector; `made` are all that there ever were."""

    def __init__(self, kind: str = "Source") -> None:
        self.kind = kind
        self.calls: list[str] = []
        self.made: list[StubTask] = []
        # The numbers of those that other workers run.
        self.elsewhere: set[int] = set()
        self.statuses = FakeStatuses()
        stores = Stores(FakeConfigs(), self.statuses, FakeOffsets(), FakeGroup())
        publisher = TaskStatuses(NAME, stores, WorkerIdentity(WORKER_ID, "4.3.1"))
        self.tasks = ConnectorTasks(NAME, self._make, publisher)

    def _make(self, configs: TaskConfigs) -> StubTask:
        self.made.append(StubTask(configs, self.calls))
        return self.made[-1]

    def configs(self, *assigned: str, **settings: str) -> dict[int, Mapping[str, str]]:
        key = "task.assigned." + ("partitions" if self.kind == "Source" else "groups")
        own = {"name": NAME, "task.class": CLASS.format(self.kind), **settings}
        return {at: {**own, "task.index": str(at), key: each} for at, each in enumerate(assigned)}

    def want(self, *assigned: str, target: str = "STARTED", **settings: str) -> list[str]:
        """What that leads to."""
        self.calls.clear()
        configs = self.configs(*assigned, **settings)
        here = {at: each for at, each in configs.items() if at not in self.elsewhere}
        self.tasks.want(here, TargetState(target), configs.keys())
        self.check()
        self.tasks.publish()
        return list(self.calls)

    def end(self, *numbers: int) -> None:
        """Those of these numbers that were stopped end."""
        for task in self.made:
            if task.is_stopping and (not numbers or set(task.ids) & set(numbers)):
                task.has_ended = True

    def check(self) -> None:
        """The promise."""
        alive = [task for task in self.made if not task.has_ended]
        for at, task in enumerate(alive):
            for other in alive[:at]:
                assert task.partitions.isdisjoint(other.partitions)
                assert set(task.ids).isdisjoint(other.ids)

    @property
    def states(self) -> list[str]:
        return [status.state for _, status in sorted(self.statuses.tasks(NAME).items())]


def test_a_new_partition_goes_to_one_task_and_the_others_do_not_notice() -> None:
    rig = Rig()
    assert rig.want("t-0", "t-1") == ["start 0", "start 1"]
    assert rig.want("t-0", "t-1") == []
    assert rig.want("t-0,u-0", "t-1") == ["reconfigure 0"]
    assert rig.want("t-0,u-0", "t-1", "u-1") == ["start 2"]
    assert rig.want("t-0", "t-1", "u-1") == ["reconfigure 0"]
    assert rig.states == ["RUNNING"] * 3


def test_a_partition_that_moves_waits_for_the_end_of_its_task() -> None:
    rig = Rig()
    rig.want("t-0,t-1")
    assert rig.want("t-0", "t-1") == ["stop 0"]
    assert rig.states == ["RESTARTING", "UNASSIGNED"]
    assert rig.want("t-0", "t-1") == []
    rig.end()
    assert rig.want("t-0", "t-1") == ["start 0", "start 1"]
    assert rig.states == ["RUNNING", "RUNNING"]


def test_a_running_task_waits_for_what_another_one_gives_up() -> None:
    rig = Rig()
    rig.want("t-0", "t-1,t-2")
    assert rig.want("t-0,t-2", "t-1") == ["stop 1"]
    rig.end()
    assert rig.want("t-0,t-2", "t-1") == ["reconfigure 0", "start 1"]


def test_other_settings_restart_each_task_when_it_has_ended() -> None:
    rig = Rig()
    rig.want("t-0", "t-1")
    assert rig.want("t-0", "t-1", x="y") == ["stop 0", "stop 1"]
    rig.end(1)
    assert rig.want("t-0", "t-1", x="y") == ["start 1"]
    rig.end(0)
    assert rig.want("t-0", "t-1", x="y") == ["start 0"]


def test_a_task_that_is_gone_keeps_its_status_for_the_leader() -> None:
    rig = Rig()
    rig.want("t-0", "t-1")
    assert rig.want("t-0") == ["stop 1"]
    rig.end()
    rig.want("t-0")
    # The leader deletes the status: it may be of a task that was another worker's.
    assert rig.states == ["RUNNING", "RUNNING"]
    assert [task.ids for task in rig.tasks.held()] == [(0,)]


@pytest.mark.parametrize("target", ["PAUSED", "STOPPED"])
def test_an_idle_connector_has_no_running_tasks(target: str) -> None:
    rig = Rig()
    rig.want("t-0", "t-1")
    assert rig.want("t-0", "t-1", target=target) == ["stop 0", "stop 1"]
    assert rig.states == ["PAUSED", "PAUSED"]
    assert not rig.tasks.is_idle
    rig.end()
    assert rig.tasks.is_idle
    assert rig.want("t-0", "t-1") == ["start 0", "start 1"]
    assert rig.states == ["RUNNING", "RUNNING"]


def test_checkpoint_tasks_are_one_unit_and_share_their_state() -> None:
    rig = Rig("Checkpoint")
    assert rig.want("g1", "g2") == ["start 0,1"]
    assert rig.want("g1", "g2", "g3") == ["reconfigure 0,1,2"]
    rig.made[0].event = TaskEvent.RAISED
    rig.want("g1", "g2", "g3")
    assert rig.states == ["FAILED"] * 3
    assert {status.trace for status in rig.statuses.tasks(NAME).values()} == {"why"}
    rig.calls.clear()
    assert rig.tasks.restart(2)
    assert rig.calls == ["restart 0,1,2"]
    assert rig.states == ["RESTARTING"] * 3
    assert not rig.tasks.restart(3)


def test_a_task_that_moves_is_unassigned_as_soon_as_it_has_ended_here() -> None:
    rig = Rig()
    rig.want("t-0", "t-1")
    rig.elsewhere = {1}
    assert rig.want("t-0", "t-1") == ["stop 1"]
    assert rig.states == ["RUNNING", "RUNNING"]
    assert [task.ids for task in rig.tasks.held()] == [(0,), (1,)]
    rig.end()
    rig.want("t-0", "t-1")
    assert rig.states == ["RUNNING", "UNASSIGNED"]
    rig.statuses.put_task(NAME, 1, StoredStatus("RUNNING", OTHER_ID, 8))
    rig.want("t-0", "t-1")
    assert rig.states == ["RUNNING", "RUNNING"]


def test_what_another_worker_shows_of_a_task_that_moved_stays() -> None:
    rig = Rig()
    rig.want("t-0")
    rig.elsewhere = {0}
    rig.want("t-0")
    rig.statuses.put_task(NAME, 0, StoredStatus("RUNNING", OTHER_ID, 8))
    rig.end()
    rig.want("t-0")
    assert rig.statuses.tasks(NAME)[0].worker_id == OTHER_ID
    assert rig.states == ["RUNNING"]


def test_a_worker_that_others_may_have_replaced_ends_its_tasks_and_writes_nothing() -> None:
    rig = Rig()
    rig.want("t-0", "t-1")
    written = len(rig.statuses.said)
    rig.calls.clear()
    rig.tasks.abandon()
    rig.tasks.abandon()
    assert rig.calls == ["stop 0", "stop 1"]
    rig.tasks.publish()
    assert rig.want("t-0") == []
    rig.end()
    assert rig.want("t-0") == ["start 0"]
    assert [state for _, _, state in rig.statuses.said[written:]] == ["UNASSIGNED", "RUNNING"]


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_wanted_no_partition_has_two_tasks(seed: int) -> None:
    chance, rig = random.Random(seed), Rig()
    wanted: list[str] = []
    for _ in range(60):
        partitions = [f"t-{at}" for at in range(8)]
        chance.shuffle(partitions)
        count = chance.randint(1, 4)
        if chance.random() < 0.7:
            wanted = [
                ",".join(partitions[at::count][: chance.randint(0, 3)]) for at in range(count)
            ]
        rig.want(
            *wanted,
            target=chance.choice(["STARTED"] * 5 + ["PAUSED"]),
            x=chance.choice(["1"] * 5 + ["2"]),
        )
        if chance.random() < 0.6:
            rig.end(*chance.sample(range(4), 2))
    for _ in range(4):
        rig.want(*wanted, x="1")
        rig.end()
    assert rig.want(*wanted, x="1") == []
    running = [task for task in rig.made if not task.has_ended]
    assert {task.ids[0]: task.partitions for task in running} == {
        at: set(filter(None, each.split(","))) for at, each in enumerate(wanted)
    }
    # The leader deletes the statuses of tasks beyond these.
    assert rig.states[: len(wanted)] == [State.RUNNING] * len(wanted)


def test_only_how_tasks_end_with_the_process_decides_whether_it_ended_clean() -> None:
    rig = Rig()
    rig.want("t-0", "t-1")
    rig.made[0].is_clean = False
    rig.tasks.abandon()  # another worker copies again what this one did not store
    rig.end()
    rig.tasks.publish()
    assert not rig.tasks.ended_clean
    rig.tasks.count_ends()
    assert rig.tasks.ended_clean
    rig.want("t-0", "t-1")
    rig.made[-1].is_clean = False
    rig.want()
    rig.end()
    rig.tasks.publish()
    assert not rig.tasks.ended_clean
