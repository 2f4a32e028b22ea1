"""Whether consumers and producers could move now, and what it would cost.

Runs on: worker. Pure. See the package for what None means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.monitoring.views.rows.common import Level, Link, Reasons, Sentence


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
class LagReading:
    """The lag of all partitions but heartbeats at one time.

    `end_offsets`: sum of the ends of their logs on the source; two readings with the same sum:
    nothing was written between them.
    """

    time_ms: int
    partitions: int
    partitions_behind: int
    records_behind: int | None
    end_offsets: int | None
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
    readings: Sequence[LagReading]
    unknown: Reasons = field(default_factory=dict)
