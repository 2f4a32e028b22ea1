"""Connect's offsets topic: where each partition's position is kept, on the target cluster.

Runs on: worker. The copy tasks write it (spark/positions); this creates it and reads it back.
"""

from __future__ import annotations

import logging

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.worker import WorkerConfig
from sparkmirror.connect.topic_reader import TopicReader
from sparkmirror.errors import ConfigError, KafkaError
from sparkmirror.mirror.records import decode_offset_key, decode_offset_value
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin import Admin, NewTopic

log = logging.getLogger(__name__)

READ_SECONDS = 60.0
ADMIN_TIMEOUT_MS = 60_000
CLEANUP = "cleanup.policy"


class OffsetStore:
    """Positions of one connector."""

    def __init__(self, worker: WorkerConfig, connector: str, cluster: str) -> None:
        self._worker = worker
        self._connector = connector
        self._cluster = cluster
        self.topic = worker.offset_storage_topic
        self.partitions = 0

    def prepare(self, admin: Admin, client: ClientConfig | None = None) -> None:
        """Create the topic, or check the one that is there.

        `admin` asks the cluster of `client`; the worker's own may be another one.
        """
        if client is None or client.is_same_cluster(self._worker.client):
            self._prepare(admin)
            return
        own = Admin(self._worker.client, ADMIN_TIMEOUT_MS)
        try:
            self._prepare(own)
        finally:
            own.close()

    def _prepare(self, admin: Admin) -> None:
        found = admin.list_topics().get(self.topic)
        if found is None:
            self._create(admin)
            return
        self.partitions = found.partitions
        settings = admin.describe_topic_configs([self.topic])[self.topic]
        if isinstance(settings, KafkaError):
            log.warning("%s; make sure that it has %s=compact", settings, CLEANUP)
            return
        for setting in settings:
            if setting.name == CLEANUP and setting.value != "compact":
                raise ConfigError(
                    "offset.storage.topic",
                    self.topic,
                    f"the topic has {CLEANUP}={setting.value}, so positions would be deleted",
                    f"set {CLEANUP}=compact on it, or name another topic",
                )

    def load(self) -> dict[TopicPartition, int]:
        """The last copied upstream offset of every partition that has one."""
        reader = TopicReader(self._worker.client, self.topic, self.partitions)
        found: dict[TopicPartition, int] = {}
        for record in reader.read(READ_SECONDS):
            key = decode_offset_key(record.key)
            if key is None or (key.connector, key.cluster) != (self._connector, self._cluster):
                continue
            tp = TopicPartition(key.topic, key.partition)
            last_offset = decode_offset_value(record.value)
            if last_offset is None:
                found.pop(tp, None)
            else:
                found[tp] = last_offset
        return found

    def _create(self, admin: Admin) -> None:
        self.partitions = self._worker.offset_storage_partitions
        topic = NewTopic(
            self.topic,
            self.partitions,
            self._worker.offset_storage_replication_factor,
            {CLEANUP: "compact"},
        )
        error = admin.create_topics([topic])[self.topic]
        if error is not None:
            raise KafkaError(
                f"{error}; set offset.storage.replication.factor to at most the number of brokers"
            ) from error
        log.info("created '%s' with %d partitions", self.topic, self.partitions)
