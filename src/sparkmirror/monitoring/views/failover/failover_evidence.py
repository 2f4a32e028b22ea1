"""What can be seen from here about a failover; what cannot is said, not guessed.

Runs on: worker. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sparkmirror.monitoring.views.partition_view import most
from sparkmirror.monitoring.views.rows.common import Level, Link
from sparkmirror.monitoring.views.rows.failover_rows import Evidence, LagReading
from sparkmirror.monitoring.views.rows.group_rows import GroupRow
from sparkmirror.monitoring.views.rows.partition_rows import PartitionRow
from sparkmirror.monitoring.views.wording.words import clock, count, counted, duration, names

YES, NOT_ALL, NO, NOT_YET, UNKNOWN = "Yes", "Not all", "No", "Not yet", "Unknown"
YOU_CHECK: Final = "You check"
# A heartbeat is written every second, and replicated at once.
FRESH_HEARTBEAT: Final = 10.0


@dataclass(frozen=True, slots=True)
class FailoverFacts:
    """Of one flow. `blocked`: topics that should be on the target and are not; None: not known.

    `missing`: workers that did not answer. `heartbeat`: its age, or None and `no_heartbeat` says
    why. `groups`: None and `no_groups` says why.
    """

    flow: str
    source: str
    target: str
    partitions: Sequence[PartitionRow]
    topics: int
    blocked: Sequence[str]
    topics_problem: str
    groups: Sequence[GroupRow] | None
    no_groups: str
    heartbeat: float | None
    no_heartbeat: str
    is_heartbeat_unknown: bool
    readings: Sequence[LagReading]
    missing: Sequence[str]
    since: str
    written_per_second: float | None = 0.0
    latency_seconds: float = 0.0

    @property
    def is_quiet(self) -> bool:
        """Whether all was copied at two readings, and nothing was written between them."""
        if len(self.readings) < 2:
            return False
        ends = {reading.end_offsets for reading in self.readings}
        return len(ends) == 1 and all(
            reading.records_behind == 0 and not reading.unknown for reading in self.readings
        )

    @property
    def being_written(self) -> int:
        """An estimate of records that are on the way at any moment, while producers write."""
        if len(self.readings) > 1 and len({each.end_offsets for each in self.readings}) == 1:
            return 0
        return math.ceil((self.written_per_second or 0.0) * self.latency_seconds)

    @property
    def skipped(self) -> int:
        """Records that errors.tolerance left out."""
        return sum(row.skipped_records for row in self.partitions)

    @property
    def lost(self) -> int:
        """Records that the source had deleted before they were copied."""
        return sum(row.lost_records for row in self.partitions)

    @property
    def seconds_behind(self) -> float | None:
        """Of the worst partition."""
        return most(row.seconds_behind for row in self.partitions)

    @property
    def is_catching_up(self) -> bool:
        """Whether a partition is further behind than what is always on the way."""
        return any(row.state == "catching up" for row in self.partitions)

    @property
    def is_complete(self) -> bool:
        """Whether all that decides is known: lag of all partitions, and which topics there are."""
        is_known = all(row.records_behind is not None for row in self.partitions)
        return bool(self.partitions) and is_known and not self.missing and not self.topics_problem


def evidence_of(facts: FailoverFacts) -> list[Evidence]:
    """Every question, in the order of the page."""
    return [
        _alive(facts),
        _copied(facts),
        _lost(facts),
        _groups(facts),
        _exact(facts),
        _topics(facts),
        Evidence(
            "consumers",
            Level.UNKNOWN,
            "Consumers subscribe to both names and start at earliest",
            "Cannot be seen from here: consumers need the topic's name on both clusters, such as "
            f"`({facts.source}\\.)?orders`, and `auto.offset.reset=earliest`",
            YOU_CHECK,
        ),
    ]


def _alive(facts: FailoverFacts) -> Evidence:
    question = "The flow is alive"
    age = facts.heartbeat
    if age is None:
        level, word = (
            (Level.UNKNOWN, UNKNOWN) if facts.is_heartbeat_unknown else (Level.WARN, YOU_CHECK)
        )
        return Evidence("alive", level, question, facts.no_heartbeat, word)
    text = f"Newest heartbeat of {facts.source} on {facts.target} is {duration(age)} old"
    if age <= FRESH_HEARTBEAT:
        return Evidence("alive", Level.OK, question, text, YES)
    return Evidence("alive", Level.BAD, question, text, NO)


def _copied(facts: FailoverFacts) -> Evidence:
    question = "Every partition keeps up"
    rows = facts.partitions
    lacking = [row for row in rows if row.records_behind is None]
    if not rows or lacking or facts.missing:
        where = f"not known of {count(len(lacking))} of {counted(len(rows), 'partition')}"
        why = "; ".join(facts.missing) or next(
            (row.problem or row.unknown.get("records_behind", "") for row in lacking), ""
        )
        return Evidence("copied", Level.UNKNOWN, question, f"{where}: {why}", UNKNOWN)
    bad = [row for row in rows if row.state in ("failed", "stuck", "paused")]
    late = [row for row in rows if row.state == "catching up"]
    fine = len(rows) - len(bad) - len(late)
    if bad:
        first = bad[0]
        name = f"{first.topic}-{first.partition}"
        behind = duration(first.seconds_behind or 0.0)
        text = (
            f"{count(fine)} of {count(len(rows))} keep up. `{name}` is {first.state}: {behind} and "
            f"{count(first.records_behind or 0)} records behind"
        )
        link = Link("topics", {"open": f"{facts.flow}/{first.topic}"})
        return Evidence("copied", Level.BAD, question, text, NO, {name: link})
    if late:
        worst = duration(facts.seconds_behind or 0.0)
        text = f"{count(len(late))} of {count(len(rows))} are catching up, {worst} behind"
        return Evidence("copied", Level.INFO, question, text, NOT_YET)
    if facts.is_quiet:
        before, after = facts.readings[0].time_ms, facts.readings[-1].time_ms
        text = (
            f"{count(len(rows))} of {count(len(rows))} partitions had no lag at {clock(before)} "
            f"and at {clock(after)}; nothing was written between"
        )
        return Evidence("copied", Level.OK, "Everything is copied", text, YES)
    worst = duration(facts.seconds_behind or 0.0)
    text = (
        f"{count(len(rows))} of {count(len(rows))} are at most {worst} behind; records are being "
    )
    text += "written" if facts.written_per_second else "written, or were a moment ago"
    return Evidence("copied", Level.OK, question, text, YES)


def _lost(facts: FailoverFacts) -> Evidence:
    text = (
        f"{counted(facts.lost, 'record')} lost to retention, "
        f"{counted(facts.skipped, 'record')} skipped, since {facts.since}"
    )
    is_fine = not facts.lost and not facts.skipped
    return Evidence(
        "lost",
        Level.OK if is_fine else Level.BAD,
        "Nothing was lost or skipped before",
        text,
        YES if is_fine else NO,
        {} if is_fine else {"events": Link("events", {"kind": "lost,skipped"})},
    )


def _groups(facts: FailoverFacts) -> Evidence:
    question = f"Every group has its offset on {facts.target}"
    if facts.groups is None:
        return Evidence("groups", Level.UNKNOWN, question, facts.no_groups, UNKNOWN)
    rows = facts.groups
    if not rows:
        return Evidence("groups", Level.OK, question, "No group is followed", YES)
    left = [row for row in rows if row.state != "synced"]
    synced = f"{count(len(rows) - len(left))} of {counted(len(rows), 'group')} synced"
    if not left:
        ages = [
            row.checkpoint_age_seconds for row in rows if row.checkpoint_age_seconds is not None
        ]
        oldest = f", oldest checkpoint {duration(max(ages))}" if ages else ""
        return Evidence("groups", Level.OK, question, f"{synced}{oldest}", YES)
    links = {row.group: Link("groups", {"open": f"{facts.flow}/{row.group}"}) for row in left[:3]}
    first = left[0]
    text = f"{synced}. `{first.group}`: {first.reason}"
    if len(left) > 1:
        text += f"; also {names([row.group for row in left[1:]])}"
    return Evidence("groups", Level.WARN, question, text, NOT_ALL, links)


def _exact(facts: FailoverFacts) -> Evidence:
    question = "Offsets are exact"
    if facts.groups is None:
        return Evidence("exact", Level.UNKNOWN, question, facts.no_groups, UNKNOWN)
    translated = [row for row in facts.groups if row.translation]
    ruled = [row for row in translated if row.translation != "exact"]
    total = counted(len(translated), "group")
    if not ruled:
        text = f"{count(len(translated))} of {total}"
        return Evidence("exact", Level.OK, question, text, YES)
    first = ruled[0]
    again = (
        ""
        if first.reread_records is None
        else (f" and re-reads at most {counted(first.reread_records, 'record')}")
    )
    text = (
        f"{count(len(translated) - len(ruled))} of {total}. `{first.group}` is placed by "
        f"MirrorMaker 2's rule{again}"
    )
    link = Link("groups", {"open": f"{facts.flow}/{first.group}"})
    return Evidence("exact", Level.WARN, question, text, NOT_ALL, {first.group: link})


def _topics(facts: FailoverFacts) -> Evidence:
    question = "Every topic that should be there is there"
    if facts.topics_problem:
        return Evidence("topics", Level.UNKNOWN, question, facts.topics_problem, UNKNOWN)
    whole = facts.topics + len(facts.blocked)
    if not facts.blocked:
        text = f"{count(facts.topics)} of {counted(whole, 'topic')}"
        return Evidence("topics", Level.OK, question, text, YES)
    text = f"{count(facts.topics)} of {whole}: {names(list(facts.blocked))} cannot be mirrored"
    link = Link("topics", {"tab": "whynot"})
    return Evidence("topics", Level.WARN, question, text, NOT_ALL, {"blocked": link})
