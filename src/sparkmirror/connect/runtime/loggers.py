"""The levels of this worker's loggers, under our own names and under those that Connect has.

Runs on: worker. Whoever turns up `org.apache.kafka.connect.mirror` means the parts of this program
that do what those classes do. Libraries are never louder than their warnings: at DEBUG they write
down what they send, passwords among it.
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
# Connect's loggers, and what does their work here.
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
    """For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Those that somebody has set: level and when, in milliseconds.
        self._set: dict[str, LoggerLevel] = {}
        # The levels of the config topic, as of the last look.
        self._of_cluster: Mapping[str, str] = {}

    def all(self) -> dict[str, LoggerLevel]:
        """Every logger there is, with the level that holds for it."""
        return {name: self._level(name) for name in self._names()}

    def get(self, name: str) -> LoggerLevel | None:
        """One of them; None when there is no such logger."""
        return self._level(name) if name in self._names() else None

    def change(self, name: str, level: str) -> list[str]:
        """Set `name` and all below it; which those are."""
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
        """Those that were set for the cluster before this worker started are not for it."""
        self._of_cluster = dict(levels)

    def follow(self, levels: Mapping[str, str]) -> None:
        """Set what has changed for the cluster."""
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
        # Whoever asks for the root wants to know about our lines; libraries have less to say.
        asked = _python(OURS if name == ROOT else name)
        return level or LoggerLevel(_word(asked.getEffectiveLevel()))


def _python(name: str) -> logging.Logger:
    """The logger behind a name; names that mean nothing here have one of their own."""
    return logging.getLogger(None if name == ROOT else ALIASES.get(name, name))


def _allowed(name: str, level: int) -> int:
    """The root's level counts for all libraries that have none of their own."""
    is_library = name == ROOT or name.partition(".")[0] in LIBRARIES
    return max(level, logging.WARNING) if is_library else level


def _is_ours(name: str) -> bool:
    return name == OURS or name.startswith(f"{OURS}.")


def _word(level: int) -> str:
    """The word for a level, or for the next one below it."""
    return next((word for word, number in LEVELS.items() if number <= level), "ALL")
