"""One source->target pair of dedicated mode: its worker in this process, from start to end.

Runs on: worker. Mirrors: org.apache.kafka.connect.mirror.MirrorHerder. Processes that run the same
file are workers of one group per pair, under MirrorMaker 2's name (`<source>-mm2`) and with its
topics on the target, so they share the tasks (KIP-710). Genuine MirrorMaker 2 uses another group
protocol: as long as its processes are in the group, the coordinator rejects ours.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from sparkmirror.config.mm2 import HEARTBEAT, PairConfig
from sparkmirror.config.worker.inter_worker import InterWorkerConfig
from sparkmirror.connect.connector import Connector, Task
from sparkmirror.connect.group.session_keys import SessionKey, SessionKeyRotation
from sparkmirror.connect.runtime.cluster_worker import ClusterWorker, Role
from sparkmirror.connect.runtime.herder import DistributedHerder
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.scheduler import Scheduler
from sparkmirror.connect.source.mirror_source_connector import MirrorSourceConnector
from sparkmirror.errors import ConfigError, ConfigErrors, KafkaError, MirrorError
from sparkmirror.mirror.permissions import Feature, ResourceKind
from sparkmirror.retry import Backoff, RetryPolicy
from sparkmirror.spark.task_runner import TaskRunner
from sparkmirror.wire.client.reachability import check_reachable

log = logging.getLogger(__name__)

# Differs from that of Connect workers: here the connectors come from a file.
PROTOCOL = "sparkmirror-run-1"
OCCUPIED = (
    "another MirrorMaker 2, a Connect worker or sparkmirror 0.1 runs this flow; this process waits "
    "until it has ended, and copies nothing before that"
)
FIXED = "The connectors of {pair} come from {file}: change the file, and restart the nodes."
RETRY = RetryPolicy(1, 60)
KEY_CHECK_SECONDS = 0.5
LEAVE_SECONDS = 1.0


class MirrorHerder:
    """`failure`: why this process must end; `is_clean`: all positions were stored."""

    # Logged when another process leads.
    follows = "{leader} leads this flow; this process runs its share of the tasks"

    def __init__(
        self,
        pair: PairConfig,
        spark: Worker,
        url: str,
        worker_id: str,
        *,
        awaits_heartbeats: bool = False,
        has_rest: bool = False,
        needs_spark: bool = True,
    ) -> None:
        """`awaits_heartbeats`: a connector of this file creates the source's heartbeats topic.

        `has_rest`: the nodes send each other requests. `needs_spark`: this process copies records.
        """
        self.pair = pair
        self.name = pair.name
        self.failure: MirrorError | None = None
        self.is_clean = True
        self.is_stopping = False
        self._spark = spark
        self._addresses = url, worker_id
        self._awaits_heartbeats = awaits_heartbeats
        self._has_rest = has_rest
        self._needs_spark = needs_spark
        self._stopping = threading.Event()
        self._lock = threading.Lock()  # nothing may start after `stop`
        self._is_open = False
        self._followed = ""
        self._make_worker()
        self._thread = threading.Thread(target=self._run, name=f"herder {self.name}", daemon=True)

    def make_worker(self, role: Role) -> ClusterWorker:
        """Not started yet."""
        return ClusterWorker(self.pair.worker, self._spark, *self._addresses, role)

    def _make_worker(self) -> None:
        role = Role(
            PROTOCOL,
            OCCUPIED,
            Feature.DEDICATED,
            ResourceKind.FLOW_GROUP,
            flow=str(self.name),
            file=self.pair.connectors,
            # Other pairs may need Spark; `MirrorMaker` closes it.
            release_spark=lambda: None,
            awaits_heartbeats=self._awaits_heartbeats,
        )
        self.worker = self.make_worker(role)
        worker, loop = self.worker, self.worker.loop
        fixed = FIXED.format(pair=self.name, file=self.pair.worker.path)
        self.herder = DistributedHerder(self.pair.worker, worker.stores, loop, fixed=fixed)
        rotation = SessionKeyRotation(self.inter_worker, worker.configs, loop.leads)
        self._scheduler = Scheduler(str(self.name))
        self._scheduler.repeat("renewing the session key", KEY_CHECK_SECONDS, rotation.renew)

    @property
    def inter_worker(self) -> InterWorkerConfig:
        """How nodes sign the requests between them (KIP-507)."""
        return self.pair.worker.inter_worker

    def session_keys(self) -> Sequence[SessionKey]:
        """The keys for these signatures."""
        return self.worker.configs.session_keys()

    @property
    def copies(self) -> bool:
        """Whether records are copied; otherwise the pair has heartbeats only."""
        return self.pair.connectors.keys() != {HEARTBEAT}

    # -- start -------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Connect to the clusters; changes nothing.

        Raises:
            KafkaError: which clusters cannot be reached, and why.
            ConfigErrors: key stores and logins that cannot be used.
        """
        errors: list[MirrorError] = []
        connectors = self.pair.connectors if self.copies else ()
        reach: list[Callable[[], object]] = [self._connecting(name) for name in connectors]
        reach.append(lambda: check_reachable(self.pair.worker.worker.client))
        for each in reach:
            try:
                each()
            except MirrorError as error:
                errors.append(error)
        raise_together(errors)

    def _connecting(self, name: str) -> Callable[[], object]:
        return lambda: self.worker.connectors.connect(self.pair.connectors[name])

    def refused_starts(self) -> list[str]:
        """After `connect`: partitions without a stored position to resume at; changes nothing."""
        connected = self.worker.connectors.connected()
        return [
            line
            for connector in connected
            if isinstance(connector, MirrorSourceConnector)
            for line in connector.refused_starts()
        ]

    def start(self) -> None:
        """Join the group and open its topics, in parallel; does not wait."""
        self._thread.start()

    def _run(self) -> None:
        backoff = Backoff(RETRY)
        while not self._stopping.is_set():
            try:
                self._open()
            except MirrorError as error:
                self.worker.close(LEAVE_SECONDS)
                if self._stopping.is_set():
                    return
                if self.copies:
                    self.failure = error
                    return
                # This pair has heartbeats only: the other pairs copy without it.
                wait = backoff.failed()
                log.warning("[%s] no heartbeats: %s; retrying in %.0f s", self.name, error, wait)
                self._stopping.wait(wait)
                self._make_worker()
            except Exception as error:  # the main thread ends the process with it
                log.exception("[%s] cannot start", self.name)
                self.failure = MirrorError(f"{self.name}: {type(error).__name__}: {error}")
                return
            else:
                return

    def _open(self) -> None:
        worker = self.worker
        worker.member.start()
        # No topic is created unless Spark can be started with these settings.
        if not self._wait_for_spark():
            return
        worker.open()
        with self._lock:
            if self._stopping.is_set():
                return
            self.herder.start()
            worker.loop.start()
            if self._has_rest:
                self._scheduler.start()
            self._is_open = True

    def _wait_for_spark(self) -> bool:
        """Wait until Spark is up, if this process needs it; False: the process ends."""
        try:
            if self._needs_spark:
                self._spark.get()
        except MirrorError as error:
            self.failure = error if self.copies else None
            return False
        return True

    # -- while it runs -----------------------------------------------------------------------------

    def look(self) -> None:
        """Called about once a second. MirrorError: this process must end."""
        if self.failure is not None:
            raise self.failure
        if self._is_open and self.worker.loop.problem:
            raise MirrorError(self.worker.loop.problem)
        leader = "" if self.leads else self.worker.member.leader_url
        if leader:
            self.worker.connectors.disconnect()
            if leader != self._followed:
                log.info("[%s] %s", self.name, self.follows.format(leader=leader))
        self._followed = leader

    @property
    def leads(self) -> bool:
        """Whether this process leads the pair and so runs its connectors."""
        return self.worker.member.view.leads

    @property
    def has_joined(self) -> bool:
        """Whether this process knows who leads."""
        return bool(self.worker.member.leader_url)

    @property
    def is_member(self) -> bool:
        """Whether this process is a member of the group, or about to become one."""
        return not self._is_open or self.worker.member.membership is not None

    @property
    def is_settled(self) -> bool:
        """Whether the pair's connectors run, here or on another node."""
        if not self._is_open or not self.has_joined:
            return False
        if not self.leads:
            return True
        return self.worker.loop.connectors().keys() >= self.pair.connectors.keys()

    @property
    def stands_by(self) -> str:
        """Why this process runs nothing of the pair, or not all; empty if nothing is wrong."""
        member = self.worker.member
        if self.runners or (self.has_joined and self.leads):
            return self.worker.loop.last_error
        if member.last_error:
            return member.last_error
        if not self.has_joined:
            return "joining its group"
        return f"standing by: {member.leader_url} leads this flow"

    def tasks(self) -> dict[str, list[Task]]:
        """The tasks that run here, by connector."""
        return self.worker.loop.tasks()

    def connectors(self) -> dict[str, Connector]:
        """The connectors that run here, if this process leads the pair."""
        return self.worker.loop.connectors()

    @property
    def runners(self) -> list[TaskRunner]:
        """The copy tasks that run here."""
        found = (task.runner for tasks in self.tasks().values() for task in tasks)
        return [runner for runner in found if runner is not None]

    # -- the end -----------------------------------------------------------------------------------

    def stop(self, seconds: float) -> None:
        """Hand the tasks over, commit, stop, and leave the group; waits for all of this."""
        self.is_stopping = True
        with self._lock:
            self._stopping.set()
        self._scheduler.stop()
        self.worker.connectors.disconnect()
        if self._is_open:
            self.is_clean = self.worker.loop.stop(seconds)
        if self._thread.ident is not None:
            self.worker.close(LEAVE_SECONDS)
        self.is_stopping = False


def raise_together(errors: Sequence[MirrorError]) -> None:
    """Raise the errors of several connectors as one; return if there are none."""
    unusable = {str(each): each for error in errors for each in _config_errors(error)}
    if unusable:
        raise ConfigErrors(list(unusable.values()))
    lines = [line for error in errors for line in str(error).splitlines()]
    if lines:
        raise KafkaError("\n".join(dict.fromkeys(lines)))


def _config_errors(error: MirrorError) -> Sequence[ConfigError]:
    if isinstance(error, ConfigErrors):
        return error.errors
    return [error] if isinstance(error, ConfigError) else []
