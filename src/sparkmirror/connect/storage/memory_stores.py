"""Configurations and statuses of a process that keeps them in memory, not in Kafka.

Runs on: worker, when it replaces MirrorMaker 1. That has no config topic, so its settings and
passwords must not go to one. Positions are in the offsets topic as always. Mirrors:
org.apache.kafka.connect.storage.Memory{Config,Status}BackingStore of Connect's standalone mode.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from sparkmirror.connect.entities import OnRestart
from sparkmirror.connect.group.session_keys import SessionKey
from sparkmirror.connect.storage.backing_stores import StoredStatus
from sparkmirror.connect.storage.config_records import (
    ConfigSnapshot,
    ConfigState,
    KeyValue,
    session_key_record,
)
from sparkmirror.connect.storage.config_writer import ConfigWriter


class MemoryConfigBackingStore(ConfigWriter):
    """Applies the records that would go to the config topic; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = ConfigState()
        self._snapshot = self._state.snapshot()
        self._on_change: list[Callable[[], None]] = []
        self._on_restart: list[OnRestart] = []

    def start(self) -> None:
        """There is nothing to read."""

    def stop(self) -> None:
        """There is nothing to close."""

    def snapshot(self) -> ConfigSnapshot:
        return self._snapshot

    def claim(self) -> None:
        """Only this process writes."""

    def is_still_claimed(self) -> bool:
        """Unknown: claims of other processes leave no trace here."""
        return False

    def on_change(self, callback: Callable[[], None]) -> None:
        self._on_change.append(callback)

    def on_restart(self, callback: OnRestart) -> None:
        self._on_restart.append(callback)

    def session_keys(self) -> Sequence[SessionKey]:
        return self._snapshot.session_keys

    def put_session_key(self, key: SessionKey) -> None:
        self._write([session_key_record(key)])

    def _write(self, rows: Sequence[KeyValue]) -> None:
        restarts = []
        with self._lock:
            for key, value in rows:
                restart = self._state.apply(key, value)
                restarts += [] if restart is None else [restart]
                self._state.end_offset += 1
            self._snapshot = self._state.snapshot()
        for changed in self._on_change:
            changed()
        for each in restarts:
            for callback in self._on_restart:
                callback(each.connector, each.include_tasks, each.only_failed)


class MemoryStatusBackingStore:
    """Returns what was put; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connectors: dict[str, StoredStatus] = {}
        self._tasks: dict[str, dict[int, StoredStatus]] = {}
        self._topics: dict[str, set[str]] = {}

    def start(self) -> None:
        """There is nothing to read."""

    def stop(self, seconds: float = 0.0) -> None:
        """There is nothing to close."""

    def connector(self, name: str) -> StoredStatus | None:
        return self._connectors.get(name)

    def tasks(self, name: str) -> Mapping[int, StoredStatus]:
        with self._lock:
            return dict(self._tasks.get(name, {}))

    def topics(self, name: str) -> set[str]:
        with self._lock:
            return set(self._topics.get(name, ()))

    def put_connector(self, name: str, status: StoredStatus) -> None:
        self._connectors[name] = status

    def put_task(self, name: str, task: int, status: StoredStatus) -> None:
        with self._lock:
            self._tasks.setdefault(name, {})[task] = status

    def forget(self, name: str) -> None:
        with self._lock:
            self._connectors.pop(name, None)
            self._tasks.pop(name, None)
            self._topics.pop(name, None)

    def forget_task(self, name: str, task: int) -> None:
        with self._lock:
            self._tasks.get(name, {}).pop(task, None)

    def put_topic(self, topic: str, name: str, task: int, now_ms: int) -> None:
        del task, now_ms
        with self._lock:
            self._topics.setdefault(name, set()).add(topic)

    def reset_topics(self, name: str) -> None:
        with self._lock:
            self._topics.pop(name, None)
