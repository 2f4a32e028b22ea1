"""Could consumers and producers of one cluster move to another now, and what would it cost?

Runs on: worker. Pure. Whatever is not known makes the answer "no": only what two readings and both
clusters say counts as evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sparkmirror.monitoring.views.failover.failover_evidence import FailoverFacts, evidence_of
from sparkmirror.monitoring.views.rows.common import Level, Sentence
from sparkmirror.monitoring.views.rows.failover_rows import (
    FailoverAnswer,
    FailoverBrief,
    FailoverView,
    LagReading,
    Step,
)
from sparkmirror.monitoring.views.rows.partition_rows import PartitionRow
from sparkmirror.monitoring.views.wording.words import clock, count, counted, duration

EARLIEST: Final = "with auto.offset.reset=earliest"
READINGS_MS: Final = 5_000


@dataclass(frozen=True, slots=True)
class Costs:
    """None: not known."""

    lost: int | None
    on_the_way: int | None
    reread: int | None
    groups: int | None
    without_offset: int | None


def failover_view(facts: FailoverFacts) -> FailoverView:
    """Both answers."""
    costs = _costs(facts)
    unknown: dict[str, str] = {}
    if costs.lost is None:
        why = _why_unknown(facts)
        unknown |= dict.fromkeys(("records_lost", "records_on_the_way"), why)
    if costs.groups is None:
        unknown |= dict.fromkeys(
            ("records_reread", "groups", "groups_without_offset"), facts.no_groups
        )
    elif costs.reread is None:
        unknown["records_reread"] = "not known of all groups"
    return FailoverView(
        flow=facts.flow,
        source=facts.source,
        target=facts.target,
        records_lost=costs.lost,
        records_on_the_way=costs.on_the_way,
        records_reread=costs.reread,
        groups=costs.groups,
        groups_without_offset=costs.without_offset,
        lost=_if_lost(facts, costs),
        planned=_if_planned(facts, costs),
        evidence=evidence_of(facts),
        readings=facts.readings,
        unknown=unknown,
    )


def failover_brief(view: FailoverView) -> FailoverBrief:
    """For the overview, where the question is: what if the source is lost now?"""
    sentence = view.lost.sentence
    head, _, text = sentence.head.partition(": ")
    return FailoverBrief(view.flow, sentence.level, head, text or sentence.text)


def _costs(facts: FailoverFacts) -> Costs:
    behind = [row.records_behind for row in facts.partitions]
    known = [number for number in behind if number is not None]
    is_known = facts.partitions and len(known) == len(behind) and not facts.missing
    way = sum(row.records_behind or 0 for row in facts.partitions if row.state in ("live", "idle"))
    more = max(0, facts.being_written - way)
    groups = facts.groups
    rereads = [] if groups is None else [row.reread_records for row in groups if row.newest]
    return Costs(
        lost=sum(known) + more + facts.skipped if is_known else None,
        on_the_way=way + more if is_known else None,
        reread=None if groups is None or None in rereads else sum(each or 0 for each in rereads),
        groups=None if groups is None else len(groups),
        without_offset=None
        if groups is None
        else sum(
            row.newest is not None and row.newest.committed_on_target is None for row in groups
        ),
    )


def _why_unknown(facts: FailoverFacts) -> str:
    if facts.missing:
        return "; ".join(facts.missing)
    lacking = [row for row in facts.partitions if row.records_behind is None]
    if not lacking:
        return "the flow has no partitions yet"
    first = lacking[0]
    why = first.problem or first.unknown.get("records_behind", "not known yet")
    return f"{counted(len(lacking), 'partition')}, first `{first.topic}-{first.partition}`: {why}"


def _bad(facts: FailoverFacts) -> list[PartitionRow]:
    return [row for row in facts.partitions if row.state in ("failed", "stuck", "paused")]


def _if_lost(facts: FailoverFacts, costs: Costs) -> FailoverAnswer:
    nothing_lost = costs.lost == 0 and facts.is_quiet and not facts.blocked and facts.is_complete
    return FailoverAnswer(
        nothing_lost, _lost_sentence(facts, costs, nothing_lost), _lost_steps(facts, costs)
    )


def _lost_sentence(facts: FailoverFacts, costs: Costs, nothing_lost: bool) -> Sentence:
    if costs.lost is None:
        head = "Unknown: what would be lost cannot be told now"
        return Sentence(Level.UNKNOWN, "unknown", head, f"{_why_unknown(facts)}.")
    if nothing_lost:
        head = f"Ready: nothing would be lost, {_reread(costs)} re-read"
        return Sentence(Level.OK, "ready", head, f"{_readings(facts.readings)}.")
    if facts.blocked:
        head = f"Not ready: {counted(len(facts.blocked), 'topic')} would be missing"
        return Sentence(Level.BAD, "loss", head, f"`{facts.blocked[0]}` is not on {facts.target}.")
    bad = _bad(facts)
    if bad or facts.skipped:
        head = f"Not ready: {counted(costs.lost, 'record')} would be lost"
        return Sentence(Level.BAD, "loss", head, _which_lost(facts, costs, bad))
    return _nearly(facts, costs, costs.lost)


def _which_lost(facts: FailoverFacts, costs: Costs, bad: Sequence[PartitionRow]) -> str:
    if not bad:
        skipped = counted(facts.skipped, "record")
        return f"{skipped} were skipped and exist on {facts.source} only."
    waiting = sum(row.records_behind or 0 for row in bad)
    return (
        f"{count(waiting)} of them wait in {counted(len(bad), 'partition')}, first "
        f"`{bad[0].topic}-{bad[0].partition}`; {count(costs.on_the_way or 0)} are on the way."
    )


def _nearly(facts: FailoverFacts, costs: Costs, lost: int) -> Sentence:
    """Nothing is wrong; it is only a matter of time."""
    if facts.is_catching_up:
        head = f"Not yet: {counted(lost, 'record')} are not on {facts.target}"
        return Sentence(Level.INFO, "not yet", head, "The flow is catching up.")
    if not lost and not facts.is_complete:
        head = "Not yet: some evidence is not known"
        return Sentence(Level.UNKNOWN, "unknown", head, f"{facts.topics_problem}.")
    if not lost:
        head = "Not yet: no lag now, but not twice in a row without writes"
        return Sentence(Level.INFO, "not yet", head, "Ask again in 5 s.")
    late = duration(max(facts.seconds_behind or 0.0, facts.latency_seconds))
    head = f"Only the last {late} would be lost: about {counted(lost, 'record')}"
    text = f"They are on the way, as always while producers write; {_reread(costs)} re-read."
    return Sentence(Level.WARN, "on the way", head, text)


def _reread(costs: Costs) -> str:
    unknown = "an unknown number of records"
    return unknown if costs.reread is None else counted(costs.reread, "record")


def _readings(readings: Sequence[LagReading]) -> str:
    """Of a flow that is quiet."""
    first, last = readings[0], readings[-1]
    return (
        f"All {count(last.partitions)} partitions had no lag twice, at {clock(first.time_ms)} and "
        f"at {clock(last.time_ms)}, and nothing was written between"
    )


def _if_planned(facts: FailoverFacts, costs: Costs) -> FailoverAnswer:
    """Whether everything arrives once consumers and producers have stopped."""
    to_do = _to_do(facts, costs)
    is_ready = costs.lost is not None and not to_do and facts.is_complete and not facts.skipped
    steps = _planned_steps(facts, costs)
    if costs.lost is None:
        text = f"{_why_unknown(facts)}."
        head = "Unknown: whether everything would arrive cannot be told now"
        return FailoverAnswer(False, Sentence(Level.UNKNOWN, "unknown", head, text), steps)
    if is_ready and facts.is_quiet:
        head = "Ready: everything is copied, nothing would be lost"
        text = f"{_readings(facts.readings)}."
        return FailoverAnswer(True, Sentence(Level.OK, "ready", head, text), steps)
    if is_ready:
        head = "Ready to move: nothing will be lost"
        text = (
            "Stop the consumers and the producers in this order; what is on the way arrives before "
            f"you start them on {facts.target}."
        )
        return FailoverAnswer(True, Sentence(Level.OK, "ready", head, text), steps)
    if facts.skipped:
        to_do.append(f"{counted(facts.skipped, 'record')} were skipped: copy them by hand")
    if not to_do:
        to_do = ["some evidence is not known yet: see below"]
    things = "1 thing" if len(to_do) == 1 else f"{len(to_do)} things"
    head = f"Not ready: {things} to do first"
    return FailoverAnswer(False, Sentence(Level.WARN, "first", head, f"{'; '.join(to_do)}."), steps)


def _to_do(facts: FailoverFacts, costs: Costs) -> list[str]:
    found = []
    bad = _bad(facts)
    if bad:
        first = f"`{bad[0].topic}-{bad[0].partition}`"
        more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
        found.append(f"{first}{more} {'is' if len(bad) == 1 else 'are'} not copied: see Topics")
    if facts.is_catching_up:
        found.append("wait until the flow has caught up")
    if facts.blocked:
        found.append(f"{counted(len(facts.blocked), 'topic')} cannot be mirrored: see Why not")
    busy = [row for row in facts.groups or () if row.members_on_target]
    if busy:
        found.append(f"stop the consumers of `{busy[0].group}` on {facts.target}")
    return found


def _lost_steps(facts: FailoverFacts, costs: Costs) -> list[Step]:
    left = (
        f"The {counted(costs.lost, 'record')} are only there."
        if costs.lost
        else "The last records may be only there."
    )
    return [
        Step("Stop the mirror", f"so that it writes nothing when {facts.source} comes back"),
        Step(
            "Write the last checkpoints to the groups",
            f"for groups that are not synced yet; the file names {facts.target}",
            f"sparkmirror groups sync -src {facts.source} -pfp {facts.target}.properties --once",
        ),
        Step(f"Start the consumers on {facts.target}", EARLIEST),
        Step(f"Start the producers on {facts.target}"),
        Step(f"Keep the disks of {facts.source}", left),
    ]


def _planned_steps(facts: FailoverFacts, costs: Costs) -> list[Step]:
    is_quiet = costs.lost == 0 and facts.is_quiet
    active = [row for row in facts.groups or () if row.members]
    stopped = facts.groups is not None and not active
    return [
        Step(
            f"Stop the consumers on {facts.source}", "They commit when they end.", is_done=stopped
        ),
        Step("Stop the producers", is_done=is_quiet),
        Step(
            "Wait until this says: nothing would be lost",
            "In a script, exit code 0 means yes:",
            f"sparkmirror failover check {facts.source} {facts.target}",
            is_done=is_quiet,
        ),
        Step(
            "Wait until all groups are synced",
            "Checkpoints and offsets are written every minute, unless the settings say otherwise.",
            is_done=facts.groups is not None and all(row.state == "synced" for row in facts.groups),
        ),
        Step(f"Start consumers, then producers, on {facts.target}", EARLIEST),
        Step("Stop the mirror"),
    ]
