"""The messages that workers of a group exchange when they join, as values and as bytes.

Runs on: worker. Pure. Each member reports what it runs (`MemberState`), the leader assigns what
each of them must run (`Assignment`). Mirrors: org.apache.kafka.connect.runtime.distributed
.IncrementalCooperativeConnectProtocol (KIP-415), with JSON instead of Kafka's schemas.

A missing field, a field of another type, or another version raises RemoteProtocolError. Unknown
fields are ignored, so that a later release can add some.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from sparkmirror.errors import RemoteProtocolError
from sparkmirror.foreign_json import parse_json
from sparkmirror.types import ConnectorTaskId

VERSION = 1
# Task numbers are Java ints.
TASK_ID = re.compile(r"(?P<connector>.*)-(?P<task>0|[1-9][0-9]{0,9})", re.DOTALL)
SHOWN_BYTES = 100


@dataclass(frozen=True, slots=True)
class MemberState:
    """A worker's description of itself.

    `tasks`: those that it runs, will start, or is still ending. `config_offset`: the offset up to
    which it has read the config topic. `slots`: how many tasks it can run. `draining`: it is about
    to leave. `missing`: by connector, target topics that its tasks cannot find; the leader looks
    for them.
    """

    url: str
    config_offset: int = -1
    slots: int = 0
    tasks: frozenset[ConnectorTaskId] = frozenset()
    draining: bool = False
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one worker must run from now on.

    `members`: the URLs of all workers. `config_offset`: the worker must have read the config topic
    up to here before it starts `tasks`. `revoked`: tasks that it reported and must end.
    `follow_up`: another generation comes as soon as the revoked tasks have ended.
    """

    leader_url: str = ""
    members: tuple[str, ...] = ()
    config_offset: int = -1
    tasks: frozenset[ConnectorTaskId] = frozenset()
    revoked: frozenset[ConnectorTaskId] = frozenset()
    follow_up: bool = False


def encode_member_state(state: MemberState) -> bytes:
    """Equal states give equal bytes: a coordinator ignores a follower's rejoin without changes."""
    return _encode(
        {
            "version": VERSION,
            "url": state.url,
            "config_offset": state.config_offset,
            "slots": state.slots,
            "tasks": _task_names(state.tasks),
            "draining": state.draining,
            "missing": {name: list(topics) for name, topics in sorted(state.missing.items())},
        }
    )


def decode_member_state(data: bytes) -> MemberState:
    """Raises RemoteProtocolError."""
    document = _Document("what a worker says of itself", data)
    return MemberState(
        document.text("url"),
        document.number("config_offset"),
        document.number("slots"),
        document.tasks("tasks"),
        document.flag("draining"),
        document.topics("missing"),
    )


def encode_assignment(assignment: Assignment) -> bytes:
    """The bytes that the leader sends to one member."""
    return _encode(
        {
            "version": VERSION,
            "leader_url": assignment.leader_url,
            "members": list(assignment.members),
            "config_offset": assignment.config_offset,
            "tasks": _task_names(assignment.tasks),
            "revoked": _task_names(assignment.revoked),
            "follow_up": assignment.follow_up,
        }
    )


def decode_assignment(data: bytes) -> Assignment:
    """Raises RemoteProtocolError."""
    document = _Document("which tasks this worker shall run", data)
    return Assignment(
        document.text("leader_url"),
        tuple(document.texts("members")),
        document.number("config_offset"),
        document.tasks("tasks"),
        document.tasks("revoked"),
        document.flag("follow_up"),
    )


def _encode(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _task_names(tasks: Iterable[ConnectorTaskId]) -> list[str]:
    return [str(task) for task in sorted(tasks)]


class _Document:
    """A JSON object that another worker wrote, field by field."""

    def __init__(self, what: str, data: bytes) -> None:
        self._what = f"read {what}: {data[:SHOWN_BYTES]!r}"
        try:
            fields = parse_json(data)
        except ValueError as error:
            raise RemoteProtocolError(f"{self._what}: no JSON") from error
        if not isinstance(fields, dict):
            raise RemoteProtocolError(f"{self._what}: no JSON object")
        self._fields: dict[str, Any] = fields
        if self.number("version") != VERSION:
            raise RemoteProtocolError(f"{self._what}: not of version {VERSION}")

    def text(self, name: str) -> str:
        value = self._fields.get(name)
        if not isinstance(value, str):
            self._fail(name, "text")
        return value

    def number(self, name: str) -> int:
        value = self._fields.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            self._fail(name, "number")
        return value

    def flag(self, name: str) -> bool:
        value = self._fields.get(name)
        if not isinstance(value, bool):
            self._fail(name, "flag")
        return value

    def texts(self, name: str) -> list[str]:
        return self._texts(name, self._fields.get(name))

    def _texts(self, name: str, values: object) -> list[str]:
        if not isinstance(values, list):
            self._fail(name, "list of texts")
        return [each if isinstance(each, str) else self._fail(name, "text") for each in values]

    def topics(self, name: str) -> dict[str, tuple[str, ...]]:
        """Lists of topics, by connector."""
        value = self._fields.get(name)
        if not isinstance(value, dict):
            self._fail(name, "object")
        return {key: tuple(self._texts(name, each)) for key, each in value.items()}

    def tasks(self, name: str) -> frozenset[ConnectorTaskId]:
        return frozenset(self._task(name, text) for text in self.texts(name))

    def _task(self, name: str, text: str) -> ConnectorTaskId:
        match = TASK_ID.fullmatch(text)
        if match is None:
            self._fail(name, "list of tasks")
        return ConnectorTaskId(match["connector"], int(match["task"]))

    def _fail(self, name: str, kind: str) -> NoReturn:
        raise RemoteProtocolError(f"{self._what}: '{name}' is no {kind}")
