"""Handles the requests of the REST API with the config, status and offsets topics.

Runs on: worker, on threads of the REST API. Reads return what this worker has read of the topics.
Only the leader writes: to the config topic, which the herder loop then follows.
Mirrors: org.apache.kafka.connect.runtime.distributed.DistributedHerder.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from sparkmirror.config.connector_spec import KINDS
from sparkmirror.config.keys.plugins import (
    CONNECT_VERSION,
    UnusableConnector,
    require_class,
)
from sparkmirror.config.worker.worker_file import WorkerFile
from sparkmirror.connect import entities
from sparkmirror.connect.entities import (
    ConnectorInfo,
    ConnectorProps,
    ConnectorStatus,
    Json,
    LoggerLevel,
    NotLeader,
    OffsetRow,
    RequestError,
    RestartPlan,
    State,
    TargetState,
    TaskStatus,
)
from sparkmirror.connect.runtime.connector_checks import ConnectorChecks
from sparkmirror.connect.runtime.connector_offsets import check_offsets
from sparkmirror.connect.runtime.herder_loop import HerderLoop
from sparkmirror.connect.runtime.loggers import WorkerLoggers
from sparkmirror.connect.runtime.worker_connector import PendingRestart
from sparkmirror.connect.storage.backing_stores import StoredStatus, Stores
from sparkmirror.events import EventKind, event
from sparkmirror.retry import wait_for
from sparkmirror.wire.produce.transactional_writer import FencedError

log = logging.getLogger(__name__)

# How long a request waits for a restart, or for tasks to end.
WAIT_SECONDS = 60.0
CONNECTOR_SECONDS = 5.0
# The herder loop runs five times a second; a worker whose loop is later than this is unhealthy.
LATE_SECONDS = 30.0


class DistributedHerder(ConnectorChecks):
    """One worker of a cluster; for any thread. Implements `Herder` of connect/entities.py."""

    def __init__(
        self,
        worker: WorkerFile,
        stores: Stores,
        loop: HerderLoop,
        cluster_id: str = "",
        *,
        fixed: str = "",
    ) -> None:
        """`fixed`: why users may not change connectors, "" if they may."""
        self._fixed = fixed
        super().__init__(worker, stores.configs)
        self._statuses = stores.statuses
        self._offsets = stores.offsets
        self._group = stores.group
        self._loop = loop
        self._cluster_id = cluster_id
        self._loggers = WorkerLoggers()
        self._is_started = False
        self._has_joined = False
        # One request at a time checks whether a connector exists, and then writes.
        self._writing = threading.Lock()

    def start(self) -> None:
        """Accept requests: the topics have been read."""
        self._loggers.begin(self._configs.snapshot().loggers)
        self._configs.on_change(self._follow_loggers)
        self._configs.on_restart(self._follow_restart)
        self._is_started = True

    # -- the worker --------------------------------------------------------------------------------

    def root(self) -> Json:
        version, cluster = CONNECT_VERSION, self._cluster_id
        return {"version": version, "commit": entities.COMMIT, "kafka_cluster_id": cluster}

    def health(self) -> tuple[str, str]:
        self._has_joined = self._has_joined or bool(self._group.leader_url)
        if not self._is_started or not self._has_joined:
            return "starting", entities.STARTING
        if self._loop.problem or time.monotonic() - self._loop.last_turn > LATE_SECONDS:
            return "unhealthy", entities.UNHEALTHY
        return "healthy", entities.HEALTHY

    # -- reads -------------------------------------------------------------------------------------

    def connectors(self) -> Sequence[str]:
        return list(self._configs.snapshot().connectors)

    def connector_info(self, name: str) -> ConnectorInfo:
        snapshot = self._configs.snapshot()
        config = snapshot.connectors.get(name)
        if config is None:
            raise _not_found(name)
        return ConnectorInfo(name, config, len(snapshot.tasks.get(name, ())))

    def connector_status(self, name: str) -> ConnectorStatus:
        stored = self._statuses.connector(name)
        if stored is None:
            raise RequestError(404, f"No status found for connector {name}")
        tasks = [_task(at, each) for at, each in sorted(self._statuses.tasks(name).items())]
        return ConnectorStatus(
            name,
            State(stored.state),
            stored.worker_id,
            tasks,
            stored.trace or "",
            stored.version or "",
        )

    def task_configs(self, name: str) -> Sequence[Mapping[str, str]]:
        snapshot = self._configs.snapshot()
        if name not in snapshot.connectors:
            raise _not_found(name)
        return snapshot.tasks.get(name, ())

    def task_status(self, name: str, task: int) -> TaskStatus:
        stored = self._statuses.tasks(name).get(task)
        if stored is None:
            raise RequestError(404, f"No status found for task {name}-{task}")
        return _task(task, stored)

    def active_topics(self, name: str) -> Sequence[str]:
        return sorted(self._statuses.topics(name))

    def offsets(self, name: str) -> Sequence[OffsetRow]:
        if name not in self._configs.snapshot().connectors:
            raise _not_found(name)
        return list(self._offsets.list(name))

    # -- settings ----------------------------------------------------------------------------------

    def create(
        self, name: str, config: ConnectorProps, initial_state: TargetState | None
    ) -> ConnectorInfo:
        self._check_changeable()
        self._check_config(config)
        with self._writing, self._leading():
            if name in self._configs.snapshot().connectors:
                raise RequestError(409, f"Connector {name} already exists")
            return self._put(name, config, initial_state)

    def put_config(self, name: str, config: ConnectorProps) -> tuple[bool, ConnectorInfo]:
        self._check_changeable()
        self._check_config(config)
        with self._writing, self._leading():
            is_new = name not in self._configs.snapshot().connectors
            return is_new, self._put(name, config)

    def patch_config(self, name: str, patch: ConnectorProps) -> ConnectorInfo:
        self._check_changeable()
        with self._writing, self._leading():
            config = {**self.connector_info(name).config, **patch}
            left = {key: value for key, value in config.items() if value is not None}
            self._check_config(left)
            return self._put(name, left)

    def delete(self, name: str) -> None:
        self._check_changeable()
        with self._writing, self._leading():
            if name not in self._configs.snapshot().connectors:
                raise _not_found(name)
            self._configs.delete_connector(name)
        self._loop.wake()

    def _put(
        self, name: str, config: ConnectorProps, state: TargetState | None = None
    ) -> ConnectorInfo:
        """Return the tasks as they are now; new ones are configured later."""
        tasks = self._configs.snapshot().tasks.get(name, ())
        self._configs.put_connector(name, config, state)
        self._loop.wake()
        return ConnectorInfo(name, config, len(tasks))

    def _check_changeable(self) -> None:
        if self._fixed:
            raise RequestError(405, self._fixed)

    # -- states ------------------------------------------------------------------------------------

    def set_target_state(self, name: str, state: TargetState) -> None:
        with self._writing, self._leading():
            self._check_known(name, f"Unknown connector {name}")
            self._configs.put_target_state(name, state)
            if state is TargetState.STOPPED:
                self._configs.put_tasks(name, [])
        self._loop.wake()

    def restart_connector(
        self, name: str, *, include_tasks: bool, only_failed: bool
    ) -> ConnectorStatus | None:
        self._check_leads()
        self._check_known(name, f"Unknown connector: {name}")
        if not include_tasks and not only_failed:
            self._restart_now(name, PendingRestart(connector=True))
            return None
        plan = self._plan(name, include_tasks, only_failed)
        if plan is None:
            raise RequestError(404, f"Status for connector {name} not found")
        with self._leading():
            self._configs.put_restart(name, include_tasks, only_failed)
        return plan.expected

    def restart_task(self, name: str, task: int) -> None:
        """Only on the worker that runs the task; others send the request to the leader."""
        if not self._loop.runs(name, task):
            self._check_leads()
        self._check_known(name, f"Unknown connector: {name}")
        if task >= len(self._configs.snapshot().tasks.get(name, ())):
            raise RequestError(404, f"Unknown task: {name}-{task}")
        self._find_task(name, task)
        self._restart_now(name, PendingRestart(connector=False, tasks=frozenset({task})))

    def _find_task(self, name: str, task: int) -> None:
        """Wait until the task is assigned: one that was just configured belongs to no worker."""

        def is_assigned() -> bool:
            return self._loop.runs(name, task) or bool(self._loop.worker_of(name, task))

        _wait_for(is_assigned, CONNECTOR_SECONDS)
        if not self._loop.runs(name, task):
            raise NotLeader(self._loop.worker_of(name, task))

    def _restart_now(self, name: str, restart: PendingRestart) -> None:
        """Retry for a while: a connector created a moment ago may not run yet."""
        _wait_for(lambda: self._is_tried(name, restart), CONNECTOR_SECONDS)
        if restart.error:
            raise RequestError(500, f"Failed to start connector: {name}: {restart.error}")

    def _is_tried(self, name: str, restart: PendingRestart) -> bool:
        restart.is_missed = False
        restart.done.clear()
        if not self._loop.restart(name, restart):
            return False
        if not restart.done.wait(WAIT_SECONDS):
            raise RequestError(409, entities.CONFLICT)
        if restart.is_missed:
            self._check_known(name, f"Unknown connector: {name}")
        return not restart.is_missed

    def _plan(self, name: str, include_tasks: bool, only_failed: bool) -> RestartPlan | None:
        try:
            status = self.connector_status(name)
        except RequestError:
            return None
        return RestartPlan(status, include_tasks=include_tasks, only_failed=only_failed)

    def _follow_restart(self, name: str, include_tasks: bool, only_failed: bool) -> None:
        """Restart this worker's part of a request in the config topic (KIP-745)."""
        plan = self._plan(name, include_tasks, only_failed)
        if plan is not None:
            own = frozenset(task for task in plan.tasks if self._loop.runs(name, task))
            has_connector = plan.has_connector and self._loop.leads()
            self._loop.restart(name, PendingRestart(has_connector, own))

    # -- topics and offsets ------------------------------------------------------------------------

    def reset_active_topics(self, name: str) -> None:
        self._check_leads()
        self._statuses.reset_topics(name)

    def alter_offsets(self, name: str, rows: Sequence[OffsetRow]) -> str:
        self._check_leads()
        self._check_stopped(name)
        config = self._configs.snapshot().connectors[name]
        check_offsets(_kind(config), rows)
        self._offsets.write(name, rows)
        mark = event(EventKind.ACTION, connector=name)
        log.info("connector %s: offsets of %d partitions altered", name, len(rows), extra=mark)
        return "The offsets for this connector have been altered successfully"

    def reset_offsets(self, name: str) -> str:
        self._check_leads()
        self._check_stopped(name)
        self._offsets.write(name, [(partition, None) for partition, _ in self._offsets.list(name)])
        mark = event(EventKind.ACTION, connector=name)
        log.info("connector %s: offsets reset", name, extra=mark)
        return "The offsets for this connector have been reset successfully"

    def _check_stopped(self, name: str) -> None:
        snapshot = self._configs.snapshot()
        if name not in snapshot.connectors:
            raise _not_found(name)
        state = snapshot.target_states.get(name)
        if state != TargetState.STOPPED or snapshot.tasks.get(name):
            raise RequestError(
                400,
                "Connectors must be in the STOPPED state before their offsets can be modified. "
                "This can be done for the specified connector by issuing a 'PUT' request to the "
                f"'/connectors/{name}/stop' endpoint",
            )
        # Tasks that are ending, on any worker, still write their last positions.
        refusal = f"The tasks of connector {name} are still ending; try again"
        _wait_for(lambda: self._loop.is_idle(name), WAIT_SECONDS, refusal)

    # -- loggers -----------------------------------------------------------------------------------

    def loggers(self) -> Mapping[str, LoggerLevel]:
        return self._loggers.all()

    def logger(self, name: str) -> LoggerLevel | None:
        return self._loggers.get(name)

    def set_logger(self, name: str, level: str, *, cluster: bool) -> Sequence[str] | None:
        if not cluster:
            return self._loggers.change(name, level)
        with self._leading():
            self._configs.put_logger(name, level)
        self._follow_loggers()
        return None

    def _follow_loggers(self) -> None:
        self._loggers.follow(self._configs.snapshot().loggers)

    # -- checks ------------------------------------------------------------------------------------

    @contextmanager
    def _leading(self) -> Iterator[None]:
        """Guard a write to the config topic, which only the leader may make.

        Only the leader knows all connectors: others may not have read the newest yet.
        """
        self._check_leads()
        try:
            yield
        except FencedError as error:  # another worker leads by now
            raise RequestError(409, entities.CONFLICT) from error

    def _check_leads(self) -> None:
        if not self._loop.leads():
            raise NotLeader("" if self._group.is_leader else self._group.leader_url)

    def _check_known(self, name: str, text: str) -> None:
        if name not in self._configs.snapshot().connectors:
            raise RequestError(404, text)


def _not_found(name: str) -> RequestError:
    return RequestError(404, f"Connector {name} not found")


def _task(at: int, stored: StoredStatus) -> TaskStatus:
    return TaskStatus(
        at, State(stored.state), stored.worker_id, stored.trace or "", stored.version or ""
    )


def _kind(config: ConnectorProps) -> str:
    """RequestError for other connectors that genuine workers have left in the topic."""
    try:
        return KINDS[require_class(config).rpartition(".")[2]]
    except UnusableConnector as error:
        raise RequestError(500, str(error)) from error


def _wait_for(
    condition: Callable[[], bool], seconds: float, refusal: str = entities.CONFLICT
) -> None:
    try:
        wait_for(condition, within=seconds)
    except TimeoutError as error:
        raise RequestError(409, refusal) from error
