"""Dedicated mode: all flows of an mm2 file in one process, until told to stop.

Runs on: worker. Mirrors: org.apache.kafka.connect.mirror.MirrorMaker.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor

from sparkmirror.config.mm2 import MirrorMakerConfig
from sparkmirror.connect.source_connector import SourceConnector
from sparkmirror.errors import KafkaError, MirrorError
from sparkmirror.spark.link_server import LinkServer
from sparkmirror.spark.session import SparkEngine

log = logging.getLogger(__name__)

# Commit, drain and end: SIGTERM to exit takes less than ten seconds in all.
STOP_SECONDS = 7.0


class DedicatedMirror:
    """The flows of one file."""

    def __init__(self, config: MirrorMakerConfig) -> None:
        self._config = config
        self.connectors = [SourceConnector(flow) for flow in config.flows]
        self._engine: SparkEngine | None = None
        self._links: LinkServer | None = None

    def start(self) -> None:
        """Connect everywhere, then start Spark, then the flows.

        Raises:
            KafkaError: all clusters that cannot be reached, at once; nothing was created anywhere.
        """
        began = time.monotonic()
        self._connect_all()
        tasks = sum(flow.source.tasks_max for flow in self._config.flows)
        self._engine = SparkEngine(self._config.spark, tasks)
        self._links = LinkServer(*self._engine.link_address)
        log.info("Spark %s is up after %.1f s", self._engine.master, time.monotonic() - began)
        for connector in self.connectors:
            connector.start(self._engine, self._links)
        log.info("%d flows started", len(self.connectors))

    def stop(self) -> bool:
        """Commit and end everything; tells whether all tasks ended clean."""
        deadline = time.monotonic() + STOP_SECONDS
        for connector in self.connectors:
            connector.stop()
        left = [c.join(max(0.1, deadline - time.monotonic())) for c in self.connectors]
        if self._links is not None:
            self._links.close()
        if self._engine is not None:
            self._engine.stop()
        return all(left)

    def check_slots(self) -> None:
        """Say which tasks lack a Spark slot; called now and then."""
        tasks = [task for connector in self.connectors for task in connector.tasks]
        for task in tasks:
            task.check_slot(len(tasks))

    def _connect_all(self) -> None:
        with ThreadPoolExecutor(max(1, len(self.connectors))) as pool:
            results = list(pool.map(_connect, self.connectors))
        lines = [line for error in results if error is not None for line in str(error).splitlines()]
        if lines:
            # Each cluster once, however many flows it is part of.
            raise KafkaError("\n".join(dict.fromkeys(lines)))


def _connect(connector: SourceConnector) -> MirrorError | None:
    try:
        connector.connect()
    except MirrorError as error:
        return error
    return None
