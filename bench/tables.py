"""Makes bench/RESULTS.md: the figures as tables, from the results alone."""

from __future__ import annotations

from collections.abc import Sequence

from bench.cases import NO_MIRROR, SPARKMIRROR, SYSTEMS
from bench.results import Measures, Results
from bench.targets import Outcome

# Order and spelling of the columns.
_HEADINGS = {
    "mb_per_s": "MB/s",
    "records_per_s": "records/s",
    "cpu_s_per_gb": "CPU s/GB",
    "task_cpu_s_per_gb": "copy tasks CPU s/GB",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "max_ms": "max ms",
    "steal_percent": "CPU % taken by the host",
    "mb_vs_20_ms": "MB/s, times that of 20 ms",
    "cpu_vs_0_ms": "CPU s/GB, times that of 0 ms",
    "window_s": "window s",
    "warm_ups": "warm-up windows",
    "idle_cpu_percent": "idle CPU % of a core",
    "start_s": "start s",
    "start_cpu_s": "CPU s until idle",
    "new_topic_s": "new topic s",
    "topics_s": "topics s",
    "configs_s": "settings s",
    "records_s": "records s",
    "topics_cpu_s": "CPU s until then",
    "checkpoints_s": "checkpoints s",
    "group_offsets_s": "group offsets s",
    "cpu_s": "CPU s in all",
    "rss_mb": "RSS MB",
    "task_rss_mb": "largest copy task MB",
}
# Not properties of the system.
_NOT_COMPARED = {"steal_percent", "window_s", "warm_ups", "mb_vs_20_ms", "cpu_vs_0_ms"}
# Shown with the figure of the best round.
_WITH_BEST = {"mb_per_s", "cpu_s_per_gb", "p50_ms", "p99_ms"}


def render(results: Results, outcomes: Sequence[Outcome]) -> str:
    """The whole document."""
    parts = ["# Benchmark results", _introduction(results)]
    for case, systems in results.cases.items():
        parts += [f"## {case}", render_case(systems, results.best[case])]
    parts += ["## Targets", render_targets(outcomes)]
    if results.failures:
        parts += ["## Without figures", _failures(results)]
    return "\n\n".join(parts) + "\n"


def _introduction(results: Results) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in results.machine.items())
    settings = ", ".join(f"{name} {value}" for name, value in results.settings.items())
    return (
        f"{results.date}. {machine}. Settings: {settings}.\n\n"
        "Made by `make bench`; how it is measured, and what every figure means, is in "
        "[README.md](README.md). Brokers, mirror and measurement share the cores. Figures are the "
        "median of the rounds; in square brackets that of the best round; in brackets how many "
        "times sparkmirror's. All rounds are in [RESULTS.json](RESULTS.json)."
    )


def render_case(systems: dict[str, Measures], best: dict[str, Measures]) -> str:
    """One row per system; in brackets how many times sparkmirror's figure it is."""
    names = [name for name in _HEADINGS if any(name in row for row in systems.values())]
    head = ["system", *(_HEADINGS[name] for name in names)]
    ours = systems.get(SPARKMIRROR, {})
    rows = [
        [system, *(_cell(systems[system], best[system], ours, name) for name in names)]
        for system in (*SYSTEMS, NO_MIRROR)
        if system in systems
    ]
    return render_table(head, rows)


def _cell(row: Measures, best: Measures, ours: Measures, name: str) -> str:
    if name not in row:
        return ""
    shown = format_number(row[name])
    if name in _WITH_BEST:
        shown += f" [{format_number(best[name])}]"
    if row is ours or not ours.get(name) or name in _NOT_COMPARED:
        return shown
    return f"{shown} ({row[name] / ours[name]:.2g}x)"


def render_targets(outcomes: Sequence[Outcome]) -> str:
    """One row per target."""
    rows = [
        [
            str(outcome.target),
            "" if outcome.value is None else f"{outcome.value:.3g}",
            _verdict(outcome.is_met),
        ]
        for outcome in outcomes
    ]
    return render_table(["target", "measured", "met"], rows)


def _verdict(is_met: bool | None) -> str:
    return "not measured" if is_met is None else ("yes" if is_met else "**no**")


def _failures(results: Results) -> str:
    rows = [
        [row["case"], row["system"], row["why"].splitlines()[0].replace("|", "/")]
        for row in results.failures
    ]
    return render_table(["case", "system", "why"], rows)


def render_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns are also aligned as plain text."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    rule = ["-" * width for width in widths]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in (head, rule, *rows)
    ]
    return "\n".join(lines)


def format_number(value: float) -> str:
    """Three significant digits, with separators for thousands."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
