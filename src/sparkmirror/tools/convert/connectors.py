"""The connectors of one mirror, each with the settings that Strimzi would give it.

    config of the connector  <  tasksMax  <  topicsPattern and its like

A connector that the resource pauses or stops is written, but disabled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparkmirror.tools.convert.ledger import Fate, Node, members_of
from sparkmirror.tools.convert.settings import FileSetting, FileSettings, Values

SOURCE, CHECKPOINT, HEARTBEAT = "source", "checkpoint", "heartbeat"
KINDS = (SOURCE, CHECKPOINT, HEARTBEAT)
TASKS_MAX = "tasks.max"
# Field, setting, connectors that read it.
PATTERNS = {
    "topicsPattern": ("topics", (SOURCE, CHECKPOINT)),
    "topicsExcludePattern": ("topics.exclude", (SOURCE, CHECKPOINT)),
    "groupsPattern": ("groups", (CHECKPOINT,)),
    "groupsExcludePattern": ("groups.exclude", (CHECKPOINT,)),
}
# Older names of fields; the newer one wins.
OLD_PATTERNS = {
    "topicsBlacklistPattern": "topicsExcludePattern",
    "groupsBlacklistPattern": "groupsExcludePattern",
}
READERS = dict(PATTERNS.values())
STATES = ("running", "paused", "stopped")
# Strimzi does not allow these in a connector's config.
FORBIDDEN = {
    "name": Fate("the connector keeps the name that Strimzi gives it", "nothing"),
    "connector.class": Fate("sparkmirror has only the three Mirror connectors", "nothing"),
    TASKS_MAX: Fate("Strimzi does not allow it here", "write tasksMax"),
}
SWITCHED_OFF = Fate(
    "the connector is written, but disabled", "enable it in the written file when it may run"
)


@dataclass(frozen=True, slots=True)
class ResourceConnector:
    """One connector; `is_on` is false if the resource pauses or stops it."""

    kind: str
    path: str
    settings: FileSettings
    is_on: bool


def read_connectors(
    mirror: Node, values: Values, alias: str, *, has_heartbeats: bool
) -> dict[str, ResourceConnector]:
    """The connectors of a mirror, by kind; `alias` is that of its source."""
    kinds = KINDS if has_heartbeats else (SOURCE, CHECKPOINT)
    nodes = {kind: mirror.get(f"{kind}Connector") for kind in kinds}
    present = {kind: node for kind, node in nodes.items() if node is not None}
    patterns = _read_patterns(mirror, present)
    return {
        kind: _read_connector(node, kind, patterns, values, f"{alias}-{kind}")
        for kind, node in present.items()
    }


def _read_patterns(mirror: Node, present: Mapping[str, Node]) -> FileSettings:
    """The patterns of the mirror that one of its connectors reads, as settings."""
    found: FileSettings = {}
    for name, node in _named_patterns(mirror).items():
        key, readers = PATTERNS[name]
        setting = FileSetting(node.text(), node.path)
        if any(kind in present for kind in readers):
            found[key] = setting
        else:
            reason = f"the mirror has no {' or '.join(readers)} connector, which would read it"
            mirror.ledger.note(node.path, reason, "nothing")
    return found


def _named_patterns(mirror: Node) -> dict[str, Node]:
    """The fields under their newer names."""
    members = mirror.members()
    found = {name: members[name] for name in PATTERNS if name in members}
    for old, name in OLD_PATTERNS.items():
        if old in members and name in found:
            members[old].use()
            mirror.ledger.note(members[old].path, f"{name} takes precedence", "nothing")
        elif old in members:
            found[name] = members[old]
    return found


def _read_connector(
    node: Node, kind: str, patterns: FileSettings, values: Values, label: str
) -> ResourceConnector:
    members = node.members()
    if not members:
        node.use()
    own = {key: setting for key, setting in patterns.items() if kind in READERS[key]}
    settings = _read_config(members.get("config"), own, values, label)
    if tasks := members.get("tasksMax"):
        settings[TASKS_MAX] = FileSetting(str(tasks.number(least=1)), tasks.path)
    return ResourceConnector(kind, node.path, settings | own, is_on=_is_on(members))


def _read_config(
    config: Node | None, patterns: FileSettings, values: Values, label: str
) -> FileSettings:
    settings: FileSettings = {}
    for key, member in members_of(config).items():
        fate = FORBIDDEN.get(key)
        if key in patterns:
            fate = Fate(f"{patterns[key].path} takes precedence", "nothing")
        if fate is None:
            settings[key] = values.setting(member, key, label)
        else:
            member.use()
            member.ledger.note(member.path, fate.reason, fate.instead)
    return settings


def _is_on(members: Mapping[str, Node]) -> bool:
    state, pause = members.get("state"), members.get("pause")
    is_paused = pause is not None and pause.flag()
    if pause is not None and state is not None:
        pause.ledger.note(pause.path, "state takes precedence", "nothing")
    text = "running" if state is None else state.text()
    if state is not None and text not in STATES:
        state.wrong("is not a state", f"use one of {', '.join(STATES)}")
    is_on = text == "running" if state is not None else not is_paused
    cause = state if state is not None else pause
    if not is_on and cause is not None:
        cause.ledger.note(cause.path, SWITCHED_OFF.reason, SWITCHED_OFF.instead)
    return is_on
