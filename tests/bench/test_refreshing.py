"""The refresh case: what there is, what is waited for, and the figures that come of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from bench.cases import CASES, RefreshCase
from bench.process_tree import PeakMemory, ProcessTree, Usage
from bench.refresh_looks import drop_found
from bench.refreshing import Milestone, refresh_measures, refresh_names, watch
from bench.systems import Mirror


@pytest.mark.parametrize(
    ("scale", "count"),
    [
        pytest.param(1.0, 2_000, id="full"),
        pytest.param(0.1, 200, id="smaller"),
        pytest.param(0.0, 20, id="never too few"),
    ],
)
def test_there_are_as_many_groups_as_topics(scale: float, count: int) -> None:
    case = CASES["refresh"]
    assert isinstance(case, RefreshCase)
    names = refresh_names(case, scale)
    assert len(set(names.topics)) == len(names.groups) == count
    assert set(names.groups.values()) == set(names.topics)
    assert set(names.with_settings) < set(names.topics)
    assert len(names.with_settings) == count // 10


def test_what_was_found_is_not_asked_about_again() -> None:
    asked: list[int] = []
    there = 100

    def are_there(names: Sequence[str]) -> bool:
        asked.append(len(names))
        return max(int(name) for name in names) < there

    missing = [str(number) for number in range(120)]
    assert not drop_found(missing, are_there)
    assert missing == [str(number) for number in range(100, 120)]
    there = 120
    assert drop_found(missing, are_there)
    assert asked == [50, 50, 20, 20]


class Looks:
    """Each thing is there at its third look, and must not be looked for after that."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def chain(self, *names: str) -> list[tuple[str, Look]]:
        return [(name, Look(self.log, name)) for name in names]


class Look:
    """One of them."""

    def __init__(self, log: list[str], name: str) -> None:
        self._log = log
        self._name = name

    def __call__(self) -> bool:
        self._log.append(self._name)
        return self._log.count(self._name) == 3


class FakeTree:
    """Uses a second of CPU between two samples."""

    def __init__(self) -> None:
        self.samples = 0

    def sample(self) -> Usage:
        self.samples += 1
        return Usage(float(self.samples), 0.0, self.samples * 1_000_000, 2_000_000)


class FakeMirror:
    """A mirror that never ends."""

    def __init__(self, started_at: float) -> None:
        self.started_at = started_at
        self.tree = cast("ProcessTree", FakeTree())
        self.log_path = Path("mm2.log")

    def require_running(self) -> None:
        """It runs."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times that were slept; they are all the time that passes."""
    slept: list[float] = []
    monkeypatch.setattr("bench.refreshing.time.sleep", slept.append)
    monkeypatch.setattr("bench.refreshing.time.monotonic", lambda: 100.0 + sum(slept))
    return slept


def test_a_chain_is_looked_at_link_by_link(clock: list[float]) -> None:
    looks = Looks()
    chains = [looks.chain("topics_s", "configs_s"), looks.chain("records_s")]
    measures = watch(cast("Mirror", FakeMirror(99.0)), chains)
    assert [looks.log.count(name) for name in ("topics_s", "configs_s", "records_s")] == [3, 3, 3]
    assert looks.log.index("configs_s") > 2 * 2
    assert measures["topics_s"] == measures["records_s"] == pytest.approx(1.4)
    assert measures["configs_s"] == pytest.approx(1.8)
    assert sum(clock) == pytest.approx(0.8)


@pytest.mark.usefixtures("clock")
def test_a_run_that_does_not_end_is_given_up_with_what_is_missing() -> None:
    mirror = cast("Mirror", FakeMirror(started_at=-501.0))
    with pytest.raises(TimeoutError, match=r"after 600 s: topics_s, records_s; see mm2\.log"):
        watch(mirror, [[("topics_s", lambda: False)], [("records_s", lambda: False)]])


def test_figures_have_times_and_the_cpu_until_then() -> None:
    found = {
        "topics_s": Milestone(5.0, 10.0),
        "configs_s": Milestone(5.5, 11.0),
        "records_s": Milestone(7.0, 12.0),
        "checkpoints_s": Milestone(6.0, 11.5),
        "group_offsets_s": Milestone(9.0, 15.0),
    }
    assert refresh_measures(found, PeakMemory(500_000_000, 90_000_000)) == {
        "topics_s": 5.0,
        "configs_s": 5.5,
        "records_s": 7.0,
        "checkpoints_s": 6.0,
        "group_offsets_s": 9.0,
        "topics_cpu_s": 12.0,
        "cpu_s": 15.0,
        "rss_mb": 500.0,
        "task_rss_mb": 90.0,
    }


def test_a_system_without_spark_has_no_task_memory() -> None:
    found = dict.fromkeys(("topics_s", "configs_s", "records_s"), Milestone(1.0, 1.0))
    assert "task_rss_mb" not in refresh_measures(found, PeakMemory(5, 0))
