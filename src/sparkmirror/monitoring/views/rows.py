"""The rows of all views, as REST sends them and the page, `top` and the other commands show them.

Runs on: worker. Pure. Times are milliseconds since 1970 in UTC, durations seconds. A value that is
None has a reason under its name: in `unknown` if it could not be had, in `not_applicable` if there
is none. So 0 always means that something was measured.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Reasons = Mapping[str, str]


class Level(enum.StrEnum):
    """How a row is shown; never by colour alone."""

    OK = "ok"
    INFO = "info"
    WARN = "warn"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Link:
    """Where the page opens: `#view?query`."""

    view: str
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to do, and the command or the line of the file, ready to be copied; "": there is none."""

    text: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One worker of the group. `state`: ok, or unreachable, with the reason."""

    id: str
    url: str
    state: str
    reason: str = ""
    is_leader: bool = False
    is_this: bool = False


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. `role`: operator or viewer; without authentication everyone is an operator."""

    name: str
    role: str
    authenticated: bool


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """A cluster as this worker sees it. `state`: ok, partly (brokers missing), unreachable."""

    alias: str
    state: str
    brokers_known: int | None
    brokers_reachable: int | None
    reason: str = ""
    since_ms: int | None = None
    unknown: Reasons = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition. `task`: the number of the task that copies it; `written`: see FlowRow."""

    flow: str
    topic: str
    partition: int
    target_topic: str
    state: str
    problem: str
    remedy: Remedy | None
    since_ms: int | None
    connector: str
    task: int | None
    worker: str
    position: int | None
    end_offset: int | None
    records_behind: int | None
    bytes_behind: int | None
    seconds_behind: float | None
    oldest_ms: int | None
    lost_records: int
    skipped_records: int
    retention_ms: int | None
    retention_bytes: int | None
    cleanup_policy: str
    seconds_until_loss: float | None
    loss_at_ms: int | None
    unknown: Reasons = field(default_factory=dict)
    not_applicable: Reasons = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StateCounts:
    """How many partitions are in each state."""

    total: int = 0
    live: int = 0
    idle: int = 0
    catching_up: int = 0
    paused: int = 0
    stuck: int = 0
    failed: int = 0
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class SettingDifference:
    """A setting of a topic that has another value on the target; "" for one that is not set."""

    key: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A mirrored topic. `word`: its state in words, counted where only some partitions have it."""

    flow: str
    topic: str
    target_topic: str
    state: str
    word: str
    partitions: StateCounts
    records_behind: int | None
    bytes_behind: int | None
    seconds_behind: float | None
    bytes_per_second: float | None
    records_per_second: float | None
    end_offsets: int | None
    lost_records: int
    skipped_records: int
    seconds_until_loss: float | None
    loss_at_ms: int | None
    differences: Sequence[SettingDifference] | None
    unknown: Reasons = field(default_factory=dict)
    not_applicable: Reasons = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule in the order in which it is asked. `passed`: None if it was not reached."""

    rule: str
    value: str
    verdict: str
    passed: bool | None


@dataclass(frozen=True, slots=True)
class UnmirroredRow:
    """A topic that is not mirrored. `verdict`: by rule or blocked; `count`: topics folded in it."""

    flow: str
    topic: str
    count: int
    topics: Sequence[str]
    verdict: str
    reason: str
    note: str
    key: str
    rules: Sequence[RuleRow]
    remedy: Remedy | None
    explain: str
    since_ms: int | None = None


@dataclass(frozen=True, slots=True)
class GroupPartitionRow:
    """A partition of a group. `translation`: exact, or MM2's rule, or "" where there is none."""

    topic: str
    partition: int
    target_topic: str
    committed: int | None
    translated: int | None
    committed_on_target: int | None
    translation: str
    reread_records: int | None
    note: str = ""
    unknown: Reasons = field(default_factory=dict)
    not_applicable: Reasons = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A consumer group. `state`: synced, partly synced, not synced, unknown; `reason` says why.

    `newest`: the partition with the newest commit, with its offsets on both clusters.
    """

    flow: str
    group: str
    state: str
    reason: str
    remedy: Remedy | None
    members: int | None
    members_on_target: int | None
    partitions: int
    synced_partitions: int
    topics: Sequence[str]
    newest: GroupPartitionRow | None
    checkpoint_age_seconds: float | None
    reread_records: int | None
    translation: str
    unknown: Reasons = field(default_factory=dict)
    not_applicable: Reasons = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task of a connector; `trace` is whole, `reason` its one line."""

    task: int
    state: str
    worker: str
    reason: str
    remedy: Remedy | None
    trace: str
    partitions: int | None
    records_behind: int | None
    seconds_behind: float | None
    unknown: Reasons = field(default_factory=dict)
    not_applicable: Reasons = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConnectorRow:
    """A connector. `path`: of its REST resource, for actions, config and offsets.

    `note`: why no tasks are all right, or what works only in part. `is_changeable`: whether REST
    may change its settings, see `fixed`.
    """

    name: str
    prefix: str
    path: str
    flow: str
    kind: str
    state: str
    worker: str
    reason: str
    remedy: Remedy | None
    trace: str
    note: str
    is_changeable: bool
    fixed: str
    tasks: Sequence[TaskRow]


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting of a connector; passwords are hidden. `origin`: connector or default."""

    key: str
    value: str
    origin: str


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
class Latency:
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
class Sentence:
    """A verdict: the head in large letters, and what it is based on."""

    level: Level
    code: str
    head: str
    text: str


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
    latency: Latency | None
    heartbeat_age_seconds: float | None
    catch_up: CatchUp
    lost_records: int
    skipped_records: int
    unknown: Reasons = field(default_factory=dict)
    not_applicable: Reasons = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """What needs a person, or has lasted 60 s. `code`: lost, failed, stuck, blocked, unreachable."""

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
class Evidence:
    """A question of the failover view. `word`: Yes, Not all, No, Not yet, You check."""

    code: str
    level: Level
    question: str
    text: str
    word: str
    links: Mapping[str, Link] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """What to do, in this order; `is_done`: the worker can see that it is done."""

    title: str
    text: str = ""
    command: str = ""
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class FailoverAnswer:
    """To one of the two questions. `nothing_lost`: exit code 0 of `sparkmirror failover check`."""

    nothing_lost: bool
    sentence: Sentence
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True)
class Reading:
    """The lag of all partitions at one time."""

    time_ms: int
    partitions: int
    partitions_behind: int
    records_behind: int | None
    unknown: Reasons = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FailoverBrief:
    """The answer for the overview."""

    flow: str
    level: Level
    head: str
    text: str


@dataclass(frozen=True, slots=True)
class FailoverView:
    """Could consumers and producers of `source` move to `target`, and what would it cost?"""

    flow: str
    source: str
    target: str
    records_lost: int | None
    records_on_the_way: int | None
    records_reread: int | None
    groups: int | None
    groups_without_offset: int | None
    lost: FailoverAnswer
    planned: FailoverAnswer
    evidence: Sequence[Evidence]
    readings: Sequence[Reading]
    unknown: Reasons = field(default_factory=dict)


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


def as_json(row: object) -> object:
    """Rows as objects with the names of their fields."""
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {each.name: as_json(getattr(row, each.name)) for each in dataclasses.fields(row)}
    if isinstance(row, Mapping):
        return {str(key): as_json(value) for key, value in row.items()}
    if isinstance(row, enum.Enum):
        return row.value
    if isinstance(row, (list, tuple)):
        return [as_json(each) for each in row]
    return row
