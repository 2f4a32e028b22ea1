"""The flows of one group: this process runs them while it leads the group, otherwise it stands by.

Runs on: worker, in dedicated mode, one thread per group. Processes with the same file join the same
group on each target, under the name that MirrorMaker 2 uses (`<source>-mm2`), so of several one
copies and the others wait to take over. Genuine MirrorMaker 2 speaks another protocol there: as
long as its processes are in the group, the coordinator refuses ours.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from sparkmirror.config.mm2 import FlowConfig
from sparkmirror.config.worker_config import WorkerConfig
from sparkmirror.connect.group.tenure import Tenure
from sparkmirror.connect.group.worker_group_member import WorkerGroupMember
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.source.local_source import LocalSource
from sparkmirror.errors import ConfigError, ConfigErrors, KafkaError, MirrorError
from sparkmirror.mirror.permissions import NO_FLOW
from sparkmirror.spark.task_runner import TaskRunner

log = logging.getLogger(__name__)

# Not that of our Connect workers: neither can do the other's work.
PROTOCOL = "sparkmirror-run"
OCCUPIED = (
    "another MirrorMaker 2 (or a Connect worker) runs this flow; this process waits until it has "
    "ended, and copies nothing before that"
)
# Commit, drain and end: SIGTERM to exit takes less than ten seconds in all.
STOP_SECONDS = 7.0
# A flow that has only begun to start has nothing to store.
STARTING_SECONDS = 1.0
LEAVE_SECONDS = 1.0
LOOK_SECONDS = 0.2


class Phase(Enum):
    """What this process does for the flows of a group."""

    JOINING = "joining"
    STANDING_BY = "standing by"
    STARTING = "starting"
    RUNNING = "running"


class ThreadConnector(Protocol):
    """A connector that needs no Spark: all of its work is done by threads of this process."""

    name: str

    @property
    def last_error(self) -> str:
        """What keeps it from doing its work; empty while it does."""

    def connect(self) -> None:
        """Open the admin connections; KafkaError says of each cluster why it cannot be reached."""

    def disconnect(self) -> None:
        """Close what `connect` opened, when nothing was started."""

    def start(self) -> None:
        """Begin; what fails from here on is logged and tried again."""

    def stop(self) -> None:
        """Begin nothing new; does not wait."""

    def join(self, seconds: float) -> bool:
        """Wait for the end and close everything; tells whether all was stored."""


@dataclass(frozen=True, slots=True)
class Connectors:
    """What runs for one group, from its start to its end; another start makes others."""

    sources: Sequence[LocalSource]
    worker_side: Sequence[ThreadConnector]

    @property
    def all(self) -> Sequence[LocalSource | ThreadConnector]:
        return (*self.sources, *self.worker_side)

    def stop(self, seconds: float) -> bool:
        """Commit and end; only positions must be stored for a clean end: the rest comes again."""
        deadline = time.monotonic() + seconds
        for each in self.all:
            each.stop()
        clean = [c.join(max(0.1, deadline - time.monotonic())) for c in self.sources]
        for worker_side in self.worker_side:
            worker_side.join(max(0.1, deadline - time.monotonic()))
        return all(clean)


class FlowGroup:
    """One group on one target.

    `failure` is what this process has to end for. `is_clean`: all positions of the flows that ran
    here were stored.
    """

    def __init__(
        self, worker: WorkerConfig, make: Callable[[], Connectors], spark: Worker | None
    ) -> None:
        """`spark`: None if this process copies nothing."""
        self.failure: MirrorError | None = None
        self.phase = Phase.JOINING
        self.connectors = make()
        self._make = make
        self._spark = spark
        self.is_clean = True
        self._is_used = False
        group = worker.group
        self.name = f"{group.group_id} on '{worker.client.alias}'"
        self.member = WorkerGroupMember(
            worker.client,
            group.group_id,
            session_timeout_ms=group.session_timeout_ms,
            heartbeat_interval_ms=group.heartbeat_interval_ms,
            rebalance_timeout_ms=group.rebalance_timeout_ms,
            own_url=f"{socket.gethostname()}/{os.getpid()}",
            protocol=PROTOCOL,
            occupied=OCCUPIED,
            denied=NO_FLOW,
        )
        self._tenure = Tenure(self.member)
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"group {self.name}", daemon=True)

    def start(self) -> None:
        """Join the group; the flows start as soon as this process leads it."""
        self.member.on_change(self._wake.set)
        self.member.start()
        self._thread.start()

    def stop(self) -> None:
        """Begin to end; does not wait."""
        self._stopping.set()
        self._wake.set()
        if self.phase is Phase.STARTING:
            for source in self.connectors.sources:
                source.stop()  # it starts no tasks any more

    def finish(self, deadline: float) -> None:
        """Wait for the flows; those that have only begun to start have nothing to store."""
        limit = max(0.1, deadline - time.monotonic())
        has_tasks = any(task.has_connected for task in self.tasks)
        if self._thread.is_alive():
            self._thread.join(limit if has_tasks else min(limit, STARTING_SECONDS))
        if self._thread.is_alive() and has_tasks:
            log.warning("[%s] the flows did not end in time", self.name)
            self.is_clean = False
        self.member.stop(0.0)
        if not self._thread.is_alive():
            self.close_unused()

    def close_unused(self) -> None:
        """Close the connections of connectors that never started."""
        if not self._is_used:
            self._is_used = True
            for each in self.connectors.all:
                each.disconnect()

    def leave(self) -> None:
        """Leave the group: last of all, so that nobody takes over what still runs."""
        self.member.stop(LEAVE_SECONDS)

    @property
    def stands_by(self) -> str:
        """Who runs the flows instead of this process, or what it waits for; empty if it does."""
        if self.phase in (Phase.STARTING, Phase.RUNNING):
            return ""
        if self.member.last_error:
            return self.member.last_error
        leader = self.member.leader_url
        return f"standing by: {leader} copies this flow" if leader else "joining its group"

    @property
    def tasks(self) -> list[TaskRunner]:
        """Those of all its flows."""
        return [task for source in self.connectors.sources for task in source.tasks]

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._wake.clear()
                if self._tenure.has_lapsed():
                    self._stand_by()
                    self._wake.wait(LOOK_SECONDS)
                else:
                    self._work()
        except MirrorError as error:
            self.failure = error
        except Exception as error:  # the main thread ends the process with it
            log.exception("[%s] the flows cannot go on", self.name)
            self.failure = MirrorError(f"{self.name}: {type(error).__name__}: {error}")

    def _stand_by(self) -> None:
        """Wait for the lead; say so when somebody else has it."""
        leader = self.member.leader_url
        if leader and self.phase is not Phase.STANDING_BY and not self._tenure.leads():
            self.phase = Phase.STANDING_BY
            log.info(
                "[%s] stands by: %s copies this flow; this process takes over when it ends",
                self.name,
                leader,
            )

    def _work(self) -> None:
        """Run the flows, from the moment this process leads until it does not any more."""
        self.phase = Phase.STARTING
        if self._is_used:
            self.connectors = self._make()
            connect_all(self.connectors.all)
        self._is_used = True
        try:
            if self._start_all():
                self.phase = Phase.RUNNING
                while not self._stopping.is_set() and not self._tenure.has_lapsed():
                    self._wake.wait(LOOK_SECONDS)
                    self._wake.clear()
        finally:
            self.is_clean = self.connectors.stop(STOP_SECONDS)
            self.phase = Phase.JOINING

    def _start_all(self) -> bool:
        """Whether all could start before this process had to stop, or to leave them to another."""
        try:
            # Before anything is created: if Spark cannot start, this process ends. Also for a
            # group that has heartbeats only.
            started = self._spark.get() if self._spark else None
        except MirrorError:
            if self._stopping.is_set():
                return False
            raise
        # First: what the flows find on their first look includes the heartbeats.
        for worker_side in self.connectors.worker_side:
            worker_side.start()
        for source in self.connectors.sources:
            if self._stopping.is_set() or self._tenure.has_lapsed():
                return False
            assert started is not None, "a file with flows needs Spark"
            source.start_with_tasks(*started, self.member.lend())
        return True


class FlowView:
    """One flow for those who show it, whichever connector runs it at the moment, if any."""

    def __init__(self, flow: FlowConfig, group: FlowGroup) -> None:
        self.flow = flow
        self._group = group

    @property
    def tasks(self) -> list[TaskRunner]:
        source = self._source
        return [] if source is None else source.tasks

    @property
    def last_error(self) -> str:
        source = self._source
        return "" if source is None else source.last_error

    @property
    def stands_by(self) -> str:
        """Why this process does not copy it; empty when it does."""
        return self._group.stands_by

    @property
    def _source(self) -> LocalSource | None:
        if self.stands_by:
            return None
        sources = self._group.connectors.sources
        return next((each for each in sources if each.flow is self.flow), None)


def connect_all(connectors: Sequence[LocalSource | ThreadConnector]) -> None:
    """Connect them side by side.

    Raises:
        ConfigErrors: all key stores and logins that cannot be used.
        KafkaError: all clusters that cannot be reached, each once.
    """
    results: dict[int, MirrorError] = {}
    threads = [
        # Daemons: a process that is told to stop does not wait for a cluster that says nothing.
        threading.Thread(target=_connect, args=(each, at, results), name="connect", daemon=True)
        for at, each in enumerate(connectors)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    raise_together([results[at] for at in sorted(results)])


def raise_together(errors: Sequence[MirrorError]) -> None:
    """Raise what is wrong with several connectors as one error; nothing if nothing is."""
    unusable = {str(error): error for error in errors if isinstance(error, ConfigError)}
    if unusable:
        raise ConfigErrors(list(unusable.values()))
    lines = [line for error in errors for line in str(error).splitlines()]
    if lines:
        raise KafkaError("\n".join(dict.fromkeys(lines)))


def _connect(
    connector: LocalSource | ThreadConnector, at: int, results: dict[int, MirrorError]
) -> None:
    try:
        connector.connect()
    except MirrorError as error:
        results[at] = error
    except Exception as error:  # of a thread that nobody else would see fail
        log.exception("a connector cannot connect")
        results[at] = MirrorError(f"{type(error).__name__}: {error}")
