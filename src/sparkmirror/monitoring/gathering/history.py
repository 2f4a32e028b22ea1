"""The last hour of each flow every 15 s, and the last day every 5 min.

Runs on: worker; one thread writes, any reads. A time without figures stays without: charts show a
gap there, with the reason.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

STEP_SECONDS: Final = 15
COARSE_SECONDS: Final = 300
# A value more than fits, so that a range begins with a point.
KEPT: Final = 3600 // STEP_SECONDS + 1
COARSE_KEPT: Final = 24 * 3600 // COARSE_SECONDS + 1
# A sample belongs to the step that it is nearest to; two steps without one are a gap.
GAP_STEPS: Final = 2
NO_FIGURES = "no figures"


@dataclass(frozen=True, slots=True)
class FlowSample:
    """One flow at one time; None: not known."""

    bytes_per_second: float | None = None
    records_per_second: float | None = None
    written_bytes_per_second: float | None = None
    written_records_per_second: float | None = None
    seconds_behind: float | None = None
    others_seconds_behind: float | None = None
    records_behind: float | None = None
    latency_p50_ms: float | None = None
    latency_p99_ms: float | None = None


SERIES: Final = tuple(FlowSample.__dataclass_fields__)
# Of several samples in one coarse step these count by their worst, the others by their mean: a
# spike of lag must not disappear.
_WORST: Final = frozenset({"seconds_behind", "others_seconds_behind", "latency_p99_ms"})

RANGES: Final[Mapping[str, tuple[int, int]]] = {
    "15m": (900, STEP_SECONDS),
    "1h": (3600, STEP_SECONDS),
    "6h": (6 * 3600, COARSE_SECONDS),
    "24h": (24 * 3600, COARSE_SECONDS),
}
"""Length and step of each range, in seconds."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one flow at `times_ms`; `gaps` are from, to, and why."""

    step_seconds: int
    times_ms: Sequence[int]
    values: Mapping[str, Sequence[float | None]]
    gaps: Sequence[tuple[int, int, str]]


class History:
    """Of all flows of this process's groups. `started_ms`: before that it ran not at all."""

    def __init__(self, started_ms: int) -> None:
        self._started_ms = started_ms
        self._lock = threading.Lock()
        self._fine: dict[str, deque[tuple[int, FlowSample]]] = {}
        self._coarse: dict[str, deque[tuple[int, FlowSample]]] = {}
        self._reasons: deque[tuple[int, str]] = deque(maxlen=KEPT)

    def add(
        self, at_ms: int, samples: Mapping[str, FlowSample], missing: Sequence[str] = ()
    ) -> None:
        """What all flows do now. `missing`: whose figures are not in it."""
        with self._lock:
            if missing:
                self._reasons.append((at_ms, "; ".join(missing)))
            for flow, sample in samples.items():
                fine = self._fine.setdefault(flow, deque(maxlen=KEPT))
                fine.append((at_ms, sample))
                coarse = self._coarse.setdefault(flow, deque(maxlen=COARSE_KEPT))
                step = at_ms // (COARSE_SECONDS * 1000)
                recent = [each for when, each in fine if when // (COARSE_SECONDS * 1000) == step]
                if coarse and coarse[-1][0] // (COARSE_SECONDS * 1000) == step:
                    coarse.pop()
                coarse.append((at_ms, _summed(recent)))

    def series(self, flow: str, name: str, now_ms: int) -> Series:
        """One of RANGES, on a grid of its steps that ends with the newest sample."""
        length, step = RANGES[name]
        with self._lock:
            rows = list((self._fine if step == STEP_SECONDS else self._coarse).get(flow, ()))
            reasons = list(self._reasons)
        end = rows[-1][0] if rows else now_ms
        times = [end - back * step * 1000 for back in range(length // step, -1, -1)]
        placed: dict[int, FlowSample] = {}
        for when, sample in rows:
            at = round((when - times[0]) / (step * 1000))
            if at >= 0:
                placed[at] = sample
        values = {key: [_value(placed.get(at), key) for at in range(len(times))] for key in SERIES}
        return Series(step, times, values, _gaps(times, placed, reasons, self._started_ms))


def _value(sample: FlowSample | None, key: str) -> float | None:
    found: float | None = None if sample is None else getattr(sample, key)
    return found


def _summed(samples: Sequence[FlowSample]) -> FlowSample:
    found: dict[str, float | None] = {}
    for key in SERIES:
        values = [value for each in samples if (value := getattr(each, key)) is not None]
        if not values:
            found[key] = None
        else:
            found[key] = max(values) if key in _WORST else sum(values) / len(values)
    return FlowSample(**found)


def _gaps(
    times: Sequence[int],
    placed: Mapping[int, FlowSample],
    reasons: Sequence[tuple[int, str]],
    started_ms: int,
) -> list[tuple[int, int, str]]:
    gaps: list[tuple[int, int, str]] = []
    at = 0
    while at < len(times):
        if at in placed:
            at += 1
            continue
        begin = at
        while at < len(times) and at not in placed:
            at += 1
        if at - begin >= GAP_STEPS:
            first, last = times[max(0, begin - 1)], times[min(at, len(times) - 1)]
            gaps.append((first, last, _why(first, last, reasons, started_ms)))
    return gaps


def _why(first: int, last: int, reasons: Sequence[tuple[int, str]], started_ms: int) -> str:
    if first < started_ms:
        return "this worker did not run yet"
    return next((text for when, text in reasons if first <= when <= last), NO_FIGURES)
