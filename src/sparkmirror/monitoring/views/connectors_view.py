"""Connectors and tasks: their states, why they failed, and what can be done.

Runs on: worker. Reads what this worker knows of the status and config topics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from sparkmirror.config.connector_spec import KINDS
from sparkmirror.config.masking import HIDDEN, is_secret, mask
from sparkmirror.config.mirror_configs import CONNECTOR_KEYS
from sparkmirror.connect.entities import (
    DEGRADED,
    ConnectorProps,
    ConnectorStatus,
    RequestError,
    State,
    TargetState,
    TaskStatus,
)
from sparkmirror.connect.runtime.assigned_tasks import target_state
from sparkmirror.monitoring.clusters.flow_specs import flow_of
from sparkmirror.monitoring.monitored import MonitoredGroup
from sparkmirror.monitoring.views.partition_view import most, total
from sparkmirror.monitoring.views.rows.connector_rows import ConnectorRow, SettingRow, TaskRow
from sparkmirror.monitoring.views.rows.partition_rows import PartitionRow
from sparkmirror.monitoring.views.wording.remedies import reason_of, remedy_of, without_remedy

_NO_FIGURES = ("partitions", "records_behind", "seconds_behind")
_WAITING: Mapping[str, str] = {
    "checkpoint": "no tasks: the connector gets one as soon as a group matches `groups`",
    "source": "no tasks: the connector gets some as soon as a topic matches `topics`",
    "heartbeat": "no tasks: heartbeats are switched off",
}
_STATE_NOTES: Mapping[str, str] = {
    TargetState.STOPPED: "stopped: it has no tasks until it is resumed",
    TargetState.PAUSED: "paused: its tasks keep their positions",
}


def connector_rows(
    groups: Sequence[MonitoredGroup], partitions: Mapping[str, Sequence[PartitionRow]]
) -> list[ConnectorRow]:
    """All connectors, by flow and name. `partitions`: of each flow."""
    rows = [
        _row(group, name, props, partitions)
        for group in groups
        for name, props in group.cluster.configs.snapshot().connectors.items()
    ]
    return sorted(rows, key=lambda row: (row.flow, row.kind != "source", row.kind, row.name))


def _row(
    group: MonitoredGroup,
    name: str,
    props: ConnectorProps,
    partitions: Mapping[str, Sequence[PartitionRow]],
) -> ConnectorRow:
    flow, kind = flow_of(props), kind_of(props)
    status = status_of(group, name)
    own = [row for row in partitions.get(flow, ()) if row.connector == name]
    trace = mask(status.trace)
    degraded = trace.removeprefix(DEGRADED) if trace.startswith(DEGRADED) else ""
    reason = "" if degraded else reason_of(trace)
    return ConnectorRow(
        name=name,
        prefix=group.prefix,
        path=_path(group.prefix, name),
        flow=flow,
        kind=kind,
        state=str(status.state),
        worker=status.worker_id,
        reason=without_remedy(reason),
        remedy=remedy_of(reason or degraded),
        trace="" if degraded else trace,
        note=degraded or _note(group, name, kind, status),
        is_changeable=not group.prefix,
        fixed="" if not group.prefix else "its settings come from the mm2 file: change that",
        tasks=[_task(task, kind, own) for task in status.tasks],
    )


def _path(prefix: str, name: str) -> str:
    """As it stands in a URL."""
    parts = [*prefix.split("/"), "connectors", name]
    return "/".join(quote(part, safe="") for part in parts)


def status_of(group: MonitoredGroup, name: str) -> ConnectorStatus:
    """UNASSIGNED until the status topic has one."""
    try:
        return group.herder.connector_status(name)
    except RequestError:
        return ConnectorStatus(name, State.UNASSIGNED, "")


def kind_of(props: ConnectorProps) -> str:
    """source, checkpoint or heartbeat; "" of a class that is none of ours."""
    return KINDS.get(str(props.get("connector.class", "")).rpartition(".")[2], "")


def _note(group: MonitoredGroup, name: str, kind: str, status: ConnectorStatus) -> str:
    wanted = target_state(group.cluster.configs.snapshot(), name)
    if wanted in _STATE_NOTES:
        return _STATE_NOTES[wanted]
    is_waiting = status.state is State.RUNNING and not status.tasks
    return _WAITING.get(kind, "no tasks") if is_waiting else ""


def _task(task: TaskStatus, kind: str, own: Sequence[PartitionRow]) -> TaskRow:
    rows = [row for row in own if row.task == task.id]
    trace = mask(task.trace)
    reason = reason_of(trace.removeprefix(DEGRADED))
    unknown: dict[str, str] = {}
    not_applicable: dict[str, str] = {}
    behind = total(row.records_behind for row in rows)
    seconds = most(row.seconds_behind for row in rows)
    if kind != "source":
        not_applicable = dict.fromkeys(_NO_FIGURES, "it copies no topics")
    elif not rows:
        unknown = dict.fromkeys(_NO_FIGURES, "no worker tells of its partitions")
    else:
        for key, value in (("records_behind", behind), ("seconds_behind", seconds)):
            if value is None:
                unknown[key] = "not known of all of its partitions"
    return TaskRow(
        task=task.id,
        state=str(task.state),
        worker=task.worker_id,
        reason=without_remedy(reason),
        remedy=remedy_of(reason),
        trace=trace,
        partitions=len(rows) if rows else None,
        records_behind=behind if rows else None,
        seconds_behind=seconds if rows else None,
        unknown=unknown,
        not_applicable=not_applicable,
    )


def setting_rows(props: ConnectorProps) -> list[SettingRow]:
    """What was sent, then the defaults of all other keys; secrets are hidden."""
    own = [SettingRow(key, _shown(key, value), "connector") for key, value in sorted(props.items())]
    keys = CONNECTOR_KEYS.get(str(props.get("connector.class", "")).rpartition(".")[2])
    defaults = [
        SettingRow(key.name, _shown(key.name, _text(key.default)), "default")
        for key in (() if keys is None else keys)
        if key.name not in props and key.default is not None
    ]
    return own + sorted(defaults, key=lambda row: row.key)


def _shown(key: str, value: str | None) -> str:
    if value is None:
        return ""
    return HIDDEN if value and is_secret(key) else mask(value)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
