"""Events of all workers, newest first.

Runs on: worker. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sparkmirror.events import EventKind
from sparkmirror.monitoring.event_log import Event
from sparkmirror.monitoring.gathering.gathering import Gathered
from sparkmirror.monitoring.views.rows.common import Level, Link
from sparkmirror.monitoring.views.rows.flow_rows import EventRow
from sparkmirror.monitoring.views.wording.paging import BadQuery, Query, name_filter

LEVELS: Final[Mapping[EventKind, Level]] = {
    EventKind.FAILED: Level.BAD,
    EventKind.LOST: Level.BAD,
    EventKind.STUCK: Level.WARN,
    EventKind.BLOCKED: Level.WARN,
    EventKind.UNREACHABLE: Level.WARN,
    EventKind.SKIPPED: Level.WARN,
    EventKind.GONE: Level.WARN,
    EventKind.RECREATED: Level.WARN,
    EventKind.CREATED: Level.OK,
    EventKind.GREW: Level.OK,
    EventKind.SYNCED: Level.OK,
    EventKind.RECOVERED: Level.OK,
    EventKind.REACHABLE: Level.OK,
    EventKind.STARTED: Level.OK,
}
MOST_EVENTS: Final = 2000


def event_rows(gathered: Gathered) -> list[EventRow]:
    """Of all groups; an event of no flow is told with each, and counts once."""
    found: dict[str, EventRow] = {}
    for group in gathered.groups:
        for member in group.members:
            if member.figures is not None:
                worker = member.figures.id
                for event in member.figures.events:
                    found.setdefault(f"{worker}/{event.id}", _row(event, worker))
    return sorted(found.values(), key=lambda row: (row.time_ms, row.id), reverse=True)


def _row(event: Event, worker: str) -> EventRow:
    return EventRow(
        id=f"{worker}/{event.id}",
        time_ms=event.time_ms,
        kind=event.kind.value,
        level=LEVELS.get(event.kind, Level.INFO),
        text=event.text,
        flow=event.flow,
        connector=event.connector,
        task=event.task,
        topic=event.topic,
        partition=event.partition,
        cluster=event.cluster,
        group=event.group,
        cause_id=None if event.cause_id is None else f"{worker}/{event.cause_id}",
        lasts=event.lasts,
        ended_ms=event.ended_ms,
        count=event.count,
        user=event.user,
        worker=worker,
        link=_link(event),
    )


def _link(event: Event) -> Link | None:
    if event.group:
        return Link("groups", {"open": f"{event.flow}/{event.group}"})
    if event.kind is EventKind.BLOCKED and event.topic:
        return Link("topics", {"tab": "whynot", "q": event.topic})
    if event.topic:
        return Link("topics", {"open": f"{event.flow}/{event.topic}"})
    return Link("connectors", {"c": event.connector}) if event.connector else None


def select_events(
    rows: Sequence[EventRow], query: Query, kinds: Sequence[str], since: str
) -> list[EventRow]:
    """Those that were asked for. Raises BadQuery."""
    known = [kind.value for kind in EventKind]
    if wrong := [kind for kind in kinds if kind not in known]:
        raise BadQuery(f"kind={wrong[0][:100]}: use some of {', '.join(known)}")
    after = next((row.time_ms for row in rows if row.id == since), 0) if since else 0
    accepts = name_filter(query.q)
    chosen = [
        row
        for row in rows
        if (not since or row.time_ms > after)
        and (not query.flow or row.flow in ("", query.flow))
        and (not kinds or row.kind in kinds)
        and (not query.q or accepts(_searched(row)))
    ]
    return chosen[: min(query.limit, MOST_EVENTS)]


def _searched(row: EventRow) -> str:
    partition = "" if row.partition is None else f"{row.topic}-{row.partition}"
    parts = (row.text, row.topic, partition, row.group, row.connector, row.user, row.cluster)
    return " ".join(parts)
