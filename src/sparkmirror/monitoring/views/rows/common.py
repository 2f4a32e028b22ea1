"""What rows have in common: levels, links, remedies, who asks, which workers there are.

Runs on: worker. Pure. See the package for what None means.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

Reasons = Mapping[str, str]
"""Why a field of a row is None."""


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
    """What to do; `command`: a command or a line of a file to copy, "" if there is none."""

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
class Requester:
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
class Sentence:
    """A verdict: the head in large letters, and what it is based on."""

    level: Level
    code: str
    head: str
    text: str


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
