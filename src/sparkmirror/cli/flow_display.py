"""What running flows look like: a live line each, or without a terminal a log line a minute."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from rich.console import Console
from rich.live import Live
from rich.text import Text

from sparkmirror.config.expansion import CONNECTORS
from sparkmirror.config.log_lines import without_controls
from sparkmirror.config.masking import mask
from sparkmirror.connect.flow_status import FlowStatus, ShownFlow, summarize
from sparkmirror.logs.places import NOWHERE, LogPlace, at_place, place_of_label

log = logging.getLogger("sparkmirror")

# Rates are over this many seconds, so that they are calm enough to read.
WINDOW_SECONDS = 5.0
SUMMARY_SECONDS = 60.0
# The name of every source connector in dedicated mode, as in MirrorMaker 2.
SOURCE_CONNECTOR, *_ = CONNECTORS
# Of an error, which the log has in full.
MOST_CHARACTERS = 200


class Sample(NamedTuple):
    """Totals at one moment."""

    at: float
    records: int
    bytes: int


class WorkerSide(Protocol):
    """The shown state of a connector without tasks: checkpoints, heartbeats."""

    name: str

    @property
    def last_error(self) -> str:
        """Why it cannot work; empty while it can."""


class Clock(Protocol):
    """Seconds that only go forward."""

    def __call__(self) -> float:
        """The time now."""


class Rate:
    """Records and bytes per second over the last few seconds, or since the last log line."""

    def __init__(self, window: float) -> None:
        self._window = window
        self._samples: deque[Sample] = deque()

    def add(self, sample: Sample) -> tuple[float, float]:
        """Add the newest totals; returns (records/s, bytes/s)."""
        samples = self._samples
        if samples and sample.records < samples[-1].records:
            samples.clear()  # the flow began again: another process has copied it in between
        samples.append(sample)
        while len(samples) > 2 and sample.at - samples[1].at >= self._window:
            samples.popleft()
        seconds = sample.at - samples[0].at
        if seconds <= 0:
            return 0.0, 0.0
        return (
            (sample.records - samples[0].records) / seconds,
            (sample.bytes - samples[0].bytes) / seconds,
        )


def describe(status: FlowStatus, rates: tuple[float, float], recent: float | None = None) -> str:
    """One line about one flow; `recent` are records/s of the last seconds, if `rates` are older."""
    if status.stands_by:
        return f"{status.flow}: {status.stands_by}"
    records, size = rates
    line = f"{status.flow}: {records:,.0f} records/s, {size / 1e6:,.1f} MB/s"
    if status.behind is None and status.problems:
        line += ", unknown how many records behind"
    elif status.behind is None:
        line += ", position not known yet"
    else:
        line += f", {status.behind:,} records behind"
        if status.behind and records >= 1 and _is_well(status, recent):
            line += f", caught up in {format_seconds(status.behind / records)}"
    line += f", {status.running} of {status.tasks} tasks running"
    if status.lost:
        line += f", {status.lost:,} LOST"
    if status.skipped:
        line += f", {status.skipped:,} SKIPPED"
    if status.problems:
        line += f", {status.problems} partitions waiting"
    if status.error:
        line += f", {status.error}"
    return line


def _is_well(status: FlowStatus, recent: float | None) -> bool:
    """Whether every part of the flow progresses: a stopped part never catches up."""
    is_moving = recent is None or recent >= 1
    return is_moving and status.running == status.tasks and not status.problems


def describe_error(connector: WorkerSide) -> str:
    """One short line about a connector that cannot work."""
    # Before it is cut: nothing would recognise half a secret.
    text = mask(connector.last_error).partition("\n")[0]
    cut = text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."
    return f"{connector.name}: {cut}"


def format_seconds(seconds: float) -> str:
    """3 s, 4 min, 2.5 h."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


class FlowLines:
    """The lines of flows that may come and go; rates are over the last `window` seconds."""

    def __init__(self, window: float) -> None:
        self._window = window
        self._rates: dict[ShownFlow, tuple[Rate, Rate]] = {}

    def update(self, connectors: Iterable[ShownFlow], now: float) -> list[str]:
        """Add the newest numbers; returns a line for each, in order."""
        known, self._rates = self._rates, {}
        lines = []
        for connector in connectors:
            both = known.get(connector) or (Rate(self._window), Rate(WINDOW_SECONDS))
            self._rates[connector] = both
            status = summarize(connector)
            sample = Sample(now, status.records, status.bytes)
            rates, (recent, _) = [rate.add(sample) for rate in both]
            lines.append(describe(status, rates, recent))
        return lines


class FlowLog:
    """A log line a minute for each flow of a worker; `update` is called about once a second."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._lines = FlowLines(SUMMARY_SECONDS)
        self._next_summary = clock() + SUMMARY_SECONDS

    def update(self, sources: Mapping[str, ShownFlow], others: Mapping[str, WorkerSide]) -> None:
        """Add the newest numbers of the connectors that run here, by name."""
        now = self._clock()
        lines = self._lines.update(sources.values(), now)
        if now < self._next_summary:
            return
        self._next_summary = now + SUMMARY_SECONDS
        for name, line in zip(sources, lines, strict=True):
            with at_place(LogPlace(name, flow=str(sources[name].flow))):
                log.info("[%s] %s", name, line)
        for name, other in others.items():
            if other.last_error:
                with at_place(_place_in_worker(name)):
                    log.info("[%s] %s", name, describe_error(other))


def _place_in_worker(name: str) -> LogPlace:
    """Of a task's name in Connect mode: "connector-0"."""
    connector, _, number = name.rpartition("-")
    return LogPlace(connector, int(number)) if number.isdigit() else LogPlace(name)


class FlowDisplay:
    """Shows all flows; `update` is called about once a second."""

    def __init__(
        self,
        connectors: Sequence[ShownFlow],
        is_terminal: bool,
        clock: Clock = time.monotonic,
        worker_side: Callable[[], Sequence[WorkerSide]] = tuple,
    ) -> None:
        self._connectors = connectors
        self._worker_side = worker_side
        self._clock = clock
        window = WINDOW_SECONDS if is_terminal else SUMMARY_SECONDS
        self._lines = FlowLines(window)
        self._live = Live(console=Console(stderr=True), transient=True) if is_terminal else None
        self._next_summary = clock() + SUMMARY_SECONDS

    def __enter__(self) -> FlowDisplay:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self) -> None:
        """Add the newest numbers and show the lines that are due."""
        now = self._clock()
        lines = self._lines.update(self._connectors, now)
        failing = [each for each in self._worker_side() if each.last_error]
        if self._live is not None:
            lines += [describe_error(each) for each in failing]
            self._live.update(Text(without_controls(mask("\n".join(lines)))))
        elif now >= self._next_summary:
            self._next_summary = now + SUMMARY_SECONDS
            places = [LogPlace(SOURCE_CONNECTOR, flow=str(each.flow)) for each in self._connectors]
            for place, line in zip(places, lines, strict=True):
                with at_place(place):
                    log.info("%s", line)
            for each in failing:
                with at_place(place_of_label(each.name) or NOWHERE):
                    log.info("%s", describe_error(each))
