"""The mirrored topics: state, lag, rates, and settings that differ on the target.

Runs on: worker. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sparkmirror.monitoring.clusters.flow_watch import FlowWatch
from sparkmirror.monitoring.gathering.rates import NOTHING_YET, TOO_SHORT, FlowSpeed
from sparkmirror.monitoring.views.partition_view import (
    RANK,
    most,
    nearest_loss,
    state_counts,
    total,
    worst_state,
)
from sparkmirror.monitoring.views.rows.partition_rows import (
    PartitionRow,
    SettingDifference,
    TopicRow,
)
from sparkmirror.monitoring.views.wording.paging import Page, Query, choice, name_filter, page

STATES: Final = ("all", "problem", *RANK, "drift")
SORTS: Final = ("state", "topic", "partitions", "behind", "lag", "rate", "loss")
DIRECTIONS: Final = ("", "asc", "desc")
_INFINITE: Final = float("inf")


def topic_rows(
    partitions: Sequence[PartitionRow],
    rates: Mapping[tuple[str, str], FlowSpeed],
    watches: Mapping[str, FlowWatch],
) -> list[TopicRow]:
    """All topics of these partitions, the worst first."""
    by_topic: dict[tuple[str, str], list[PartitionRow]] = {}
    for row in partitions:
        by_topic.setdefault((row.flow, row.topic), []).append(row)
    rows = [
        _row(own, rates.get(key, NOTHING_YET), watches.get(key[0])) for key, own in by_topic.items()
    ]
    rows.sort(key=lambda row: (RANK[row.state], -_lag(row), row.topic, row.flow))
    return rows


def _row(own: Sequence[PartitionRow], rate: FlowSpeed, watch: FlowWatch | None) -> TopicRow:
    first = own[0]
    left, loss_at, unknown, not_applicable = nearest_loss(own)
    differences, why = _differences(first.topic, watch)
    if differences is None:
        unknown["differences"] = why
    numbers = {
        "records_behind": total(row.records_behind for row in own),
        "bytes_behind": total(row.bytes_behind for row in own),
        "end_offsets": total(row.end_offset for row in own),
    }
    seconds = most(row.seconds_behind for row in own)
    for name, value in (*numbers.items(), ("seconds_behind", seconds)):
        if value is None:
            unknown[name] = _why(own, name)
    for name, speed in (("bytes_per_second", rate.bytes), ("records_per_second", rate.records)):
        if speed is None:
            unknown[name] = TOO_SHORT
    return TopicRow(
        flow=first.flow,
        topic=first.topic,
        target_topic=first.target_topic,
        state=worst_state(own),
        word=_word(own),
        partitions=state_counts(own),
        records_behind=numbers["records_behind"],
        bytes_behind=numbers["bytes_behind"],
        seconds_behind=seconds,
        bytes_per_second=rate.bytes,
        records_per_second=rate.records,
        end_offsets=numbers["end_offsets"],
        lost_records=sum(row.lost_records for row in own),
        skipped_records=sum(row.skipped_records for row in own),
        seconds_until_loss=left,
        loss_at_ms=loss_at,
        differences=differences,
        unknown=unknown,
        not_applicable=not_applicable,
    )


def _why(own: Sequence[PartitionRow], name: str) -> str:
    key = "end_offset" if name == "end_offsets" else name
    row = next(row for row in own if getattr(row, key) is None)
    return f"`{row.topic}-{row.partition}`: {row.unknown.get(key, 'not known yet')}"


def _word(own: Sequence[PartitionRow]) -> str:
    state = worst_state(own)
    number = sum(row.state == state for row in own)
    word = state.capitalize()
    is_whole = number == len(own) or state in ("live", "idle")
    return word if is_whole else f"{word} {number} of {len(own)}"


def _differences(topic: str, watch: FlowWatch | None) -> tuple[list[SettingDifference] | None, str]:
    """None: not known, and why."""
    if watch is None:
        return None, "the flow's settings cannot be read"
    seen = watch.settings.value
    if seen is None:
        return None, watch.settings.error
    if topic not in seen.differences:
        return None, seen.errors.get(topic, "not compared yet")
    found = seen.differences[topic]
    return [SettingDifference(each.key, each.source or "", each.target or "") for each in found], ""


def select_topics(rows: Sequence[TopicRow], query: Query) -> Page[TopicRow]:
    """Those that were asked for. Raises BadQuery."""
    state = choice(query.state, STATES, "state")
    sort = choice(query.sort, SORTS, "sort")
    direction = choice(query.direction, DIRECTIONS, "dir")
    accepts = name_filter(query.q)
    of_flow = [row for row in rows if not query.flow or row.flow == query.flow]
    named = [
        row for row in of_flow if not query.q or accepts(row.topic) or accepts(row.target_topic)
    ]
    counts = {each: sum(map(_is_in(each), named)) for each in STATES}
    chosen = [row for row in named if _is_in(state)(row)]
    key, largest_first = _KEYS[sort]
    is_reversed = largest_first if not direction else direction == "desc"
    chosen.sort(key=key, reverse=is_reversed)
    return page(chosen, query, counts, len(of_flow))


def select_partitions(rows: Sequence[PartitionRow], query: Query) -> Page[PartitionRow]:
    """Partitions, the furthest behind first; those whose lag is not known before all others."""
    state = choice(query.state, ("all", *RANK), "state")
    accepts = name_filter(query.q)
    of_flow = [row for row in rows if not query.flow or row.flow == query.flow]
    named = [row for row in of_flow if not query.q or accepts(f"{row.topic}-{row.partition}")]
    counts = {each: sum(row.state == each for row in named) for each in RANK}
    chosen = [row for row in named if state in ("all", row.state)]
    chosen.sort(key=_furthest)
    return page(chosen, query, {"all": len(named), **counts}, len(of_flow))


def _furthest(row: PartitionRow) -> tuple[float, float, str, int]:
    late = _INFINITE if row.seconds_behind is None else row.seconds_behind
    behind = _INFINITE if row.records_behind is None else row.records_behind
    return -late, -behind, row.topic, row.partition


def _is_in(state: str) -> Callable[[TopicRow], bool]:
    if state == "all":
        return lambda row: True
    if state == "problem":
        return lambda row: row.state in ("failed", "stuck")
    if state == "drift":
        return lambda row: bool(row.differences)
    return lambda row: row.state == state


def _lag(row: TopicRow) -> float:
    return _INFINITE if row.seconds_behind is None else row.seconds_behind


def _loss(row: TopicRow) -> float:
    return _INFINITE if row.seconds_until_loss is None else row.seconds_until_loss


# The key of each order, and whether the largest comes first.
_KEYS: Final[Mapping[str, tuple[Callable[[TopicRow], tuple[float | str, ...]], bool]]] = {
    "state": (lambda row: (RANK[row.state], -_lag(row), row.topic), False),
    "topic": (lambda row: (row.topic, row.flow), False),
    "partitions": (lambda row: (row.partitions.total,), True),
    "behind": (
        lambda row: (_INFINITE if row.records_behind is None else row.records_behind,),
        True,
    ),
    "lag": (lambda row: (_lag(row),), True),
    "rate": (lambda row: (row.bytes_per_second or 0.0,), True),
    "loss": (lambda row: (_loss(row),), False),
}
