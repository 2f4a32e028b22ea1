"""Flows, problems, events and history.

Runs on: worker. Pure. See the package for what None means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.monitoring.views.rows.common import Level, Link, Reasons, Remedy, Sentence
from sparkmirror.monitoring.views.rows.partition_rows import StateCounts


@dataclass(frozen=True, slots=True)
class EventRow:
    """What happened. `cause_id`: the event that led to it; `ended_ms`: None while it lasts.

    `lasts`: whether it is a state that can end; an event that only happened has no end.
    """

    id: str
    time_ms: int
    kind: str
    level: Level
    text: str
    flow: str
    connector: str
    task: str
    topic: str
    partition: int | None
    cluster: str
    group: str
    cause_id: str | None
    lasts: bool
    ended_ms: int | None
    count: int
    user: str
    worker: str
    link: Link | None


@dataclass(frozen=True, slots=True)
class FlowLatency:
    """Milliseconds from a record's append on the source to its acknowledgement by the target."""

    p50_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class CatchUp:
    """When a flow is caught up. `state`: done, about, waiting, not by itself, unknown.

    `seconds`, `at_ms`: only with "about". `since_ms`: only with "done". `change_per_second`: by how
    many records the backlog grows; negative: it falls.
    """

    state: str
    text: str
    seconds: float | None = None
    at_ms: int | None = None
    since_ms: int | None = None
    change_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class WorstPartition:
    """The partition whose oldest uncopied record is the oldest."""

    flow: str
    topic: str
    partition: int
    seconds_behind: float
    records_behind: int | None


@dataclass(frozen=True, slots=True)
class FlowRow:
    """A flow. `bytes_per_second`, `records_per_second`: copied; `written_...`: on the source.

    `word`: its worst state, counted. `others_seconds_behind`: lag of all but the worst partition.
    """

    flow: str
    source: str
    target: str
    prefix: str
    connectors: Sequence[str]
    state: str
    word: str
    sentence: Sentence
    topics: int
    unmirrored: int | None
    partitions: StateCounts
    tasks: int
    tasks_running: int
    bytes_per_second: float | None
    records_per_second: float | None
    written_bytes_per_second: float | None
    written_records_per_second: float | None
    records_behind: int | None
    bytes_behind: int | None
    seconds_behind: float | None
    worst: WorstPartition | None
    others_seconds_behind: float | None
    seconds_until_loss: float | None
    loss_at_ms: int | None
    latency: FlowLatency | None
    heartbeat_age_seconds: float | None
    catch_up: CatchUp
    lost_records: int
    skipped_records: int
    unknown: Reasons = field(default_factory=dict)
    not_applicable: Reasons = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """What needs a person. `code`: lost, failed, stuck, blocked, unreachable."""

    id: str
    code: str
    level: Level
    title: str
    text: str
    remedy: Remedy | None
    flow: str
    connector: str
    task: int | None
    topic: str
    partition: int | None
    since_ms: int | None
    records_behind: int | None
    seconds_until_loss: float | None
    loss_at_ms: int | None
    link: Link
    unknown: Reasons = field(default_factory=dict)
    not_applicable: Reasons = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NoteRow:
    """A part of the line "Also": nothing that needs a person now."""

    text: str
    why: str
    link: Link


@dataclass(frozen=True, slots=True)
class Gap:
    """A time without figures, and why."""

    from_ms: int
    to_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class Mark:
    """An event on a chart."""

    time_ms: int
    text: str
    event_id: str


@dataclass(frozen=True, slots=True)
class HistoryView:
    """Series of one flow, a value for each of `times_ms`; None: no data."""

    flow: str
    range: str
    step_seconds: int
    times_ms: Sequence[int]
    series: Mapping[str, Sequence[float | None]]
    gaps: Sequence[Gap]
    marks: Sequence[Mark]
