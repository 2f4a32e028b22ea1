"""A herder in memory: connectors change their states at once, offsets are where golden has them.

Plugins, key definitions and validation are a genuine worker's responses (golden_rest), because the
REST layer's tests do not cover them.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sparkmirror.connect.entities import (
    ConnectorInfo,
    ConnectorStatus,
    Json,
    LoggerLevel,
    NotLeader,
    OffsetRow,
    RequestError,
    State,
    TargetState,
    TaskStatus,
)
from tests.golden_rest.exchange import Exchange, load_exchanges

Config = Mapping[str, str | None]

WORKER = "connect-worker:8083"
VERSION = "4.3.1"
_PACKAGE = "org.apache.kafka.connect.mirror."
_CLASSES = ("MirrorCheckpointConnector", "MirrorHeartbeatConnector", "MirrorSourceConnector")
_STATES = {
    TargetState.STARTED: State.RUNNING,
    TargetState.PAUSED: State.PAUSED,
    TargetState.STOPPED: State.STOPPED,
}
_DESCRIPTION = (
    "PluginDesc{{klass=class {0}, name='{0}', version='4.3.1', encodedVersion=4.3.1,"
    " type=source, typeName='source', location='classpath'}}"
)
_UNKNOWN_CLASS = (
    "Failed to find any class that implements Connector and which name matches {}, "
    "available connectors are: "
    + ", ".join(_DESCRIPTION.format(_PACKAGE + name) for name in _CLASSES)
)
_NOT_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done"
    " for the specified connector by issuing a 'PUT' request to the '/connectors/{}/stop' endpoint"
)
_TASK_CLASSES = {name: name.replace("Connector", "Task") for name in _CLASSES}
_TASK_SETTINGS: dict[str, dict[str, str]] = {
    "MirrorCheckpointConnector": {"task.assigned.groups": "ho-g1", "task.index": "0"},
    "MirrorHeartbeatConnector": {},
    "MirrorSourceConnector": {
        "task.assigned.partitions": "heartbeats-0,ho-t1-0,ho-t1-1",
        "task.index": "0",
    },
}
_TOPICS = {
    "MirrorHeartbeatConnector": ["heartbeats"],
    "MirrorSourceConnector": ["a.ho-t1", "a.heartbeats"],
}
_OFFSET_EXCHANGES = {
    "MirrorSourceConnector": 54,
    "MirrorCheckpointConnector": 55,
    "MirrorHeartbeatConnector": 56,
}


@functools.cache
def _golden() -> dict[int, Exchange]:
    return {exchange.number: exchange for exchange in load_exchanges()}


@dataclass
class _Connector:
    config: dict[str, str | None]
    target: TargetState
    offsets: list[OffsetRow] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    is_new: bool = True

    @property
    def kind(self) -> str:
        return (self.config["connector.class"] or "").removeprefix(_PACKAGE)

    @property
    def tasks(self) -> int:
        return 0 if self.target is TargetState.STOPPED or self.is_new else 1


class FakeHerder:
    """A worker that leads, unless `leader_url` names another leader ('' for none).

    `asked` has the names of the requested writes; they wait until `gate` is set.
    """

    def __init__(self, leader_url: str | None = None) -> None:
        self.leader_url = leader_url
        self.health_answer = (
            "healthy",
            "Worker has completed startup and is ready to handle requests.",
        )
        self.asked: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.last_config: Config = {}
        self._golden = _golden()
        self._connectors: dict[str, _Connector] = {}
        self._loggers = {"root": LoggerLevel("INFO")}
        self._lock = threading.RLock()

    def _write(self, method: str) -> None:
        self.asked.append(method)
        self.gate.wait(30)
        if self.leader_url is not None:
            raise NotLeader(self.leader_url)

    def root(self) -> Json:
        cluster = "TargetClusterId0000000"
        return {"version": VERSION, "commit": "26b251a451ce941d", "kafka_cluster_id": cluster}

    def health(self) -> tuple[str, str]:
        return self.health_answer

    def connectors(self) -> Sequence[str]:
        with self._lock:
            return list(self._connectors)

    def connector_info(self, name: str) -> ConnectorInfo:
        found = self._known(name, f"Connector {name} not found")
        return ConnectorInfo(name, dict(found.config), found.tasks)

    def connector_status(self, name: str) -> ConnectorStatus:
        missing = f"No status found for connector {name}"
        found = self._known(name, missing)
        if found.is_new:
            found.is_new = False
            found.offsets = self._first_offsets(found.kind)
            found.topics = list(_TOPICS.get(found.kind, []))
            raise RequestError(404, missing)
        return _status(name, found, _STATES[found.target])

    def task_configs(self, name: str) -> Sequence[Mapping[str, str]]:
        found = self._known(name, f"Connector {name} not found")
        task = {
            **found.config,
            **_TASK_SETTINGS[found.kind],
            "task.class": _PACKAGE + _TASK_CLASSES[found.kind],
        }
        return [{key: value or "" for key, value in task.items()}] * found.tasks

    def task_status(self, name: str, task: int) -> TaskStatus:
        missing = f"No status found for task {name}-{task}"
        found = self._known(name, missing)
        if not 0 <= task < found.tasks:
            raise RequestError(404, missing)
        return _status(name, found, _STATES[found.target]).tasks[task]

    def create(self, name: str, config: Config, initial_state: TargetState | None) -> ConnectorInfo:
        self._write("create")
        self._check(config)
        with self._lock:
            if name in self._connectors:
                raise RequestError(409, f"Connector {name} already exists")
            target = initial_state or TargetState.STARTED
            self._connectors[name] = _Connector(dict(config), target)
        return self.connector_info(name)

    def put_config(self, name: str, config: Config) -> tuple[bool, ConnectorInfo]:
        self._write("put_config")
        self._check(config)
        with self._lock:
            created = name not in self._connectors
            if created:
                self._connectors[name] = _Connector(dict(config), TargetState.STARTED)
            else:
                self._connectors[name].config = dict(config)
        return created, self.connector_info(name)

    def patch_config(self, name: str, patch: Config) -> ConnectorInfo:
        self._write("patch_config")
        found = self._known(name, f"Connector {name} not found")
        merged = {**found.config, **patch}
        found.config = {key: value for key, value in merged.items() if value is not None}
        return self.connector_info(name)

    def delete(self, name: str) -> None:
        self._write("delete")
        with self._lock:
            self._known(name, f"Connector {name} not found")
            del self._connectors[name]

    def set_target_state(self, name: str, state: TargetState) -> None:
        self._write("set_target_state")
        self._known(name, f"Unknown connector {name}").target = state

    def restart_connector(
        self, name: str, *, include_tasks: bool, only_failed: bool
    ) -> ConnectorStatus | None:
        self._write(f"restart {include_tasks} {only_failed}")
        found = self._known(name, f"Unknown connector: {name}")
        if not include_tasks and not only_failed:
            return None
        state = State.RUNNING if only_failed else State.RESTARTING
        return _status(name, found, state)

    def restart_task(self, name: str, task: int) -> None:
        self._write("restart_task")
        found = self._known(name, f"Unknown connector: {name}")
        if not 0 <= task < found.tasks:
            raise RequestError(404, f"Unknown task: {name}-{task}")

    def active_topics(self, name: str) -> Sequence[str]:
        with self._lock:
            found = self._connectors.get(name)
            return found.topics if found else []

    def reset_active_topics(self, name: str) -> None:
        self._write("reset_active_topics")
        with self._lock:
            if name in self._connectors:
                self._connectors[name].topics = []

    def offsets(self, name: str) -> Sequence[OffsetRow]:
        return self._known(name, f"Connector {name} not found").offsets

    def alter_offsets(self, name: str, rows: Sequence[OffsetRow]) -> str:
        self._write("alter_offsets")
        found = self._stopped(name)
        for partition, offset in rows:
            _check_row(partition, offset)
            kept = [row for row in found.offsets if row[0] != partition]
            found.offsets = kept if offset is None else [*kept, (partition, offset)]
        return "The offsets for this connector have been altered successfully"

    def reset_offsets(self, name: str) -> str:
        self._write("reset_offsets")
        self._stopped(name).offsets = []
        return "The offsets for this connector have been reset successfully"

    def plugins(self, *, connectors_only: bool) -> Sequence[Json]:
        answer: list[Json] = self._golden[6 if connectors_only else 8].json
        return answer

    def plugin_definitions(self, plugin: str, version: str | None) -> Sequence[Json]:
        for exchange in self._numbered(9, 11):
            if exchange.path.split("/")[2] == plugin:
                answer: list[Json] = exchange.json
                return answer
        raise RequestError(404, f"Unknown plugin {plugin}.")

    def validate(self, plugin: str, config: Config) -> Json:
        self.last_config = config
        for exchange in self._numbered(13, 20):
            if plugin in exchange.path and exchange.request_json == config:
                return _answer_or_error(exchange)
        return {"name": plugin, "error_count": 0, "groups": [], "configs": []}

    def loggers(self) -> Mapping[str, LoggerLevel]:
        return dict(self._loggers)

    def logger(self, name: str) -> LoggerLevel | None:
        return self._loggers.get(name)

    def set_logger(self, name: str, level: str, *, cluster: bool) -> Sequence[str] | None:
        below = [other for other in self._loggers if name == "root" or other.startswith(name)]
        changed = sorted({*below, name})
        self._loggers |= {other: LoggerLevel(level, 1794728425491) for other in changed}
        return None if cluster else changed

    def _known(self, name: str, missing: str) -> _Connector:
        with self._lock:
            if name not in self._connectors:
                raise RequestError(404, missing)
            return self._connectors[name]

    def _stopped(self, name: str) -> _Connector:
        found = self._known(name, f"Connector {name} not found")
        if found.target is not TargetState.STOPPED:
            raise RequestError(400, _NOT_STOPPED.format(name))
        return found

    def _check(self, config: Config) -> None:
        self.last_config = config
        kind = config.get("connector.class")
        if kind is None:
            shown = _java_map(config)
            raise RequestError(400, f"Connector config {shown} contains no connector type")
        if kind.removeprefix(_PACKAGE) not in _CLASSES:
            text = f"org.apache.kafka.connect.errors.ConnectException: {_UNKNOWN_CLASS}"
            raise RequestError(400, text.replace("{}", kind))
        errors = _errors(config)
        if errors:
            raise RequestError(400, _invalid(errors))

    def _first_offsets(self, kind: str) -> list[OffsetRow]:
        rows = self._golden[_OFFSET_EXCHANGES[kind]].json["offsets"]
        return [(row["partition"], row["offset"]) for row in rows]

    def _numbered(self, first: int, last: int) -> list[Exchange]:
        return [self._golden[number] for number in range(first, last + 1)]


def _status(name: str, found: _Connector, state: State) -> ConnectorStatus:
    task = TaskStatus(0, state, WORKER, version=VERSION)
    tasks = [replace(task, id=number) for number in range(found.tasks)]
    return ConnectorStatus(name, state, WORKER, tasks, version=VERSION)


def _errors(config: Config) -> list[str]:
    errors = []
    if config.get("name") == "":
        errors.append("Invalid value  for configuration name: String may not be empty")
    if not (config.get("tasks.max") or "1").isdigit():
        wrong = f"Invalid value {config['tasks.max']} for configuration tasks.max"
        errors.append(f"{wrong}: Not a number of type INT")
        errors.append("Invalid value null for configuration tasks.max: Value must be non-null")
    if "source.cluster.alias" not in config:
        key = '"source.cluster.alias"'
        errors.append(f"Missing required configuration {key} which has no default value.")
    if None in config.values():
        errors.append("Null value can not be supplied as the configuration value.")
    return errors


def _invalid(errors: Sequence[str]) -> str:
    lines = "\n".join(errors)
    return (
        "Connector configuration is invalid and contains the following "
        f"{len(errors)} error(s):\n{lines}\nYou can also find the above list of errors at the "
        "endpoint `/connector-plugins/{connectorType}/config/validate`"
    )


def _check_row(partition: Json, offset: Json | None) -> None:
    if "cluster" not in partition:
        shown = _java_map(partition)
        raise RequestError(
            500, f"Source partition {shown} is missing the 'cluster' key, which is required"
        )
    if offset is not None and offset["offset"] < 0:
        raise RequestError(
            500,
            f"Source offset {_java_map(offset)} for source partition {_java_map(partition)} has an"
            f" invalid value {offset['offset']} for the 'offset' key, which cannot be negative",
        )


def _java_map(value: Mapping[str, Any]) -> str:
    shown = {key: "null" if inner is None else inner for key, inner in value.items()}
    return "{" + ", ".join(f"{key}={inner}" for key, inner in shown.items()) + "}"


def _answer_or_error(exchange: Exchange) -> Json:
    answer: Json = exchange.json
    if exchange.status != 200:
        raise RequestError(exchange.status, answer["message"])
    return answer
