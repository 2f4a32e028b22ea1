"""The leader's claim of the config topic, without which it runs no connector.

Runs on: worker, the leader, on the herder's thread; the claim itself has a thread of its own,
because a broker may take half a minute. The claim fences earlier leaders through a transactional
id (KIP-618). In dedicated mode the leader then writes the connectors of its file, as MirrorMaker 2
does (KAFKA-15372), before any connector or new task starts.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from sparkmirror.connect.background import Background
from sparkmirror.connect.entities import ConnectorProps
from sparkmirror.connect.storage.backing_stores import ConfigBackingStore

log = logging.getLogger(__name__)


class ConfigClaim:
    """Fences earlier leaders, then writes the connectors of a file, if there is one."""

    def __init__(
        self,
        configs: ConfigBackingStore,
        file: dict[str, ConnectorProps] | None,
        wake: Callable[[], object],
    ) -> None:
        """`file`: the connectors to run, by name; None: those in the config topic."""
        self._configs = configs
        self._file = file
        self._wake = wake
        self._running: Background[None] | None = None
        self._is_done = False

    @property
    def is_done(self) -> bool:
        """Whether this worker may write, and the config topic has the connectors of the file.

        Only then may a leader give tasks away that no worker runs. So a worker whose claim is still
        valid knows that no other was given its tasks (`GroupPlace`).
        """
        return self._is_done

    def advance(self, stopping: threading.Event) -> bool:
        """Claim if necessary; return whether that is done. Raises MirrorError: try again."""
        if not self._is_done:
            if self._running is None:
                self._running = Background(self._claim, self._wake)
            if not self._running.is_running:
                running, self._running = self._running, None
                running.wait(stopping)
                self._is_done = True
        return self._is_done

    def drop(self) -> None:
        """Drop the claim: another worker may lead."""
        self._is_done, self._running = False, None

    def _claim(self) -> None:
        self._configs.claim()
        if self._file is None:
            return
        stored = self._configs.snapshot().connectors
        for name in stored.keys() - self._file.keys():
            log.info("connector %s of the config topic is not in the file: deleting it", name)
            self._configs.delete_connector(name)
        for name, config in self._file.items():
            if dict(stored.get(name, {})) != dict(config):
                self._configs.put_connector(name, config)
