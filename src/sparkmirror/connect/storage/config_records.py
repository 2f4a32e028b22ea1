"""The records of Connect's config topic, and the state that they add up to.

Runs on: worker. Pure. Mirrors: org.apache.kafka.connect.storage.KafkaConfigBackingStore (4.3).

    key                        value (JSON)                            null value
    connector-<name>           {"properties":{..}}                     the connector is deleted
    target-state-<name>        {"state":S,"state.v2":S2}               STARTED
    task-<name>-<number>       {"properties":{..}}     applies when a commit follows
    commit-<name>              {"tasks":<how many>}
    restart-connector-<name>   {"include-tasks":b,"only-failed":b}     KIP-745: once, when read
    logger-cluster-<logger>    {"level":L}                             KIP-976: once, when read
    session-key                {"key":base64,"algorithm":A,"creation-timestamp":ms}

The key tasks-fencing-<name> is for Connect's exactly-once source support (KIP-618): ignored.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparkmirror.connect.entities import ConnectorProps
from sparkmirror.connect.group.session_keys import SessionKey, parse_session_key
from sparkmirror.foreign_json import parse_json

log = logging.getLogger(__name__)

KeyValue = tuple[bytes, bytes | None]

CONNECTOR, TARGET_STATE, TASK = "connector-", "target-state-", "task-"
COMMIT, RESTART, LOGGER = "commit-", "restart-connector-", "logger-cluster-"
SESSION_KEY = "session-key"
STARTED, PAUSED, STOPPED = "STARTED", "PAUSED", "STOPPED"
# Digits of a task number, which is a Java int.
LONGEST_NUMBER = 10


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """A request to restart a connector, its tasks, or both (KIP-745)."""

    connector: str
    include_tasks: bool
    only_failed: bool


@dataclass(frozen=True, slots=True)
class ConfigSnapshot:
    """The topic at one moment. `loggers` has levels that were set since the worker started.

    `session_keys` are the newest and the one before it.

    A connector whose tasks have not all been written has none.
    """

    connectors: Mapping[str, ConnectorProps]
    tasks: Mapping[str, Sequence[Mapping[str, str]]]
    target_states: Mapping[str, str]
    loggers: Mapping[str, str]
    end_offset: int
    session_keys: tuple[SessionKey, ...] = ()


# -- writing --------------------------------------------------------------------------------------


def connector_records(
    name: str, config: ConnectorProps, target_state: str | None
) -> list[KeyValue]:
    """The target state comes first, or a connector created as stopped would start (KIP-980)."""
    state = [] if target_state is None else [target_state_record(name, target_state)]
    return [*state, _record(CONNECTOR + name, {"properties": dict(config)})]


def deletion_records(name: str) -> list[KeyValue]:
    return [_record(CONNECTOR + name, None), _record(TARGET_STATE + name, None)]


def target_state_record(name: str, state: str) -> KeyValue:
    # Workers before 3.5 do not know STOPPED and read only "state" (KIP-875).
    old = PAUSED if state == STOPPED else state
    return _record(TARGET_STATE + name, {"state": old, "state.v2": state})


def task_records(name: str, configs: Sequence[Mapping[str, str]]) -> list[KeyValue]:
    rows = [
        _record(f"{TASK}{name}-{number}", {"properties": dict(config)})
        for number, config in enumerate(configs)
    ]
    return [*rows, _record(COMMIT + name, {"tasks": len(configs)})]


def restart_record(restart: RestartRequest) -> KeyValue:
    flags = {"include-tasks": restart.include_tasks, "only-failed": restart.only_failed}
    return _record(RESTART + restart.connector, flags)


def logger_record(logger: str, level: str) -> KeyValue:
    return _record(LOGGER + logger, {"level": level})


def session_key_record(key: SessionKey) -> KeyValue:
    return _record(SESSION_KEY, key.document())


def _record(key: str, value: Mapping[str, Any] | None) -> KeyValue:
    # Half a surrogate pair does not exist in UTF-8; Java writes a question mark for it.
    data = None if value is None else json.dumps(value, separators=(",", ":")).encode()
    return key.encode(errors="replace"), data


# -- reading --------------------------------------------------------------------------------------


class ConfigState:
    """The state after the records read so far; owned by one thread."""

    def __init__(self) -> None:
        self.end_offset = 0
        self._connectors: dict[str, ConnectorProps] = {}
        self._target_states: dict[str, str] = {}
        self._tasks: dict[str, list[Mapping[str, str]]] = {}
        # Settings of tasks whose commit record has not been read yet.
        self._written: dict[str, dict[int, Mapping[str, str]]] = {}
        self._loggers: dict[str, str] = {}
        self._session_keys: tuple[SessionKey, ...] = ()

    def snapshot(self) -> ConfigSnapshot:
        names = self._connectors
        return ConfigSnapshot(
            dict(names),
            {name: tuple(self._tasks.get(name, ())) for name in names},
            {name: self._target_states.get(name, STARTED) for name in names},
            dict(self._loggers),
            self.end_offset,
            self._session_keys,
        )

    def forget_loggers(self) -> None:
        """Drop all levels: they apply only to workers that run when they are set (KIP-976)."""
        self._loggers.clear()

    def apply(self, key: bytes | None, value: bytes | None) -> RestartRequest | None:
        """Apply one record and return the restart that it requests, if any; log a malformed one."""
        name = (key or b"").decode(errors="replace")
        document = _read(name, value)
        if name.startswith(CONNECTOR):
            self._apply_connector(name.removeprefix(CONNECTOR), document)
        elif name.startswith(TARGET_STATE):
            self._apply_target_state(name.removeprefix(TARGET_STATE), document)
        elif name.startswith(TASK):
            self._apply_task(name.removeprefix(TASK), document)
        elif name.startswith(COMMIT):
            self._apply_commit(name.removeprefix(COMMIT), document)
        elif name.startswith(LOGGER):
            self._apply_logger(name.removeprefix(LOGGER), document)
        elif name.startswith(RESTART):
            return _restart(name.removeprefix(RESTART), document)
        elif name == SESSION_KEY:
            self._apply_session_key(document)
        return None

    def _apply_connector(self, name: str, document: Mapping[str, Any] | None) -> None:
        if document is None:
            self._remove(name)
            return
        properties = _properties(CONNECTOR + name, document)
        if properties is not None:
            self._connectors[name] = properties

    def _remove(self, name: str) -> None:
        for part in (self._connectors, self._tasks, self._written):
            part.pop(name, None)

    def _apply_target_state(self, name: str, document: Mapping[str, Any] | None) -> None:
        state = STARTED if document is None else document.get("state.v2") or document.get("state")
        if document is None:
            self._target_states.pop(name, None)
        elif state in (STARTED, PAUSED, STOPPED):
            self._target_states[name] = state
        else:
            _complain(TARGET_STATE + name, f"the state {state!r} is not known")

    def _apply_task(self, rest: str, document: Mapping[str, Any] | None) -> None:
        name, _, number = rest.rpartition("-")
        if document is None:
            return
        if not number.isdecimal() or len(number) > LONGEST_NUMBER or not name:
            _complain(TASK + rest, "no task number")
            return
        properties = _properties(TASK + rest, document)
        if properties is not None:
            settings = {k: v for k, v in properties.items() if v is not None}
            self._written.setdefault(name, {})[int(number)] = settings

    def _apply_commit(self, name: str, document: Mapping[str, Any] | None) -> None:
        written = self._written.pop(name, {})
        if document is None:
            return
        if name not in self._connectors:
            # Left over from a deleted connector, whose own records have been compacted away.
            self._remove(name)
            return
        count = document.get("tasks")
        if not isinstance(count, int) or count < 0:
            _complain(COMMIT + name, f"{count!r} is no number of tasks")
            return
        numbers = range(count)
        is_complete = all(number in written for number in numbers)
        self._tasks[name] = [written[number] for number in numbers] if is_complete else []

    def _apply_logger(self, logger: str, document: Mapping[str, Any] | None) -> None:
        level = None if document is None else document.get("level")
        if isinstance(level, str):
            self._loggers[logger] = level

    def _apply_session_key(self, document: Mapping[str, Any] | None) -> None:
        try:
            key = parse_session_key(document or {})
        except ValueError as error:
            _complain(SESSION_KEY, str(error))
        else:
            self._session_keys = (key, *self._session_keys[:1])


def _restart(name: str, document: Mapping[str, Any] | None) -> RestartRequest | None:
    if document is None:
        return None
    # A missing or malformed flag counts as false.
    flags = [document.get(flag) is True for flag in ("include-tasks", "only-failed")]
    return RestartRequest(name, *flags)


def _read(key: str, value: bytes | None) -> Mapping[str, Any] | None:
    """The JSON object; None for a null value. Anything else is logged and becomes {}."""
    if value is None:
        return None
    try:
        document = parse_json(value)
    except ValueError:
        document = value
    if document is None or isinstance(document, dict):
        return document
    _complain(key, "no JSON object")
    return {}


def _properties(key: str, document: Mapping[str, Any]) -> ConnectorProps | None:
    properties = document.get("properties")
    if not isinstance(properties, dict):
        _complain(key, "no properties")
        return None
    if not all(value is None or isinstance(value, str) for value in properties.values()):
        _complain(key, "properties that are no texts")
        return None
    return properties


def _complain(key: str, why: str) -> None:
    log.warning("record '%s' of the config topic is passed over: %s", key, why)
