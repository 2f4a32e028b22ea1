"""The requests and results between the REST API and a worker, under Kafka Connect's names.

Runs on: worker. Pure: types only. connect/runtime/herder.py implements `Herder`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sparkmirror.errors import MirrorError

Json = dict[str, Any]
ConnectorProps = Mapping[str, str | None]
OnRestart = Callable[[str, bool, bool], None]

COMMIT = "26b251a451ce941d"
HEALTHY = "Worker has completed startup and is ready to handle requests."
STARTING = "Worker is still starting up."
UNHEALTHY = "Worker was unable to handle this request and may be unable to handle other requests."
# Connect's own texts, where they name the class that rejected the request.
BAD_REQUEST = "org.apache.kafka.connect.runtime.rest.errors.BadRequestException"
CONNECT_EXCEPTION = "org.apache.kafka.connect.errors.ConnectException"
CONFLICT = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
# One row of a connector's offsets: the source partition, and the offset or None (no offset).
OffsetRow = tuple[Json, Json | None]

# Prefix of the trace of a connector that runs but cannot do all of its work; read by `status`.
DEGRADED = "DEGRADED: "


class State(enum.StrEnum):
    """States of connectors and of tasks."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"


class TargetState(enum.StrEnum):
    """The state that a user requested for a connector."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class ConnectorInfo:
    """A connector's settings as the user sent them, and its number of tasks."""

    name: str
    config: Mapping[str, str | None]
    tasks: int
    type: str = "source"


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """One task. Responses omit `trace` and `version` when they are empty."""

    id: int
    state: State
    worker_id: str
    trace: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """A connector and its tasks, by number."""

    name: str
    state: State
    worker_id: str
    tasks: Sequence[TaskStatus] = ()
    trace: str = ""
    version: str = ""
    type: str = "source"


@dataclass(frozen=True, slots=True)
class LoggerLevel:
    """`last_modified` is in milliseconds; None if the level was never set (KIP-495, KIP-976)."""

    level: str
    last_modified: int | None = None


class RequestError(MirrorError):
    """The error response to a request: `status` is the HTTP status, the text is Connect's."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(status, text)
        self.status = status
        self.text = text

    def __str__(self) -> str:
        return self.text


class NotLeader(MirrorError):
    """Only the leader may handle the request. `leader_url` is empty while there is none."""

    def __init__(self, leader_url: str) -> None:
        super().__init__(leader_url)
        self.leader_url = leader_url


class RestartPlan:
    """Which parts of a connector a restart request affects, given their states (KIP-745).

    `expected` is the status in which those parts are RESTARTING. Mirrors:
    org.apache.kafka.connect.runtime.RestartPlan.
    """

    def __init__(self, status: ConnectorStatus, *, include_tasks: bool, only_failed: bool) -> None:
        def restarts(state: State) -> bool:
            return state is State.FAILED or not only_failed

        self.has_connector = restarts(status.state)
        self.tasks = frozenset(
            task.id for task in status.tasks if include_tasks and restarts(task.state)
        )
        self.expected = replace(
            status,
            state=State.RESTARTING if self.has_connector else status.state,
            tasks=[
                replace(task, state=State.RESTARTING) if task.id in self.tasks else task
                for task in status.tasks
            ],
        )


class Herder(Protocol):
    """A worker, as its REST API sees it. For any thread; methods block.

    Each may raise RequestError; methods that change something may raise NotLeader.
    """

    def root(self) -> Json:
        """Version, commit, kafka_cluster_id."""

    def health(self) -> tuple[str, str]:
        """'healthy', 'starting' or 'unhealthy', and the message."""

    def connectors(self) -> Sequence[str]: ...
    def connector_info(self, name: str) -> ConnectorInfo: ...
    def connector_status(self, name: str) -> ConnectorStatus: ...
    def task_configs(self, name: str) -> Sequence[Mapping[str, str]]: ...
    def task_status(self, name: str, task: int) -> TaskStatus: ...

    def create(
        self, name: str, config: Mapping[str, str | None], initial_state: TargetState | None
    ) -> ConnectorInfo:
        """Create a connector, in `initial_state` (KIP-980); 409 if the name is taken."""

    def put_config(self, name: str, config: Mapping[str, str | None]) -> tuple[bool, ConnectorInfo]:
        """Replace the settings; return whether the connector is new, and what it is now."""

    def patch_config(self, name: str, patch: Mapping[str, str | None]) -> ConnectorInfo:
        """Change some settings (KIP-477); None deletes one."""

    def delete(self, name: str) -> None: ...
    def set_target_state(self, name: str, state: TargetState) -> None: ...

    def restart_connector(
        self, name: str, *, include_tasks: bool, only_failed: bool
    ) -> ConnectorStatus | None:
        """None for the connector alone (done on return); else the states to expect (KIP-745)."""

    def restart_task(self, name: str, task: int) -> None: ...
    def active_topics(self, name: str) -> Sequence[str]: ...
    def reset_active_topics(self, name: str) -> None: ...
    def offsets(self, name: str) -> Sequence[OffsetRow]: ...
    def alter_offsets(self, name: str, rows: Sequence[OffsetRow]) -> str:
        """Return Connect's text for what was done (KIP-875)."""

    def reset_offsets(self, name: str) -> str: ...

    def plugins(self, *, connectors_only: bool) -> Sequence[Json]: ...
    def plugin_definitions(self, plugin: str, version: str | None) -> Sequence[Json]: ...
    def validate(self, plugin: str, config: Mapping[str, str | None]) -> Json: ...

    def loggers(self) -> Mapping[str, LoggerLevel]: ...
    def logger(self, name: str) -> LoggerLevel | None: ...
    def set_logger(self, name: str, level: str, *, cluster: bool) -> Sequence[str] | None:
        """Return the loggers that changed (KIP-495); None if all workers follow (KIP-976)."""
