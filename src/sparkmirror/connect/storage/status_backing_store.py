"""Connect's status topic: the states of connectors and tasks, and the topics they have used.

Runs on: worker. Every worker reads the topic, and writes the states of what it runs; KIP-558 added
the topics. Mirrors: org.apache.kafka.connect.storage.KafkaStatusBackingStore (4.3).

    status-connector-<name>                  {"state","trace","worker_id","generation","version"}
    status-task-<name>-<number>              the same
    status-topic-<topic>:connector-<name>    {"topic":{"name","connector","task",
                                                       "discoverTimestamp"}}
A null value deletes.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from sparkmirror.batches.records import Record
from sparkmirror.config.clients import ClientConfig, ProducerConfig
from sparkmirror.connect.storage.backing_stores import StoredStatus
from sparkmirror.connect.storage.kafka_based_log import KafkaBasedLog, now_ms
from sparkmirror.connect.storage.record_producer import RecordProducer
from sparkmirror.connect.storage.storage_topics import StorageTopic, prepare_storage_topic
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.permissions import (
    READ,
    WRITE,
    Feature,
    ResourceKind,
    consequence_without,
)
from sparkmirror.mirror.positions.partitioner import partition_for_key

log = logging.getLogger(__name__)

CONNECTOR, TASK, TOPIC = "status-connector-", "status-task-", "status-topic-"
OF_CONNECTOR = ":connector-"
# Digits of a task number, which is a Java int.
LONGEST_NUMBER = 10
# The errors that a malformed record causes.
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
K = TypeVar("K")
FLUSH_SECONDS = 5.0


class KafkaStatusBackingStore:
    """The status topic. For any thread; writes do not wait."""

    def __init__(
        self, client: ClientConfig, topic: StorageTopic, feature: Feature = Feature.WORKER
    ) -> None:
        """`feature`: what the topic is needed for; used in errors."""
        self.topic = topic.name
        self._client = client
        self._wanted = topic
        self._partitions = topic.partitions
        self._lock = threading.Lock()
        self._connectors: dict[str, StoredStatus] = {}
        self._tasks: dict[str, dict[int, StoredStatus]] = {}
        self._topics: dict[str, set[str]] = {}
        # Topics written by this worker, possibly not read back yet.
        self._put_topics: dict[str, set[str]] = {}
        self._followed: KafkaBasedLog | None = None
        self._without_reading = consequence_without(feature, ResourceKind.STATUS, READ)
        without = {topic.name: consequence_without(feature, ResourceKind.STATUS, WRITE)}
        self._writer = RecordProducer(ProducerConfig(client), f"'{topic.name}'", without)

    def start(self) -> None:
        """Create or check the topic, read it to its end, and follow it.

        Raises:
            ConfigError: the topic cannot be used.
            KafkaError: it can neither be created nor read.
        """
        self._partitions = prepare_storage_topic(self._client, self._wanted)
        self._followed = KafkaBasedLog(
            self._client, self.topic, self._partitions, self, self._without_reading
        )
        self._followed.start()
        self._writer.start()

    def stop(self, seconds: float = FLUSH_SECONDS) -> None:
        """Flush what was put, for so many seconds at most, and stop following the topic."""
        if self._writer.waiting:
            self._writer.flush(seconds)
        self._writer.close()
        if self._followed is not None:
            self._followed.stop()

    @property
    def last_error(self) -> str:
        """Why the topic cannot be read or written; empty while it can."""
        reading = "" if self._followed is None else self._followed.last_error
        return reading or self._writer.last_error

    def flush(self, seconds: float) -> None:
        """Return when everything that was put has been read back; TransportError on timeout."""
        self._writer.flush(seconds)
        if self._followed is not None:
            self._followed.refresh(seconds)

    # -- reading -----------------------------------------------------------------------------------

    def connector(self, name: str) -> StoredStatus | None:
        with self._lock:
            return self._connectors.get(name)

    def tasks(self, name: str) -> dict[int, StoredStatus]:
        """By task number, in order."""
        with self._lock:
            return dict(sorted(self._tasks.get(name, {}).items()))

    def topics(self, name: str) -> set[str]:
        """Topics that the connector has used since they were reset."""
        with self._lock:
            return set(self._topics.get(name, ()))

    # -- writing -----------------------------------------------------------------------------------

    def put_connector(self, name: str, status: StoredStatus) -> None:
        """Write the connector's state."""
        self._put(CONNECTOR + name, _status_value(status))

    def put_task(self, name: str, task: int, status: StoredStatus) -> None:
        """Write a task's state."""
        self._put(f"{TASK}{name}-{task}", _status_value(status))

    def forget_task(self, name: str, task: int) -> None:
        """Delete a task's state."""
        self._put(f"{TASK}{name}-{task}", None)

    def forget(self, name: str) -> None:
        """Delete all statuses of the connector, which was deleted."""
        for task in self.tasks(name):
            self.forget_task(name, task)
        self._put(CONNECTOR + name, None)
        self.reset_topics(name)

    def put_topic(self, topic: str, name: str, task: int, now_ms: int) -> None:
        """Note that the connector uses the topic (KIP-558)."""
        fields = {"name": topic, "connector": name, "task": task, "discoverTimestamp": now_ms}
        with self._lock:
            self._put_topics.setdefault(name, set()).add(topic)
        self._put(_topic_key(topic, name), {"topic": fields})

    def reset_topics(self, name: str) -> None:
        """Forget which topics the connector has used (KIP-558)."""
        with self._lock:
            topics = self._topics.get(name, set()) | self._put_topics.pop(name, set())
        for topic in sorted(topics):
            self._put(_topic_key(topic, name), None)

    def _put(self, key: str, value: Mapping[str, Any] | None) -> None:
        data = None if value is None else json.dumps(value, separators=(",", ":")).encode()
        name = key.encode(errors="replace")
        partition = partition_for_key(name, self._partitions)
        self._writer.send(self.topic, partition, [(name, data, now_ms())], self._on_written)

    def _on_written(self, error: KafkaError | None) -> None:
        """On the writer's thread."""
        if error is not None:
            log.warning("[%s] a status was not written: %s", self.topic, error)
        elif self._followed is not None:
            self._followed.poll_soon()

    # -- on the thread that follows the topic ------------------------------------------------------

    def on_records(self, records: Sequence[Record], *, restarted: bool) -> None:
        """Apply new records."""
        with self._lock:
            if restarted:
                for part in (self._connectors, self._tasks, self._topics):
                    part.clear()
            for record in records:
                self._apply((record.key or b"").decode(errors="replace"), record.value)

    def _apply(self, key: str, value: bytes | None) -> None:
        if key.startswith(CONNECTOR):
            _store(self._connectors, key.removeprefix(CONNECTOR), _read_status(key, value))
        elif key.startswith(TASK):
            name, _, number = key.removeprefix(TASK).rpartition("-")
            if number.isdecimal() and len(number) <= LONGEST_NUMBER:
                tasks = self._tasks.setdefault(name, {})
                _store(tasks, int(number), _read_status(key, value))
        elif key.startswith(TOPIC):
            # Topic names contain no colons.
            topic, _, name = key.removeprefix(TOPIC).partition(OF_CONNECTOR)
            topics = self._topics.setdefault(name, set())
            if value is None:
                topics.discard(topic)
            else:
                topics.add(topic)


def _store(statuses: dict[K, StoredStatus], key: K, status: StoredStatus | None) -> None:
    if status is None:
        statuses.pop(key, None)
    else:
        statuses[key] = status


def _topic_key(topic: str, name: str) -> str:
    return f"{TOPIC}{topic}{OF_CONNECTOR}{name}"


def _status_value(status: StoredStatus) -> dict[str, Any]:
    return {
        "state": status.state,
        "trace": status.trace,
        "worker_id": status.worker_id,
        "generation": status.generation,
        "version": status.version,
    }


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _read_status(key: str, value: bytes | None) -> StoredStatus | None:
    """The status; None if it was deleted, or is malformed, which is logged."""
    if value is None:
        return None
    try:
        document = json.loads(value)
        return StoredStatus(
            str(document["state"]),
            str(document["worker_id"]),
            int(document["generation"]),
            _text(document.get("trace")),
            _text(document.get("version")),
        )
    except UNREADABLE as error:
        log.warning("record '%s' of the status topic is passed over: %r", key, error)
        return None
