"""The case `wan`: one of the clusters is behind a long line.

    producer --> source ==line== mirror ------- target       far source: as MirrorMaker 2's
    producer --> source -------- mirror ==line== target       documentation advises, and far target

The lines are those of sparkmirror.embedded: a delay, and a window per connection. Only the mirror
uses them, except for a Connect worker's own topics. A system is started once and copies over all
lines; each copy is a new connector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from bench.cases import (
    MM2_TUNED,
    SOURCE,
    SPARKMIRROR,
    TARGET,
    WAN_PARTITIONS,
    WINDOW_BYTES,
    CopyCase,
    WanCase,
    WanLine,
)
from bench.copying import Copier
from bench.end_offsets import EndOffsets
from bench.filling import fill_topic
from bench.latency import run_latency
from bench.progress import report
from bench.results import FAILURES, Measures
from bench.stage import DATA_PREFIX, Stage, Topics, clean_up
from bench.workers import Route, Worker, running_worker

# A name, a system, and the function that measures it.
Measuring = tuple[str, str, Callable[[], list[Measures]]]

# The throughput of the long line is compared with that of the short one.
_SHORT_MS, _LONG_MS = 20, 200


def wan_runs(stage: Stage, case: WanCase, systems: Sequence[str]) -> Iterator[Measuring]:
    """The measurements in order; each is run when its function is called."""
    with _topics(stage, case):
        for system in systems:
            try:
                yield from _copies(stage, case, system)
            except FAILURES as error:
                yield case.name, system, partial(_fail, error)
        for system in systems:
            if system != MM2_TUNED:  # as in `latency`
                yield case.live.name, system, partial(_live, stage, case, system)


def _fail(error: Exception) -> list[Measures]:
    raise error


@contextmanager
def _topics(stage: Stage, case: WanCase) -> Iterator[None]:
    topics = Topics(stage.source)
    for partitions in WAN_PARTITIONS:
        data = data_of(case, partitions)
        topics.create([_topic(data)], partitions)
        shape = fill_topic(stage, _topic(data), data)
        report(f"{data.name}: {shape.records:,} records, {shape.stored_bytes / 1e9:.1f} GB")
    try:
        yield
    finally:
        _stretch(stage, None)
        topics.delete({_topic(data_of(case, partitions)) for partitions in WAN_PARTITIONS})


def data_of(case: WanCase, partitions: int) -> CopyCase:
    """The data of the lines with this number of partitions."""
    return replace(case.data, name=f"{case.name}-{partitions}", partitions=partitions)


def _topic(data: CopyCase) -> str:
    return f"{DATA_PREFIX}{data.name}"


def _stretch(stage: Stage, line: WanLine | None) -> None:
    """Make the line to the far cluster long, and the other one short."""
    for name, each in ((SOURCE, stage.source_line), (TARGET, stage.target_line)):
        delay_ms = line.delay_ms if line is not None and line.far == name else 0
        each.stretch(delay_seconds=delay_ms / 1000, window_bytes=WINDOW_BYTES if delay_ms else 0)


def _copies(stage: Stage, case: WanCase, system: str) -> Iterator[Measuring]:
    group, folder = f"{case.name}-{system}", stage.log_folder(case.name, system)
    try:
        with (
            running_worker(system, group, stage.target.bootstrap_servers, folder) as worker,
            stage.target_offsets() as target,
        ):
            lines = [line for line in case.lines if system == SPARKMIRROR or not line.is_near]
            copies = _Copies(stage, case, worker, target)
            copies.warm_up()
            for line in lines:
                yield line.name, system, partial(copies.measure, line)
    finally:
        _stretch(stage, None)
        clean_up(stage)


class _Copies:
    """The copies of one system; remembers their figures for comparisons."""

    def __init__(self, stage: Stage, case: WanCase, worker: Worker, target: EndOffsets) -> None:
        self._stage = stage
        self._case = case
        self._worker = worker
        self._target = target
        self._measured: dict[WanLine, Measures] = {}

    def warm_up(self) -> None:
        """Copy once without a delay; the long copies that follow warm up a JVM further."""
        line = WanLine(SOURCE, 0, WAN_PARTITIONS[-1])
        self._copier(line).measure(f"{self._worker.system}-warm-up")

    def measure(self, line: WanLine) -> list[Measures]:
        """Copy once over a line."""
        _stretch(self._stage, line)
        try:
            alias = f"{self._worker.system}-{line.name}"
            measures = self._copier(line).measure(alias, compare=line.compares)
        finally:
            _stretch(self._stage, None)
        self._measured[line] = measures
        return [measures | self._ratios(line, measures)]

    def _copier(self, line: WanLine) -> Copier:
        stage, data = self._stage, data_of(self._case, line.partitions)
        near = Route(stage.source.bootstrap_servers, stage.target.bootstrap_servers)
        route = (
            replace(near, source_bootstrap=stage.source_line.address)
            if line.far == SOURCE
            else replace(near, target_bootstrap=stage.target_line.address)
        )
        return Copier(stage, data, _topic(data), self._worker, self._target, route)

    def _ratios(self, line: WanLine, measures: Measures) -> Measures:
        """The figures of a line divided by those of shorter ones."""
        found: Measures = {}
        near = self._measured.get(replace(line, delay_ms=0, compares=False))
        if near is not None and not line.is_near:
            found["cpu_vs_0_ms"] = measures["cpu_s_per_gb"] / near["cpu_s_per_gb"]
        short = self._measured.get(replace(line, delay_ms=_SHORT_MS, compares=False))
        if short is not None and line.delay_ms == _LONG_MS:
            found["mb_vs_20_ms"] = measures["mb_per_s"] / short["mb_per_s"]
        return found


def _live(stage: Stage, case: WanCase, system: str) -> list[Measures]:
    """Measure live records over a line to the source."""
    _stretch(stage, WanLine(SOURCE, case.live_delay_ms, 0))
    try:
        return run_latency(stage, case.live, system, 0, stage.source_line.address)
    finally:
        _stretch(stage, None)
