"""Consumer groups: whether each has its place on the target, and what a failover would re-read.

Runs on: worker. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sparkmirror.monitoring.clusters.flow_watch import FlowWatch
from sparkmirror.monitoring.clusters.groups_look import GroupPosition, GroupSeen, GroupsSeen
from sparkmirror.monitoring.views.partition_view import total
from sparkmirror.monitoring.views.rows.common import Remedy
from sparkmirror.monitoring.views.rows.group_rows import GroupPartitionRow, GroupRow
from sparkmirror.monitoring.views.wording.paging import Page, Query, choice, name_filter, page
from sparkmirror.monitoring.views.wording.remedies import remedy_of, without_remedy
from sparkmirror.monitoring.views.wording.words import counted

SYNCED, PARTLY, NOT, UNKNOWN = "synced", "partly synced", "not synced", "unknown"
RANK: Final[Mapping[str, int]] = {NOT: 0, PARTLY: 1, UNKNOWN: 2, SYNCED: 3}
EXACT, RULE = "exact", "MM2's rule"
STATES: Final = ("all", NOT, "reread", "rule", UNKNOWN)
SORTS: Final = ("state", "group", "reread", "checkpoint")
_FIGURES: Final = ("newest", "checkpoint_age_seconds", "reread_records", "members_on_target")
NO_OFFSET = "no offset on the target: a consumer starts there as its auto.offset.reset says"
SWITCHED_OFF = "`sync.group.offsets.enabled` is false: checkpoints are written, offsets are not"


def group_rows(watch: FlowWatch, now_ms: int) -> list[GroupRow]:
    """All groups of a flow that is watched."""
    seen = watch.groups.value
    if seen is None:
        return []
    return [_row(watch, group, seen, now_ms) for group in seen.groups]


def group_partitions(group: GroupSeen) -> list[GroupPartitionRow]:
    """Of one group, those first that would read most again."""
    rows = [_partition(place, group) for place in group.places]
    rows.sort(key=lambda row: -1 if row.reread_records is None else -row.reread_records)
    return rows


def find_group(watch: FlowWatch, name: str) -> GroupSeen | None:
    """None: the flow does not follow it."""
    groups = () if watch.groups.value is None else watch.groups.value.groups
    return next((group for group in groups if group.name == name), None)


def _row(watch: FlowWatch, group: GroupSeen, seen: GroupsSeen, now_ms: int) -> GroupRow:
    target = watch.specs.aliases[1]
    parts = [_partition(place, group) for place in group.places]
    synced = sum(map(_is_synced, group.places))
    state, reason, remedy = _verdict(group, seen, synced, target)
    unknown: dict[str, str] = {}
    not_applicable: dict[str, str] = {}
    age = None if group.checkpoint_ms is None else max(0, now_ms - group.checkpoint_ms) / 1000
    if group.error:
        unknown = dict.fromkeys((*_FIGURES, "members"), group.error)
    elif age is None:
        not_applicable["checkpoint_age_seconds"] = "no checkpoint yet"
    if group.members is None and not group.error:
        unknown["members"] = "members of groups of the new protocol (KIP-848) are not counted"
    if group.members_on_target is None and not group.error:
        unknown["members_on_target"] = group.target_error or unknown.get("members", "not counted")
    reread = total(part.reread_records for part in parts) if parts else None
    if reread is None and not group.error:
        unknown["reread_records"] = next(
            (why for part in parts for why in _why(part)), "it has no offsets"
        )
    translations = {part.translation for part in parts if part.translation}
    return GroupRow(
        flow=watch.specs.flow,
        group=group.name,
        state=state,
        reason=reason,
        remedy=remedy,
        members=group.members,
        members_on_target=group.members_on_target,
        partitions=len(parts),
        synced_partitions=synced,
        topics=sorted({part.topic for part in parts}),
        newest=max(parts, key=lambda part: part.committed or 0) if parts else None,
        checkpoint_age_seconds=age,
        reread_records=reread,
        translation=RULE if RULE in translations else EXACT if EXACT in translations else "",
        unknown=unknown,
        not_applicable=not_applicable,
    )


def _why(part: GroupPartitionRow) -> list[str]:
    name = f"`{part.topic}-{part.partition}`"
    reasons = (*part.unknown.items(), *part.not_applicable.items())
    return [f"{name}: {why}" for key, why in reasons if key == "reread_records"]


def _is_synced(place: GroupPosition) -> bool:
    """Whether the target has the offset of the last checkpoint, or a later one."""
    if place.on_target is None:
        return False
    return place.checkpoint is not None and place.on_target >= place.checkpoint


def _verdict(
    group: GroupSeen, seen: GroupsSeen, synced: int, target: str
) -> tuple[str, str, Remedy | None]:
    if group.error:
        return UNKNOWN, without_remedy(group.error), remedy_of(group.error)
    if group.target_error:
        return UNKNOWN, without_remedy(group.target_error), remedy_of(group.target_error)
    if group.members_on_target:
        members = counted(group.members_on_target, "member")
        return (
            NOT,
            f"{members} on {target}: offsets of a group in use are left alone",
            Remedy(f"To sync it again, stop its consumers on {target}."),
        )
    if synced == len(group.places) and group.places:
        return SYNCED, "", None
    if not seen.is_synced:
        line = "sync.group.offsets.enabled = true"
        return NOT, SWITCHED_OFF, Remedy("To write offsets on the target:", line)
    left = next(place for place in group.places if not _is_synced(place))
    state = PARTLY if synced else NOT
    return state, f"`{left.upstream}`: {_why_not(left, target)}", None


def _why_not(place: GroupPosition, target: str) -> str:
    if place.translated is None:
        return place.why
    if place.checkpoint is None:
        return "no checkpoint yet"
    if place.on_target is None:
        return f"no offset on {target} yet; the next sync writes it"
    return f"the offset on {target} is older than the last checkpoint; the next sync writes it"


def _partition(place: GroupPosition, group: GroupSeen) -> GroupPartitionRow:
    unknown: dict[str, str] = {}
    not_applicable: dict[str, str] = {}
    if place.translated is None:
        not_applicable["translated"] = place.why
    if place.on_target is None:
        why = group.target_error or NO_OFFSET
        found = unknown if group.target_error else not_applicable
        found |= dict.fromkeys(("committed_on_target", "reread_records"), why)
    translation = "" if place.translated is None else EXACT if place.is_exact else RULE
    return GroupPartitionRow(
        topic=place.upstream.topic,
        partition=place.upstream.partition,
        target_topic=place.downstream.topic,
        committed=place.committed,
        translated=place.translated,
        committed_on_target=place.on_target,
        translation=translation,
        reread_records=place.reread,
        note=_note(place),
        unknown=unknown,
        not_applicable=not_applicable,
    )


def _note(place: GroupPosition) -> str:
    is_ahead = (
        place.on_target is not None
        and place.translated is not None
        and place.is_exact
        and place.on_target > place.translated
    )
    if is_ahead:
        return "its offset on the target is further than what it has read on the source"
    return ""


def select_groups_view(rows: Sequence[GroupRow], query: Query) -> Page[GroupRow]:
    """Those that were asked for. Raises BadQuery."""
    state = choice(query.state, STATES, "state")
    sort = choice(query.sort, SORTS, "sort")
    direction = choice(query.direction, ("", "asc", "desc"), "dir")
    accepts = name_filter(query.q)
    named = [row for row in rows if not query.q or accepts(row.group)]
    counts = {each: sum(map(_is_in(each), named)) for each in STATES}
    chosen = [row for row in named if _is_in(state)(row)]
    key, largest_first = _KEYS[sort]
    chosen.sort(key=key, reverse=largest_first if not direction else direction == "desc")
    return page(chosen, query, counts, len(rows))


def _is_in(state: str) -> Callable[[GroupRow], bool]:
    if state == NOT:
        return lambda row: row.state in (NOT, PARTLY)
    if state == "reread":
        return lambda row: bool(row.reread_records)
    if state == "rule":
        return lambda row: row.translation == RULE
    return lambda row: state in ("all", row.state)


def _reread(row: GroupRow) -> float:
    return float("inf") if row.reread_records is None else row.reread_records


_KEYS: Final[Mapping[str, tuple[Callable[[GroupRow], tuple[float | str, ...]], bool]]] = {
    "state": (lambda row: (RANK[row.state], -_reread(row), row.group), False),
    "group": (lambda row: (row.group,), False),
    "reread": (lambda row: (_reread(row),), True),
    "checkpoint": (lambda row: (row.checkpoint_age_seconds or 0.0,), True),
}
