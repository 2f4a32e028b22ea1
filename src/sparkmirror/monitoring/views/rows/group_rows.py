"""Consumer groups and their partitions.

Runs on: worker. Pure. See the package for what None means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sparkmirror.monitoring.views.rows.common import Reasons, Remedy


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
