"""Rows of partitions, also of those that no worker tells of at the moment: they are unknown.

Runs on: worker. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sparkmirror.config.masking import mask
from sparkmirror.monitoring.lag.partition_lag import NoLoss, PartitionLag, PartitionState
from sparkmirror.monitoring.views.rows.common import Reasons
from sparkmirror.monitoring.views.rows.partition_rows import PartitionRow, StateCounts
from sparkmirror.monitoring.views.wording.remedies import remedy_of
from sparkmirror.types import TopicPartition

UNKNOWN: Final = "unknown"
# The worst first.
RANK: Final[Mapping[str, int]] = {
    PartitionState.FAILED: 0,
    PartitionState.STUCK: 1,
    UNKNOWN: 2,
    PartitionState.PAUSED: 3,
    PartitionState.CATCHING_UP: 4,
    PartitionState.LIVE: 5,
    PartitionState.IDLE: 6,
}
_NUMBERS: Final = (
    "position",
    "end_offset",
    "records_behind",
    "bytes_behind",
    "seconds_behind",
    "oldest_ms",
    "retention_ms",
    "retention_bytes",
    "seconds_until_loss",
    "loss_at_ms",
)
_LOSS: Final = ("seconds_until_loss", "loss_at_ms")
_ALL_COPIED: Reasons = dict.fromkeys((*_LOSS, "oldest_ms"), "everything is copied")
_NO_LOSS: Mapping[str, Reasons] = {
    NoLoss.COMPACTED: dict.fromkeys(_LOSS, "not by retention: cleanup.policy is compact"),
    NoLoss.UNLIMITED: dict.fromkeys(_LOSS, "not by retention: the topic has none"),
}
_LOSS_UNKNOWN: Reasons = dict.fromkeys(
    _LOSS, "the topic's retention, or the age of its oldest uncopied record, is not known yet"
)
_NOTHING: Reasons = {}


@dataclass(frozen=True, slots=True)
class ExpectedPartition:
    """A partition that the config topic assigns to a task; `why`: no worker tells of it.

    `state` is "paused" if the connector is, else "unknown".
    """

    flow: str
    connector: str
    task: int
    worker: str
    source: TopicPartition
    target_topic: str
    state: str
    why: str


def partition_row(lag: PartitionLag, worker: str, since_ms: int | None) -> PartitionRow:
    """Of a partition that a worker told of. `since_ms`: since when it is stuck or has failed."""
    is_copied = lag.records_behind == 0
    problem = mask(lag.problem) if lag.problem else ""
    has_loss = lag.seconds_until_loss is not None and not is_copied
    unknown: dict[str, str] = {}
    for name in _NUMBERS[:5]:
        if getattr(lag, name) is None:
            unknown[name] = problem or "its task has not reported it yet"
    not_applicable = _NOTHING
    if is_copied:
        not_applicable = _ALL_COPIED
    elif not has_loss:
        not_applicable = _NO_LOSS.get(lag.no_loss, _NOTHING)
        if not not_applicable:
            unknown |= _LOSS_UNKNOWN
    left = lag.seconds_until_loss if has_loss else None
    return PartitionRow(
        flow=lag.flow,
        topic=lag.source.topic,
        partition=lag.source.partition,
        target_topic=lag.target.topic,
        state=str(lag.state),
        problem=problem,
        remedy=remedy_of(problem) if problem else None,
        since_ms=since_ms,
        connector=lag.connector,
        task=lag.task,
        worker=worker,
        position=lag.position,
        end_offset=lag.end_offset,
        records_behind=lag.records_behind,
        bytes_behind=lag.bytes_behind,
        seconds_behind=None if lag.seconds_behind is None else round(lag.seconds_behind, 3),
        oldest_ms=lag.oldest_ms,
        lost_records=lag.lost_records,
        skipped_records=lag.skipped_records,
        retention_ms=lag.retention_ms,
        retention_bytes=lag.retention_bytes,
        cleanup_policy=lag.cleanup_policy,
        seconds_until_loss=None if left is None else round(left, 3),
        loss_at_ms=None if left is None else lag.at_ms + round(left * 1000),
        unknown=unknown,
        not_applicable=not_applicable,
    )


def expected_row(expected: ExpectedPartition) -> PartitionRow:
    """Of a partition that no worker told of."""
    return PartitionRow(
        flow=expected.flow,
        topic=expected.source.topic,
        partition=expected.source.partition,
        target_topic=expected.target_topic,
        state=expected.state,
        problem=expected.why,
        remedy=None,
        since_ms=None,
        connector=expected.connector,
        task=expected.task,
        worker=expected.worker,
        position=None,
        end_offset=None,
        records_behind=None,
        bytes_behind=None,
        seconds_behind=None,
        oldest_ms=None,
        lost_records=0,
        skipped_records=0,
        retention_ms=None,
        retention_bytes=None,
        cleanup_policy="",
        seconds_until_loss=None,
        loss_at_ms=None,
        unknown=dict.fromkeys((*_NUMBERS, "lost_records", "skipped_records"), expected.why),
    )


def worst_first(row: PartitionRow) -> tuple[int, float, str, int]:
    """Sort key; a lag that is not known counts as long."""
    late = float("inf") if row.seconds_behind is None else row.seconds_behind
    return RANK[row.state], -late, row.topic, row.partition


def state_counts(rows: Iterable[PartitionRow]) -> StateCounts:
    """How many there are in each state."""
    counts = dict.fromkeys(RANK, 0)
    for row in rows:
        counts[row.state] += 1
    named = {state.replace(" ", "_"): number for state, number in counts.items()}
    return StateCounts(sum(counts.values()), **named)


def worst_state(rows: Sequence[PartitionRow]) -> str:
    """Of at least one."""
    return min((row.state for row in rows), key=RANK.__getitem__)


def total(values: Iterable[int | None]) -> int | None:
    """None if one of them is not known."""
    found = 0
    for value in values:
        if value is None:
            return None
        found += value
    return found


def most(values: Iterable[float | None]) -> float | None:
    """The largest; None if one of them is not known: it may be larger."""
    found = 0.0
    for value in values:
        if value is None:
            return None
        found = max(found, value)
    return found


def nearest_loss(
    rows: Sequence[PartitionRow],
) -> tuple[float | None, int | None, dict[str, str], dict[str, str]]:
    """Seconds and time of the nearest loss, then reasons: unknown, and not applicable."""
    known = [row for row in rows if row.seconds_until_loss is not None]
    if known:
        first = min(known, key=lambda row: row.seconds_until_loss or 0.0)
        return first.seconds_until_loss, first.loss_at_ms, {}, {}
    for row in rows:
        if "seconds_until_loss" in row.unknown:
            return None, None, dict.fromkeys(_LOSS, row.unknown["seconds_until_loss"]), {}
    for row in rows:
        if row.records_behind:
            why = row.not_applicable.get("seconds_until_loss", "")
            return None, None, {}, dict.fromkeys(_LOSS, why)
    return None, None, {}, dict.fromkeys(_LOSS, "everything is copied")
