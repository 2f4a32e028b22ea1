"""What the latency case produces, and that all of it must arrive."""

from __future__ import annotations

from typing import cast

import pytest

from bench import latency
from bench.cases import CASES, LatencyCase
from bench.latency import prepared_latency, require_all
from bench.results import Measures
from bench.stage import Stage
from bench.trickle import Trickle
from sparkmirror.errors import MirrorError

TRICKLE = Trickle("a", phase_seconds=(12.0, 5.0), records_per_second=100, value_bytes=20)


def test_every_phase_has_its_records() -> None:
    assert [TRICKLE.records(phase) for phase in (0, 1)] == [1_200, 500]
    assert TRICKLE.all_records == 1_700


def test_all_records_must_arrive() -> None:
    require_all({0: [9.0] * 1_200, 1: [1.0] * 500}, TRICKLE, "x.a", 0)
    with pytest.raises(MirrorError, match=r"x\.a: 1699 of 1700 records arrived"):
        require_all({0: [9.0] * 1_200, 1: [1.0] * 499}, TRICKLE, "x.a", 0)


def test_a_producer_that_failed_is_told() -> None:
    with pytest.raises(MirrorError, match="the producer ended with 3"):
        require_all({0: [9.0] * 1_700}, TRICKLE, "x.a", 3)


def test_all_systems_run_twice_and_one_that_fails_does_not_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs: list[tuple[str, int]] = []

    def run(_stage: Stage, _case: LatencyCase, system: str, visit: int) -> list[Measures]:
        runs.append((system, visit))
        if system == "b":
            raise MirrorError("b failed")
        return [{"p99_ms": 9.0 - visit}]

    monkeypatch.setattr(latency, "run_latency", run)
    case = cast("LatencyCase", CASES["latency-1000"])
    with prepared_latency(cast("Stage", None), case, ["a", "b", "c"]) as tell:
        assert runs == [("a", 0), ("b", 0), ("c", 0), ("a", 1), ("c", 1)]
        assert tell("a") == tell("c") == [{"p99_ms": 9.0}, {"p99_ms": 8.0}]
        with pytest.raises(MirrorError, match="b failed"):
            tell("b")
