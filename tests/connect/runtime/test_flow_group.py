"""The flows of one group: they run where the group is led, and nowhere else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from sparkmirror.connect.runtime import flow_group
from sparkmirror.connect.runtime.flow_group import (
    STOP_SECONDS,
    Connectors,
    FlowGroup,
    FlowView,
    Phase,
)
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.errors import MirrorError
from tests.clusters import wait_for
from tests.connect.runtime.test_mirror_maker import make_config


class FakeMember:
    """A place in a group, given by the test."""

    def __init__(self) -> None:
        self.looks = 0
        self._tenure: int | None = None
        self.seconds = 0.0
        self._tenures = 0
        self.leader_url = ""
        self.last_error = ""
        self.has_left = False
        self._changed: Callable[[], None] = lambda: None

    @property
    def is_leader(self) -> bool:
        return self.seconds > 0

    @property
    def tenure(self) -> int | None:
        self.looks += 1
        return self._tenure

    def lend(self) -> Callable[[], float]:
        return lambda: self.seconds

    def on_change(self, callback: Callable[[], None]) -> None:
        self._changed = callback

    def start(self) -> None:
        """Joins when the test says so."""

    def stop(self, seconds: float = 0.0) -> None:
        self.has_left = True

    def notify(self) -> None:
        self._changed()

    def lead(self) -> None:
        self.seconds, self.leader_url = 60.0, "me"
        self._tenures += 1
        self._tenure = self._tenures
        self._changed()

    def follow(self, leader: str) -> None:
        self.seconds, self.leader_url = 0.0, leader
        self._tenure = None
        self._changed()


class FakeConnector:
    """Writes down what happens to it."""

    last_error = ""

    def __init__(self, name: str, calls: list[str], flow: Any = None, clean: bool = True) -> None:
        self.name, self.flow, self._calls, self._clean = name, flow, calls, clean
        self.tasks: list[Any] = []

    def connect(self) -> None:
        self._calls.append(f"connect {self.name}")

    def disconnect(self) -> None:
        self._calls.append(f"disconnect {self.name}")

    def start(self, *arguments: Any) -> None:
        self._calls.append(f"start {self.name}")
        for lease in arguments[2:]:
            self._calls.append(f"lease of {lease():.0f} s")

    start_with_tasks = start

    def stop(self) -> None:
        self._calls.append(f"stop {self.name}")

    def join(self, seconds: float) -> bool:
        assert 0 < seconds <= STOP_SECONDS
        self._calls.append(f"join {self.name}")
        return self._clean


class FakeSpark:
    """Up at once, unless the test holds it back."""

    def __init__(self) -> None:
        self.up = threading.Event()
        self.up.set()
        self.error: MirrorError | None = None

    def get(self) -> tuple[str, str]:
        self.up.wait()
        if self.error is not None:
            raise self.error
        return "engine", "links"


START = ["start beat", "start source", "lease of 60 s"]
STOP = ["stop source", "stop beat", "join source", "join beat"]


class Rig:
    """One group with one flow."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.member, self.spark = FakeMember(), FakeSpark()
        self.calls: list[str] = []
        self.clean = {"source": True, "beat": True}
        monkeypatch.setattr(flow_group, "WorkerGroupMember", lambda *_, **__: self.member)
        self.flow = make_config(folder).flows[0]
        spark = cast("Worker", self.spark)
        self.group = FlowGroup(self.flow.worker, self.make, spark)
        self.view = FlowView(self.flow, self.group)
        self.group.start()

    def make(self) -> Connectors:
        source = FakeConnector("source", self.calls, self.flow, self.clean["source"])
        beat = FakeConnector("beat", self.calls, clean=self.clean["beat"])
        return Connectors([cast("Any", source)], [beat])

    def wait_for_phase(self, phase: Phase) -> None:
        wait_for(lambda: self.group.phase is phase, within=10.0, describe=lambda: str(self.calls))

    def spin(self) -> None:
        """Let the group's thread look a few times."""
        looks = self.member.looks
        wait_for(lambda: self.member.looks > looks + 3, within=10.0)

    def stop(self) -> bool:
        self.group.stop()
        self.group.finish(deadline=float("inf"))
        self.group.leave()
        return self.group.is_clean


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    rig = Rig(tmp_path, monkeypatch)
    yield rig
    rig.spark.up.set()
    rig.stop()


def test_flows_run_where_the_group_is_led(rig: Rig) -> None:
    rig.member.lead()
    rig.wait_for_phase(Phase.RUNNING)
    assert rig.calls == START
    assert rig.view.stands_by == ""
    assert rig.stop()
    assert rig.calls == [*START, *STOP]
    assert rig.member.has_left


def test_a_stand_by_says_who_copies_and_starts_nothing(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    rig.member.follow("other/7")
    rig.wait_for_phase(Phase.STANDING_BY)
    assert rig.view.stands_by == "standing by: other/7 copies this flow"
    assert "[a-mm2 on 'b'] stands by: other/7 copies this flow" in caplog.text
    assert rig.stop()
    assert rig.calls == ["disconnect source", "disconnect beat"]


def test_a_stand_by_takes_over(rig: Rig) -> None:
    rig.member.follow("other/7")
    rig.wait_for_phase(Phase.STANDING_BY)
    rig.member.lead()
    rig.wait_for_phase(Phase.RUNNING)
    assert rig.calls == START


def test_a_lost_lead_ends_the_flows_and_the_next_one_starts_others(rig: Rig) -> None:
    rig.member.lead()
    rig.wait_for_phase(Phase.RUNNING)
    rig.member.follow("other/7")
    rig.wait_for_phase(Phase.STANDING_BY)
    assert rig.calls == [*START, *STOP]
    rig.calls.clear()
    rig.member.lead()
    rig.wait_for_phase(Phase.RUNNING)
    assert sorted(rig.calls[:2]) == ["connect beat", "connect source"]
    assert rig.calls[2:] == START


def test_a_coordinator_that_does_not_answer_for_a_while_stops_no_flow(rig: Rig) -> None:
    rig.member.lead()
    rig.wait_for_phase(Phase.RUNNING)
    rig.member.seconds = 0.0  # the lease is over, the tenure is not
    rig.member.notify()
    rig.spin()
    assert rig.group.phase is Phase.RUNNING
    assert rig.calls == START


def test_what_keeps_us_out_of_the_group_is_shown(rig: Rig) -> None:
    rig.member.last_error = "another MirrorMaker 2 runs this flow"
    assert rig.view.stands_by == "another MirrorMaker 2 runs this flow"
    assert rig.view.tasks == []


def test_a_stop_does_not_wait_for_spark(rig: Rig) -> None:
    rig.spark.up.clear()
    rig.spark.error = MirrorError("Spark is not started: this process stops")
    rig.member.lead()
    rig.wait_for_phase(Phase.STARTING)
    rig.group.stop()
    rig.spark.up.set()
    assert rig.stop()
    assert not {"start beat", "start source"} & set(rig.calls)
    assert rig.calls[-4:] == STOP
    assert rig.group.failure is None


def test_a_spark_that_cannot_start_ends_the_process_before_anything_is_created(rig: Rig) -> None:
    rig.spark.error = MirrorError("Spark has no Java")
    rig.member.lead()
    wait_for(lambda: rig.group.failure is not None, within=10.0, describe=lambda: str(rig.calls))
    assert str(rig.group.failure) == "Spark has no Java"
    assert rig.calls == STOP


@pytest.mark.parametrize(
    ("unclean", "clean"),
    [pytest.param("source", False, id="positions"), pytest.param("beat", True, id="heartbeats")],
)
def test_only_positions_count_for_a_clean_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unclean: str, clean: bool
) -> None:
    rig = Rig(tmp_path, monkeypatch)
    rig.clean[unclean] = False
    rig.group.connectors = rig.make()
    rig.member.lead()
    rig.wait_for_phase(Phase.RUNNING)
    assert rig.stop() is clean
    assert "join beat" in rig.calls
