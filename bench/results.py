"""The measured figures, in the form of latest.json.

{"date": ..., "machine": {...}, "settings": {...},
 "cases":    {case: {system: {measure: number}}},       the median of the rounds
 "best":     {case: {system: {measure: number}}},       the best round
 "rounds":   {case: {system: [{measure: number}]}},     all of them
 "targets":  [{"target": ..., "value": ..., "met": ...}],
 "failures": [{"case": ..., "system": ..., "why": ...}]}
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException

from sparkmirror.errors import MirrorError

Measures = dict[str, float]
# Runs one system on data that is ready; the figures of each measured round.
RunSystem = Callable[[str], list[Measures]]

# Errors that end the run of one system, without losing the figures of the others.
FAILURES = (MirrorError, TimeoutError, EOFError, KafkaException)

_DIGITS = 3


@dataclass(slots=True)
class Results:
    """The figures of a run so far."""

    date: str
    machine: Mapping[str, str]
    settings: Mapping[str, Any]
    cases: dict[str, dict[str, Measures]] = field(default_factory=dict)
    best: dict[str, dict[str, Measures]] = field(default_factory=dict)
    rounds: dict[str, dict[str, list[Measures]]] = field(default_factory=dict)
    failures: list[dict[str, str]] = field(default_factory=list)

    def add(self, case: str, system: str, rounds: list[Measures]) -> None:
        """Store the rounds of one run, their medians, and the best of them."""
        rounded = [rounded_measures(measures) for measures in rounds]
        self.rounds.setdefault(case, {})[system] = rounded
        self.cases.setdefault(case, {})[system] = rounded_measures(median_measures(rounds))
        self.best.setdefault(case, {})[system] = best_round(rounded)

    def add_failure(self, case: str, system: str, why: str) -> None:
        """Record a run without figures."""
        self.failures.append({"case": case, "system": system, "why": why})

    def measure(self, case: str, system: str, name: str) -> float | None:
        """One figure, None if it was not measured."""
        return self.cases.get(case, {}).get(system, {}).get(name)


def median_measures(rounds: list[Measures]) -> Measures:
    """The median of each measure over the rounds that have it."""
    names = {name for measures in rounds for name in measures}
    return {
        name: statistics.median(measures[name] for measures in rounds if name in measures)
        for name in names
    }


def best_round(rounds: list[Measures]) -> Measures:
    """The round with the highest throughput, or the lowest p99; whole, never a mix of rounds."""

    def rank(measures: Measures) -> float:
        return measures.get("mb_per_s", -measures.get("p99_ms", 0.0))

    return max(rounds, key=rank)


def rounded_measures(measures: Measures) -> Measures:
    """The measures without insignificant digits."""
    return {name: round(value, _DIGITS) for name, value in sorted(measures.items())}


def as_json(results: Results, targets: list[dict[str, Any]]) -> str:
    """The text of latest.json."""
    content = {
        "date": results.date,
        "machine": results.machine,
        "settings": results.settings,
        "cases": results.cases,
        "best": results.best,
        "rounds": results.rounds,
        "targets": targets,
        "failures": results.failures,
    }
    return json.dumps(content, indent=2) + "\n"


def store_text(path: Path, text: str) -> None:
    """Write a file whole or not at all, because a run may be interrupted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".part")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
