"""Dedicated mode: all flows of an mm2 file in one process, until told to stop.

Runs on: worker. Mirrors: org.apache.kafka.connect.mirror.MirrorMaker.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from sparkmirror.config.mm2 import MirrorMakerConfig
from sparkmirror.connect.checkpoint_connector import CheckpointConnector
from sparkmirror.connect.dedicated_topics import DedicatedTopics
from sparkmirror.connect.heartbeat_connector import HeartbeatConnector
from sparkmirror.connect.source_connector import SourceConnector
from sparkmirror.connect.start_report import refuse_fresh_starts
from sparkmirror.errors import ConfigError, ConfigErrors, KafkaError, MirrorError
from sparkmirror.spark.link_server import LinkServer
from sparkmirror.spark.session import SparkEngine

log = logging.getLogger(__name__)

# Commit, drain and end: SIGTERM to exit takes less than ten seconds in all.
STOP_SECONDS = 7.0


class WorkerConnector(Protocol):
    """A connector that needs no Spark: all of its work is done by threads of this process."""

    name: str

    @property
    def last_error(self) -> str:
        """What keeps it from doing its work; empty while it does."""

    def connect(self) -> None:
        """Open the admin connections; KafkaError says of each cluster why it cannot be reached."""

    def start(self) -> None:
        """Begin; what fails from here on is logged and tried again."""

    def stop(self) -> None:
        """Begin nothing new; does not wait."""

    def join(self, seconds: float) -> bool:
        """Wait for the end and close everything; tells whether all was stored."""


class DedicatedMirror:
    """The flows of one file, each with its checkpoints, and the heartbeats of all pairs."""

    def __init__(self, config: MirrorMakerConfig, *, resume_only: bool = False) -> None:
        """`resume_only`: start nothing unless every partition has a position to resume at."""
        self._config = config
        self._resume_only = resume_only
        self.connectors = [SourceConnector(flow) for flow in config.flows]
        self.worker_connectors = _worker_connectors(config)
        self._engine: SparkEngine | None = None
        self._links: LinkServer | None = None

    def start(self) -> None:
        """Connect everywhere, then start Spark, then the flows.

        Raises:
            KafkaError: all clusters that cannot be reached, at once; nothing was created anywhere.
            ConfigErrors: the same for key stores and logins that cannot be used.
            MirrorError: with `resume_only`, all partitions that would start afresh, of all flows.
        """
        began = time.monotonic()
        self._connect_all()
        if self._resume_only:
            refuse_fresh_starts(line for flow in self.connectors for line in flow.refused_starts())
        # Before the flows: what they find on their first look includes the heartbeats.
        for worker_side in self.worker_connectors:
            worker_side.start()
        tasks = sum(flow.source.tasks_max for flow in self._config.flows)
        self._engine = SparkEngine(self._config.spark, tasks)
        self._links = LinkServer(*self._engine.link_address)
        log.info("Spark %s is up after %.1f s", self._engine.master, time.monotonic() - began)
        for connector in self.connectors:
            connector.start(self._engine, self._links)
        log.info("%d flows started", len(self.connectors))

    def stop(self) -> bool:
        """Commit and end everything; tells whether all tasks ended clean."""
        for connector in self.connectors:
            connector.stop()
        for worker_side in self.worker_connectors:
            worker_side.stop()
        clean = self._join_all()
        if self._links is not None:
            self._links.close()
        if self._engine is not None:
            self._engine.stop()
        return clean

    def check_slots(self) -> None:
        """Say which tasks lack a Spark slot; called now and then."""
        tasks = [task for connector in self.connectors for task in connector.tasks]
        for task in tasks:
            task.check_slot(len(tasks))

    def _connect_all(self) -> None:
        connectors = (*self.connectors, *self.worker_connectors)
        with ThreadPoolExecutor(max(1, len(connectors))) as pool:
            results = list(pool.map(_connect, connectors))
        unusable = {str(error): error for error in results if isinstance(error, ConfigError)}
        if unusable:
            raise ConfigErrors(list(unusable.values()))
        lines = [line for error in results if error is not None for line in str(error).splitlines()]
        if lines:
            # Each cluster once, however many flows it is part of.
            raise KafkaError("\n".join(dict.fromkeys(lines)))

    def _join_all(self) -> bool:
        """Wait for all; only positions must be stored for a clean end: the rest comes again."""
        deadline = time.monotonic() + STOP_SECONDS
        clean = [c.join(max(0.1, deadline - time.monotonic())) for c in self.connectors]
        for worker_side in self.worker_connectors:
            worker_side.join(max(0.1, deadline - time.monotonic()))
        return all(clean)


def _worker_connectors(config: MirrorMakerConfig) -> Sequence[WorkerConnector]:
    """What runs beside the source connectors."""
    checkpoints = [
        CheckpointConnector(flow, has_syncs=flow.source.emit_offset_syncs_enabled)
        for flow in config.flows
    ]
    heartbeats = [HeartbeatConnector(pair) for pair in config.heartbeat_pairs]
    workers = [flow.worker for flow in config.flows]
    workers += [pair.worker for pair in config.heartbeat_pairs]
    return [*checkpoints, *heartbeats, DedicatedTopics(workers)]


def _connect(connector: SourceConnector | WorkerConnector) -> MirrorError | None:
    try:
        connector.connect()
    except MirrorError as error:
        return error
    return None
