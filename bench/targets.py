"""The targets of sparkmirror, as a table, and whether it meets them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench.cases import (
    BETTER_MM2,
    CASES,
    MM2_DEFAULT,
    MM2_TUNED,
    SOURCE,
    SPARKMIRROR,
    TARGET,
    WAN_CASE,
    WAN_LINES,
    WAN_PARTITIONS,
    WINDOW_SECONDS,
    CopyCase,
)
from bench.results import Results

AT_LEAST = ">="
AT_MOST = "<="
BELOW = "<"


@dataclass(frozen=True, slots=True)
class Target:
    """A limit for one figure of ours, or for its ratio to the figure of another system."""

    case: str
    measure: str
    sign: str
    limit: float
    against: str = ""

    def __str__(self) -> str:
        ratio = f" / {self.against}" if self.against else ""
        return f"{self.case}: {self.measure}{ratio} {self.sign} {_shown(self.limit)}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A target and the measured value; None if it was not measured."""

    target: Target
    value: float | None

    @property
    def is_met(self) -> bool | None:
        return None if self.value is None else _holds(self.value, self.target)

    def as_row(self) -> dict[str, Any]:
        """The row in latest.json."""
        value = None if self.value is None else round(self.value, 4)
        return {"target": str(self.target), "value": value, "met": self.is_met}


_REFRESH_FIGURES = (
    "topics_s",
    "configs_s",
    "records_s",
    "topics_cpu_s",
    "checkpoints_s",
    "group_offsets_s",
    "cpu_s",
)

_WAN_NAMES = (*(line.name for line in WAN_LINES), WAN_CASE.live.name)
_WAN_TARGETS = (
    *(
        Target(f"wan-{far}-80-{partitions}", "mb_per_s", AT_LEAST, limit, against=BETTER_MM2)
        for far, limit in ((SOURCE, 5.0), (TARGET, 3.0))
        for partitions in WAN_PARTITIONS
    ),
    *(
        Target(f"wan-source-200-{partitions}", "mb_vs_20_ms", AT_LEAST, 1 / 2)
        for partitions in WAN_PARTITIONS
    ),
    *(
        Target(f"wan-source-80-{partitions}", "cpu_vs_0_ms", AT_MOST, 2.0)
        for partitions in WAN_PARTITIONS
    ),
    # The delay of the line, and 5 ms.
    Target(WAN_CASE.live.name, "p50_ms", AT_MOST, WAN_CASE.live_delay_ms + 5.0),
)

TARGETS = (
    Target("1k-none", "mb_per_s", AT_LEAST, 3.5, against=BETTER_MM2),
    Target("1k-none", "cpu_s_per_gb", AT_MOST, 1 / 10, against=BETTER_MM2),
    Target("1k-none", "task_cpu_s_per_gb", AT_MOST, 1.0),
    Target("1k-tls", "cpu_s_per_gb", AT_MOST, 1 / 5, against=BETTER_MM2),
    Target("100b-lz4", "mb_per_s", AT_LEAST, 10.0, against=BETTER_MM2),
    Target("100b-lz4", "cpu_s_per_gb", AT_MOST, 1 / 40, against=BETTER_MM2),
    Target("tiny", "mb_per_s", AT_LEAST, 3.0, against=BETTER_MM2),
    Target("tiny", "cpu_s_per_gb", AT_MOST, 1 / 4, against=BETTER_MM2),
    Target("tiny", "mb_per_s", AT_LEAST, 5.0, against=MM2_TUNED),
    Target("tiny", "cpu_s_per_gb", AT_MOST, 1 / 8, against=MM2_TUNED),
    *(
        Target(case, measure, AT_MOST, limit, against=MM2_DEFAULT)
        for case in ("latency-1000", "latency-20000")
        for measure, limit in (("p50_ms", 1 / 5), ("p99_ms", 1 / 3))
    ),
    *(Target(name, "idle_cpu_percent", BELOW, 5.0) for name in ("scale-1000", "scale-10000")),
    Target("scale-10000", "start_s", BELOW, 60.0),
    Target("start", "start_s", AT_MOST, 1 / 2, against=MM2_DEFAULT),
    *(Target("refresh", name, AT_MOST, 1.0, against=MM2_DEFAULT) for name in _REFRESH_FIGURES),
    *_WAN_TARGETS,
    *(
        Target(name, "task_rss_mb", BELOW, 300.0)
        for name in (*(name for name in CASES if name != WAN_CASE.name), *_WAN_NAMES)
    ),
    # A shorter window would mean that the case has too little data for this machine.
    *(
        Target(name, "window_s", AT_LEAST, WINDOW_SECONDS)
        for name in (
            *(name for name, case in CASES.items() if isinstance(case, CopyCase)),
            *(line.name for line in WAN_LINES if not line.is_near),
        )
    ),
)


def judge(results: Results) -> list[Outcome]:
    """Every target with its measured value."""
    return [Outcome(target, _value(results, target)) for target in TARGETS]


def _value(results: Results, target: Target) -> float | None:
    ours = results.measure(target.case, SPARKMIRROR, target.measure)
    if not target.against or ours is None:
        return ours
    theirs = _theirs(results, target)
    return ours / theirs if theirs else None


def _theirs(results: Results, target: Target) -> float | None:
    if target.against != BETTER_MM2:
        return results.measure(target.case, target.against, target.measure)
    both = [results.measure(target.case, each, target.measure) for each in (MM2_DEFAULT, MM2_TUNED)]
    found = [value for value in both if value is not None]
    # Compared only if both were measured: one alone may be the worse one.
    if len(found) < len(both):
        return None
    return max(found) if target.sign == AT_LEAST else min(found)


def _holds(value: float, target: Target) -> bool:
    if target.sign == AT_LEAST:
        return value >= target.limit
    return value < target.limit if target.sign == BELOW else value <= target.limit


def _shown(limit: float) -> str:
    return f"{limit:g}" if limit >= 1 else f"1/{1 / limit:g}"
