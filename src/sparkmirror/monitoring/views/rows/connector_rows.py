"""Connectors, their tasks and settings.

Runs on: worker. Pure. See the package for what None means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sparkmirror.monitoring.views.rows.common import Reasons, Remedy


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
