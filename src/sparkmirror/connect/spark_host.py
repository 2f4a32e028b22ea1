"""The worker's Spark: started when the first source connector needs it, kept while it leads.

Runs on: worker.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from sparkmirror.spark.link_server import LinkServer
from sparkmirror.spark.session import SparkEngine

log = logging.getLogger(__name__)

# Nobody knows how many tasks users will ask for; in local mode a slot is but a thread that waits.
SLOTS = 256


class SparkHost:
    """Spark and the control link of its tasks; for any thread."""

    def __init__(
        self, settings: Mapping[str, str], lease: Callable[[], float | None] = lambda: None
    ) -> None:
        """`lease` tells how many seconds this worker leads for sure: so long may tasks write."""
        self._settings = settings
        self._lease = lease
        self._lock = threading.Lock()
        self._started: tuple[SparkEngine, LinkServer] | None = None

    def get(self) -> tuple[SparkEngine, LinkServer]:
        """Start Spark, or wait until it is up; MirrorError says why it cannot start."""
        with self._lock:
            if self._started is None:
                began = time.monotonic()
                engine = SparkEngine(self._settings, SLOTS)
                self._started = engine, LinkServer(*engine.link_address, self._lease)
                log.info("Spark %s is up after %.1f s", engine.master, time.monotonic() - began)
            return self._started

    def check_alive(self) -> None:
        """MirrorError when Spark was started and has ended by itself."""
        started = self._started
        if started is not None:
            started[0].check_alive()

    def close(self) -> None:
        """End Spark; all tasks must have ended."""
        with self._lock:
            started, self._started = self._started, None
        if started is not None:
            engine, links = started
            links.close()
            engine.stop()
