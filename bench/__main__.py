"""python -m bench: run the benchmark, write latest.json and RESULTS.md, print the tables."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType

from bench.cases import (
    CASES,
    MM2_TUNED,
    NO_MIRROR,
    SYSTEMS,
    Case,
    CopyCase,
    LatencyCase,
    RefreshCase,
    ScaleCase,
    StartCase,
    WanCase,
    parse_cases,
    parse_systems,
)
from bench.copying import prepared_copy
from bench.first_record import prepared_start
from bench.latency import prepared_latency
from bench.machine import describe_machine
from bench.progress import report
from bench.refreshing import prepared_refresh
from bench.results import FAILURES, Measures, Results, RunSystem, as_json, store_text
from bench.scaling import prepared_scale
from bench.stage import Stage, running_stage
from bench.tables import format_number, render
from bench.targets import judge
from bench.wan import Measuring, wan_runs

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line."""

    cases: list[Case]
    systems: list[str]
    scale: float
    rounds: int
    json_path: Path
    table_path: Path


def parse_options(words: list[str]) -> Options:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    add = parser.add_argument
    add(
        "--cases",
        default=",".join(CASES),
        help="comma-separated, also scale and latency",
    )
    add("--systems", default=",".join(SYSTEMS), help="comma-separated")
    add("--scale", type=float, default=1.0, help="share of the full data and time (%(default)s)")
    add("--rounds", type=int, default=3, help="rounds of a copy, the median counts (%(default)s)")
    add("--json", type=Path, default=_HERE / "out" / "latest.json", help="file for the figures")
    add("--table", type=Path, default=_HERE / "RESULTS.md", help="file for the tables")
    got = parser.parse_args(words)
    try:
        cases, systems = parse_cases(got.cases), parse_systems(got.systems)
    except ValueError as error:
        parser.error(str(error))
    return Options(cases, systems, got.scale, got.rounds, got.json, got.table)


def main(words: list[str]) -> int:
    """Run the benchmark; 1 if a system could not be measured."""
    options = parse_options(words)
    # Raise an exception, so that brokers and mirrors are stopped and their data deleted.
    signal.signal(signal.SIGTERM, _end)
    results = run(options)
    sys.stdout.write(render(results, judge(results)))
    report(f"figures in {options.json_path}, tables in {options.table_path}")
    return 1 if results.failures else 0


def _end(signal_number: int, _frame: FrameType | None) -> None:
    # A second signal (timeout(1) and the shell may both send one) must not interrupt the cleanup.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(128 + signal_number)


def run(options: Options) -> Results:
    """Measure all chosen cases; figures are stored after every run of a system."""
    results = Results(
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        machine=describe_machine(),
        settings={"scale": options.scale, "rounds": options.rounds},
    )
    with running_stage(options.json_path.parent, options.scale, options.rounds) as stage:
        for case in options.cases:
            report(f"{case.name}: preparing")
            for name, system, run_one in runs_of(stage, case, options.systems):
                measure(results, name, system, run_one)
                store(results, options)
    return results


def runs_of(stage: Stage, case: Case, asked: list[str]) -> Iterator[Measuring]:
    """The measurements in order: the name, the system, and the function that measures it."""
    if isinstance(case, WanCase):
        yield from wan_runs(stage, case, asked)
        return
    systems = systems_of(case, asked)
    with prepared_case(stage, case, systems) as run_system:
        for system in systems:
            yield case.name, system, partial(run_system, system)


def systems_of(case: Case, asked: list[str]) -> list[str]:
    """The requested systems that the case measures, and those that it compares them with."""
    if isinstance(case, LatencyCase):
        # Tuned for throughput, MirrorMaker 2 lets records wait for half a second by design.
        return [*(each for each in asked if each != MM2_TUNED), NO_MIRROR]
    if isinstance(case, ScaleCase) and case.groups:
        # Its tuning is for throughput, which does not matter here, and the case takes minutes.
        return [each for each in asked if each != MM2_TUNED]
    return asked


def prepared_case(
    stage: Stage,
    case: CopyCase | LatencyCase | ScaleCase | StartCase | RefreshCase,
    systems: list[str],
) -> AbstractContextManager[RunSystem]:
    """The data of a case on the source, and the function that runs a system on it."""
    if isinstance(case, CopyCase):
        return prepared_copy(stage, case)
    if isinstance(case, LatencyCase):
        return prepared_latency(stage, case, systems)
    if isinstance(case, RefreshCase):
        return prepared_refresh(stage, case)
    if isinstance(case, StartCase):
        return prepared_start(stage, case)
    return prepared_scale(stage, case)


def measure(
    results: Results, case: str, system: str, run_one: Callable[[], list[Measures]]
) -> None:
    """Run one system; a failure must not lose the figures of the others."""
    try:
        results.add(case, system, run_one())
    except FAILURES as error:
        results.add_failure(case, system, str(error))
        report(f"{case} {system}: FAILED: {error}")
        return
    for figures in results.rounds[case][system]:
        shown = ", ".join(f"{name} {format_number(value)}" for name, value in figures.items())
        report(f"{case} {system}: {shown}")


def store(results: Results, options: Options) -> None:
    """Write all files with the results so far."""
    outcomes = judge(results)
    rows = [outcome.as_row() for outcome in outcomes]
    figures = as_json(results, rows)
    store_text(options.json_path, figures)
    # All rounds are beside the tables, so that readers can check the medians.
    store_text(options.table_path.with_suffix(".json"), figures)
    store_text(options.table_path, render(results, outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
