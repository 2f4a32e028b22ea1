"""Parts of answers that several views have.

Runs on: worker. Pure.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sparkmirror.events import EventKind
from sparkmirror.monitoring.clusters.flow_specs import FlowSpecs
from sparkmirror.monitoring.clusters.flow_watch import FlowWatch
from sparkmirror.monitoring.gathering.gathering import Member
from sparkmirror.monitoring.gathering.history import FlowSample
from sparkmirror.monitoring.lag.partition_lag import PartitionLag
from sparkmirror.monitoring.views.partition_view import total
from sparkmirror.monitoring.views.picture import Picture
from sparkmirror.monitoring.views.rows.common import WorkerRow
from sparkmirror.monitoring.views.rows.failover_rows import LagReading
from sparkmirror.monitoring.views.rows.flow_rows import FlowRow, WorstPartition
from sparkmirror.monitoring.views.rows.partition_rows import PartitionRow
from sparkmirror.monitoring.views.wording.paging import NotThere, Page
from sparkmirror.monitoring.views.wording.words import duration

# Events that charts show.
MARKED: Final = frozenset(
    kind.value
    for kind in (
        EventKind.FAILED,
        EventKind.STUCK,
        EventKind.UNREACHABLE,
        EventKind.REACHABLE,
        EventKind.RECOVERED,
        EventKind.LOST,
        EventKind.ACTION,
    )
)
# Tasks report once a second.
OLDEST_MS: Final = 5_000
SUMMED: Final = ("bytes_per_second", "records_per_second", "records_behind")


def find_flow(picture: Picture, name: str) -> FlowSpecs:
    """Raises NotThere, with the flows that there are."""
    found = picture.row_of(name)
    if found is None:
        known = ", ".join(specs.flow for specs in picture.flows) or "none yet"
        raise NotThere(f"there is no flow '{name[:200]}'; flows: {known}")
    return found


def knows_topics(watch: FlowWatch) -> bool:
    """Whether its topics were asked for."""
    return watch.topics.is_asked or watch.specs.source is None


def knows_groups(watch: FlowWatch) -> bool:
    """Whether its groups were asked for, or there are none to ask for."""
    return watch.groups.is_asked or bool(watch.no_groups)


def lateness(worst: WorstPartition) -> float:
    """Sort key."""
    return worst.seconds_behind


def paged(page: Page[Any]) -> dict[str, object]:
    """The fields of a page."""
    return {
        "rows": page.rows,
        "counts": page.counts,
        "total": page.total,
        "matching": page.matching,
        "offset": page.offset,
        "limit": page.limit,
    }


def reading(
    time_ms: int, lags: Sequence[PartitionLag], rows: Sequence[PartitionRow], missing: Sequence[str]
) -> LagReading:
    """The lag of a flow now. Figures that are not of now are no evidence."""
    old = [lag for lag in lags if lag.is_running and time_ms - lag.at_ms > OLDEST_MS]
    behind = total(row.records_behind for row in rows)
    ends = total(row.end_offset for row in rows)
    unknown = {}
    if behind is None or ends is None or missing or old:
        why = "; ".join(missing)
        if old and not why:
            age = duration((time_ms - old[0].at_ms) / 1000)
            why = f"the figures of `{old[0].source}` are {age} old"
        unknown = dict.fromkeys(("records_behind", "end_offsets"), why or "not known of all")
        behind = ends = None
    late = sum(row.records_behind != 0 for row in rows)
    return LagReading(time_ms, len(rows), late, behind, ends, unknown)


def sample_of(row: FlowRow) -> FlowSample:
    """For the history."""
    return FlowSample(
        bytes_per_second=row.bytes_per_second,
        records_per_second=row.records_per_second,
        written_bytes_per_second=row.written_bytes_per_second,
        written_records_per_second=row.written_records_per_second,
        seconds_behind=row.seconds_behind,
        others_seconds_behind=row.others_seconds_behind,
        records_behind=row.records_behind,
        latency_p50_ms=None if row.latency is None else row.latency.p50_ms,
        latency_p99_ms=None if row.latency is None else row.latency.p99_ms,
    )


def sums(flows: Sequence[FlowRow]) -> tuple[dict[str, float | None], dict[str, str]]:
    """Over all flows, and why some are not known."""
    found: dict[str, float | None] = {}
    unknown: dict[str, str] = {}
    for name in SUMMED:
        counted = [row for row in flows if name not in row.not_applicable]
        values = [getattr(row, name) for row in counted]
        if None in values:
            first = counted[values.index(None)]
            found[name] = None
            unknown[name] = f"{first.flow}: {first.unknown.get(name, 'not known yet')}"
        else:
            found[name] = sum(values)
    return found, unknown


def versions(picture: Picture) -> Mapping[str, int]:
    """Numbers that change when a view does."""
    watches = [picture.watches[specs.flow] for specs in picture.flows]
    groups = [(watch.groups.at_ms, watch.groups.error) for watch in watches]
    states = [
        (row.name, row.state, [(task.task, task.state, task.worker) for task in row.tasks])
        for row in picture.connectors
    ]
    events = [(row.id, row.count, row.ended_ms) for row in picture.events]
    return {
        "topics": picture.at_ms // 1000,
        "groups": _number(groups),
        "connectors": _number(states),
        "events": _number(events),
        "failover": picture.at_ms // 1000,
    }


def _number(value: object) -> int:
    return zlib.crc32(repr(value).encode())


def worker_rows(picture: Picture) -> list[WorkerRow]:
    """All workers of all groups, each once."""
    found: dict[str, WorkerRow] = {}
    for group in picture.gathered.groups:
        leader = group.group.cluster.member.leader_url
        for member in group.members:
            if member.url not in found:
                found[member.url] = _worker(member, is_leader=member.url == leader)
    return list(found.values())


def _worker(member: Member, *, is_leader: bool) -> WorkerRow:
    where = member.url.partition("://")[2].rstrip("/") or member.url
    return WorkerRow(
        id=where if member.figures is None else member.figures.id,
        url=member.url if "://" in member.url else "",
        state="unreachable" if member.problem else "ok",
        reason=member.problem,
        is_leader=is_leader,
        is_this=member.is_this,
    )
