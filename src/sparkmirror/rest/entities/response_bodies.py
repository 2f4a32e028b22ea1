"""The herder's results as JSON, in the shapes of Connect's entities.

Runs on: worker. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparkmirror.connect.entities import (
    ConnectorInfo,
    ConnectorStatus,
    Json,
    LoggerLevel,
    OffsetRow,
    TaskStatus,
)


def info_json(info: ConnectorInfo) -> Json:
    tasks = [{"connector": info.name, "task": task} for task in range(info.tasks)]
    return {"name": info.name, "config": dict(info.config), "tasks": tasks, "type": info.type}


def status_json(status: ConnectorStatus) -> Json:
    tasks = sorted(status.tasks, key=lambda task: task.id)
    return {
        "name": status.name,
        "connector": _state_json(status),
        "tasks": [task_status_json(task) for task in tasks],
        "type": status.type,
    }


def task_status_json(task: TaskStatus) -> Json:
    return {"id": task.id, **_state_json(task)}


def _state_json(status: ConnectorStatus | TaskStatus) -> Json:
    state: Json = {"state": status.state.value, "worker_id": status.worker_id}
    if status.trace:
        state["trace"] = status.trace
    if status.version:
        state["version"] = status.version
    return state


def tasks_json(connector: str, configs: Sequence[Mapping[str, str]]) -> list[Json]:
    return [
        {"id": {"connector": connector, "task": task}, "config": dict(config)}
        for task, config in enumerate(configs)
    ]


def offsets_json(rows: Sequence[OffsetRow]) -> Json:
    return {"offsets": [{"partition": partition, "offset": offset} for partition, offset in rows]}


def logger_json(logger: LoggerLevel) -> Json:
    return {"level": logger.level, "last_modified": logger.last_modified}
