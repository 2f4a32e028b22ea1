"""The levels of this worker's loggers, under our own names and Connect's (KIP-495, KIP-976).

Runs on: worker. `org.apache.kafka.connect.mirror` and the like are aliases of the modules that do
what those classes do. Libraries log at WARN or above only: at DEBUG they log what they send,
including passwords.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping

from sparkmirror.connect.entities import LoggerLevel

ROOT = "root"
OURS = "sparkmirror"
CONNECT, MIRROR = "org.apache.kafka.connect.", "org.apache.kafka.connect.mirror."
OWN = "sparkmirror.connect."
# Connect's loggers, and the modules that do their work here.
ALIASES = {
    "org.apache.kafka.clients": "sparkmirror.wire",
    f"{CONNECT}runtime.distributed.DistributedHerder": f"{OWN}runtime.herder_loop",
    f"{CONNECT}runtime.distributed.WorkerCoordinator": f"{OWN}group.worker_group_member",
    f"{CONNECT}runtime.rest.RestServer": "sparkmirror.rest",
    f"{CONNECT}runtime.Worker": f"{OWN}runtime.worker_connector",
    f"{CONNECT}storage.KafkaConfigBackingStore": f"{OWN}storage.config_backing_store",
    f"{CONNECT}storage.KafkaOffsetBackingStore": f"{OWN}storage.offset_backing_store",
    f"{CONNECT}storage.KafkaStatusBackingStore": f"{OWN}storage.status_backing_store",
    f"{MIRROR}CheckpointStore": f"{OWN}checkpoint.checkpoint_topic",
    f"{MIRROR}MirrorCheckpointConnector": f"{OWN}checkpoint.mirror_checkpoint_connector",
    f"{MIRROR}MirrorCheckpointTask": f"{OWN}checkpoint.group_offset_sync",
    f"{MIRROR}MirrorHeartbeatConnector": f"{OWN}heartbeat.mirror_heartbeat_connector",
    f"{MIRROR}MirrorSourceConnector": f"{OWN}source.mirror_source_connector",
    f"{MIRROR}MirrorSourceTask": "sparkmirror.spark",
    f"{MIRROR}OffsetSyncStore": f"{OWN}checkpoint.offset_translator",
    f"{MIRROR}Scheduler": f"{OWN}scheduler",
}
LIBRARIES = frozenset(
    ("asyncio", "botocore", "httpcore", "httpx", "kafka", "py4j", "pyspark", "urllib3", "uvicorn")
)
LEVELS = {
    "OFF": logging.CRITICAL + 10,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
    "ALL": 1,
}


class WorkerLoggers:
    """The loggers of one worker; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Levels that users have set, with the time in milliseconds.
        self._set: dict[str, LoggerLevel] = {}
        # The levels in the config topic, as of the last call of `follow`.
        self._of_cluster: Mapping[str, str] = {}

    def all(self) -> dict[str, LoggerLevel]:
        """Every logger, with its effective level."""
        return {name: self._level(name) for name in self._names()}

    def get(self, name: str) -> LoggerLevel | None:
        """The level of one logger; None if there is no such logger."""
        return self._level(name) if name in self._names() else None

    def change(self, name: str, level: str) -> list[str]:
        """Set `name` and all loggers below it; return their names."""
        now = LoggerLevel(level, time.time_ns() // 1_000_000)
        below = f"{name}."
        changed = {each for each in self._names() if name == ROOT or each.startswith(below)}
        changed.add(name)
        with self._lock:
            self._set |= dict.fromkeys(changed, now)
        for each in changed:
            _python(each).setLevel(_allowed(each, LEVELS[level]))
        return sorted(changed)

    def begin(self, levels: Mapping[str, str]) -> None:
        """Ignore levels that were set for the cluster before this worker started (KIP-976)."""
        self._of_cluster = dict(levels)

    def follow(self, levels: Mapping[str, str]) -> None:
        """Apply levels that have changed for the cluster."""
        before, self._of_cluster = self._of_cluster, dict(levels)
        for name, level in self._of_cluster.items():
            if before.get(name) != level:
                self.change(name, level)

    def _names(self) -> set[str]:
        ours = [name for name in list(logging.root.manager.loggerDict) if _is_ours(name)]
        with self._lock:
            return {ROOT, *ours, *ALIASES, *self._set}

    def _level(self, name: str) -> LoggerLevel:
        with self._lock:
            level = self._set.get(name)
        # The root shows the level of our own loggers: those of libraries are capped.
        asked = _python(OURS if name == ROOT else name)
        return level or LoggerLevel(_word(asked.getEffectiveLevel()))


def _python(name: str) -> logging.Logger:
    """Python's logger for a name; unknown names get a logger of their own."""
    return logging.getLogger(None if name == ROOT else ALIASES.get(name, name))


def _allowed(name: str, level: int) -> int:
    """The level, capped for libraries; the root's level applies to all of those."""
    is_library = name == ROOT or name.partition(".")[0] in LIBRARIES
    return max(level, logging.WARNING) if is_library else level


def _is_ours(name: str) -> bool:
    return name == OURS or name.startswith(f"{OURS}.")


def _word(level: int) -> str:
    """The name of a level, or of the next one below it."""
    return next((word for word, number in LEVELS.items() if number <= level), "ALL")
