"""What happened to a flow, as part of the log line that reports it.

Runs on: worker. Pure. `log.info("...", extra=event(EventKind.CREATED, flow="a->b", topic="t"))`
marks a line as an event; `monitoring/event_log` keeps those lines for the page, REST and the CLI.
So an event and its log line always have the same words.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

FIELD = "event"
"""The attribute of a `logging.LogRecord` that has the mark."""


class EventKind(enum.StrEnum):
    """What can happen; the page shows these words."""

    STARTED = "started"
    STOPPED = "stopped"
    CREATED = "created"
    GREW = "grew"
    GONE = "gone"
    RECREATED = "recreated"
    SYNCED = "synced"
    REBALANCED = "rebalanced"
    FAILED = "failed"
    RECOVERED = "recovered"
    STUCK = "stuck"
    BLOCKED = "blocked"
    LOST = "lost"
    SKIPPED = "skipped"
    UNREACHABLE = "unreachable"
    REACHABLE = "reachable"
    ACTION = "action"


@dataclass(frozen=True, slots=True)
class EventMark:
    """What the event is about; empty where it does not apply.

    `key` names what lasts, such as "task x-0": a later event with the same key and `ends` is the
    end of it. `cause` is the key of the event that led to this one. `user`: who asked for it.
    """

    kind: EventKind
    flow: str = ""
    connector: str = ""
    task: str = ""
    topic: str = ""
    partition: int | None = None
    cluster: str = ""
    group: str = ""
    key: str = ""
    ends: bool = False
    cause: str = ""
    user: str = ""


def event(
    kind: EventKind,
    *,
    flow: object = "",
    connector: str = "",
    task: str = "",
    topic: str = "",
    partition: int | None = None,
    cluster: str = "",
    group: str = "",
    key: str = "",
    ends: bool = False,
    cause: str = "",
    user: str = "",
) -> Mapping[str, object]:
    """For `extra=` of a call of a logger."""
    mark = EventMark(
        kind, str(flow), connector, task, topic, partition, cluster, group, key, ends, cause, user
    )
    return {FIELD: mark}


def about_connector(kind: EventKind, name: str, label: str = "") -> Mapping[str, object]:
    """Of a line about a connector; its start or end ends a failure. `label`: its log name."""
    ends = kind in (EventKind.STARTED, EventKind.STOPPED)
    key = f"connector {label or name}" if ends or kind is EventKind.FAILED else ""
    return event(kind, connector=name, key=key, ends=ends)
