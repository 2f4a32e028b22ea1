"""Where the copy of each partition begins: at its stored position, or afresh and why. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from itertools import groupby
from typing import NamedTuple

from sparkmirror.types import TopicPartition

MOST_NAMES = 5


class Beginning(Enum):
    """How a partition starts; the value is the text of reports, for several partitions."""

    RESUMES = "resume at their stored positions"
    EMPTY = "are empty and have no stored position"
    NO_POSITION = "have no stored position"
    RECREATED = "have a stored position of a topic that was deleted and recreated"
    BEYOND_END = "have a stored position beyond the end of the log (truncated or recreated)"
    DELETED = "have a stored position before the start of the log (retention deleted records)"
    UNKNOWN = "could not be checked"


AFRESH = (
    Beginning.NO_POSITION,
    Beginning.RECREATED,
    Beginning.BEYOND_END,
    Beginning.DELETED,
)


class Start(NamedTuple):
    """One partition; `detail` is its own reason."""

    tp: TopicPartition
    beginning: Beginning
    detail: str = ""


LogRange = tuple[int, int] | tuple[int, int, int | None]


def plan_starts(
    positions: Mapping[TopicPartition, int | None],
    ranges: Mapping[TopicPartition, LogRange | Exception],
    recreated: Collection[TopicPartition] = (),
) -> list[Start]:
    """Compare the next offset of each partition, None without one, with its log.

    A range is the first offset of the log and the one after its last. Positions of `recreated` are
    known to be of another log.
    """
    return [
        Start(tp, Beginning.RECREATED, "stored position of a topic that was recreated")
        if tp in recreated
        else Start(tp, *_begin(next_offset, ranges[tp]))
        for tp, next_offset in sorted(positions.items())
    ]


def _begin(next_offset: int | None, log: LogRange | Exception) -> tuple[Beginning, str]:
    if isinstance(log, Exception):
        return Beginning.UNKNOWN, str(log)
    start, end, *_ = log
    if next_offset is None:
        # In an empty log nothing can be copied twice or left out.
        if start == end:
            return Beginning.EMPTY, ""
        return Beginning.NO_POSITION, "no stored position"
    if next_offset > end:
        return Beginning.BEYOND_END, f"stored position {next_offset}, the log ends at {end}"
    if next_offset < start:
        return Beginning.DELETED, f"stored position {next_offset}, the log starts at {start}"
    return Beginning.RESUMES, ""


def report_starts(starts: Sequence[Start], reset: str) -> str:
    """One line for the log; `reset` is auto.offset.reset, for partitions that start afresh."""
    counts = Counter(start.beginning for start in starts)
    parts = [f"{counts[Beginning.RESUMES]} {Beginning.RESUMES.value}"]
    parts += [
        f"{counts[each]} {each.value}"
        for each in (Beginning.EMPTY, Beginning.UNKNOWN)
        if counts[each]
    ]
    afresh = [start for start in starts if start.beginning in AFRESH]
    reasons = [
        f"{counts[each]} {each.value}: {_some(starts, each)}" for each in AFRESH if counts[each]
    ]
    text = f"{len(afresh)} start afresh (auto.offset.reset={reset})" if afresh else "0 start afresh"
    parts.append(": ".join([text, "; ".join(reasons)]) if reasons else text)
    return f"{len(starts)} partitions: {', '.join(parts)}"


def _some(starts: Iterable[Start], beginning: Beginning) -> str:
    names = [str(start.tp) for start in starts if start.beginning is beginning]
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def refused_starts(starts: Iterable[Start]) -> list[Start]:
    """The partitions that `--resume-only` rejects: those that start afresh, or may."""
    forbidden = (*AFRESH, Beginning.UNKNOWN)
    return [start for start in starts if start.beginning in forbidden]


def list_starts(starts: Iterable[Start]) -> list[str]:
    """A line for each partition, or for several of a topic with the same reason."""
    lines = []
    ordered = sorted(starts, key=lambda start: (start.tp.topic, start.detail, start.tp.partition))
    for (topic, detail), same in groupby(ordered, key=lambda start: (start.tp.topic, start.detail)):
        numbers = _spans([start.tp.partition for start in same])
        lines.append(f"{topic}, partition {numbers}: {detail}")
    return lines


def _spans(numbers: Sequence[int]) -> str:
    """Ascending numbers, with ranges as `first-last`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1][1:] = [number]
        else:
            spans.append([number])
    return ", ".join("-".join(map(str, span)) for span in spans)
