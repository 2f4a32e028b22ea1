"""The shape of latest.json, the targets, and the tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.cases import CASES, WAN_CASE
from bench.results import Results, as_json, best_round, median_measures, store_text
from bench.tables import format_number, render, render_case, render_table
from bench.targets import AT_LEAST, AT_MOST, BELOW, TARGETS, Outcome, Target, judge


@pytest.fixture
def results() -> Results:
    found = Results("2026-11-01 10:00 UTC", {"cpu": "X", "cores": "2"}, {"scale": 1.0})
    found.add(
        "1k-none",
        "sparkmirror",
        [
            {"mb_per_s": 300.0, "cpu_s_per_gb": 1.0, "task_cpu_s_per_gb": 0.6},
            {"mb_per_s": 400.12345, "cpu_s_per_gb": 1.25, "task_cpu_s_per_gb": 0.7},
            {"mb_per_s": 500.0, "cpu_s_per_gb": 1.5, "task_cpu_s_per_gb": 0.8},
        ],
    )
    found.add("1k-none", "mm2-tuned", [{"mb_per_s": 100.0, "cpu_s_per_gb": 8.0}])
    found.add("1k-none", "mm2-default", [{"mb_per_s": 50.0, "cpu_s_per_gb": 5.0}])
    return found


def test_json_has_cases_by_system_and_measure(results: Results) -> None:
    content = json.loads(as_json(results, [outcome.as_row() for outcome in judge(results)]))
    assert content["cases"]["1k-none"]["sparkmirror"]["mb_per_s"] == 400.123
    assert content["best"]["1k-none"]["sparkmirror"]["mb_per_s"] == 500.0
    assert content["cases"]["1k-none"]["mm2-tuned"] == {"cpu_s_per_gb": 8.0, "mb_per_s": 100.0}
    assert len(content["rounds"]["1k-none"]["sparkmirror"]) == 3
    assert content["machine"]["cores"] == "2"
    assert content["targets"][0] == {
        "target": "1k-none: mb_per_s / the better mm2 >= 3.5",
        "value": 4.0012,
        "met": True,
    }
    assert content["failures"] == []


@pytest.mark.parametrize(
    ("rounds", "index"),
    [
        pytest.param([{"mb_per_s": 1.0}, {"mb_per_s": 2.0, "cpu_s_per_gb": 9.0}], 1, id="faster"),
        pytest.param([{"p99_ms": 3.0, "max_ms": 9.0}, {"p99_ms": 4.0, "max_ms": 5.0}], 0, id="p99"),
        pytest.param([{"start_s": 3.0}], 0, id="only one"),
    ],
)
def test_best_round_is_taken_whole(rounds: list[dict[str, float]], index: int) -> None:
    assert best_round(rounds) is rounds[index]


def target(sign: str, limit: float) -> Target:
    return Target("tiny", "records_per_s", sign, limit, against="mm2-tuned")


@pytest.mark.parametrize(
    ("sign", "value", "met"),
    [
        pytest.param(AT_LEAST, 2.0, True, id="at least, equal"),
        pytest.param(AT_LEAST, 1.9, False, id="at least, less"),
        pytest.param(AT_MOST, 2.0, True, id="at most, equal"),
        pytest.param(AT_MOST, 2.1, False, id="at most, more"),
        pytest.param(BELOW, 2.0, False, id="below, equal"),
        pytest.param(BELOW, 1.9, True, id="below, less"),
        pytest.param(BELOW, None, None, id="not measured"),
    ],
)
def test_target_is_judged_by_its_sign(sign: str, value: float | None, met: bool | None) -> None:
    assert Outcome(target(sign, 2.0), value).is_met is met


def test_small_limits_read_as_fractions() -> None:
    assert str(target(AT_MOST, 1 / 8)) == "tiny: records_per_s / mm2-tuned <= 1/8"


def test_targets_compare_ours_with_theirs(results: Results) -> None:
    values = {str(outcome.target): outcome.value for outcome in judge(results)}
    assert values["1k-none: cpu_s_per_gb / the better mm2 <= 1/10"] == pytest.approx(1.25 / 5)
    assert values["1k-none: task_cpu_s_per_gb <= 1"] == 0.7
    assert values["latency-1000: p50_ms / mm2-default <= 1/5"] is None


def test_better_mm2_is_known_only_when_both_were_measured(results: Results) -> None:
    del results.cases["1k-none"]["mm2-default"]
    values = {str(outcome.target): outcome.value for outcome in judge(results)}
    assert values["1k-none: mb_per_s / the better mm2 >= 3.5"] is None


def test_median_is_taken_of_each_measure_by_itself() -> None:
    rounds = [{"a": 3.0, "b": 1.0}, {"a": 1.0, "b": 2.0}, {"a": 2.0, "b": 9.0, "c": 5.0}]
    assert median_measures(rounds) == {"a": 2.0, "b": 2.0, "c": 5.0}


def test_copy_task_memory_is_limited_in_every_case() -> None:
    lines = {*(line.name for line in WAN_CASE.lines), WAN_CASE.live.name}
    expected = (set(CASES) - {WAN_CASE.name}) | lines
    assert {row.case for row in TARGETS if row.measure == "task_rss_mb"} == expected


def test_document_shows_date_machine_cases_targets_and_failures(results: Results) -> None:
    results.add_failure("tiny", "mm2-tuned", "it ended\nwith a long log")
    text = render(results, judge(results))
    assert "2026-11-01 10:00 UTC. cpu X, cores 2. Settings: scale 1.0." in text
    assert "## 1k-none" in text
    assert "| 1k-none: mb_per_s / the better mm2 >= 3.5" in text
    assert "| tiny | mm2-tuned | it ended |" in text
    assert "with a long log" not in text


def test_case_table_has_ours_first_and_ratios_to_it() -> None:
    medians = {
        "mm2-tuned": {"mb_per_s": 100.0, "rss_mb": 900.0},
        "sparkmirror": {"mb_per_s": 400.0, "rss_mb": 900.0, "task_rss_mb": 90.0},
    }
    best = {"mm2-tuned": {"mb_per_s": 110.0}, "sparkmirror": {"mb_per_s": 420.0}}
    table = render_case(medians, best)
    head, _, ours, theirs = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()
    ]
    assert head == ["system", "MB/s", "RSS MB", "largest copy task MB"]
    assert ours == ["sparkmirror", "400 [420]", "900", "90.0"]
    assert theirs == ["mm2-tuned", "100 [110] (0.25x)", "900 (1x)", ""]


def test_what_the_host_took_is_shown_and_not_compared() -> None:
    rows = {
        "sparkmirror": {"p99_ms": 4.0, "steal_percent": 0.5},
        "no-mirror": {"p99_ms": 2.0, "steal_percent": 1.0},
    }
    lines = render_case(rows, rows).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == ["system", "p99 ms", "CPU % taken by the host"]
    assert cells[2:] == [
        ["sparkmirror", "4.00 [4.00]", "0.50"],
        ["no-mirror", "2.00 [2.00] (0.5x)", "1.00"],
    ]


def test_table_columns_line_up() -> None:
    lines = render_table(["a", "long head"], [["wide cell", "1"]]).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[1] == "| --------- | --------- |"


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234567.8, "1,234,568"), (123.4, "123"), (12.34, "12.3"), (1.234, "1.23"), (0.0, "0.00")],
)
def test_numbers_have_three_digits_that_count(value: float, text: str) -> None:
    assert format_number(value) == text


def test_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "out" / "latest.json"
    store_text(path, "first")
    store_text(path, "second")
    assert path.read_text() == "second"
    assert [file.name for file in path.parent.iterdir()] == ["latest.json"]
