"""Connect's offsets topic on the target cluster, which has each partition's position.

Runs on: worker. This module creates and reads it, the copy tasks write it
(spark/offsets/positions). Mirrors: org.apache.kafka.connect.storage.KafkaOffsetBackingStore.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import NamedTuple, Protocol

from sparkmirror.batches.records import Record
from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.worker_config import WorkerConfig
from sparkmirror.connect.storage.log_reader import read_topic
from sparkmirror.connect.storage.storage_topics import (
    ADMIN_TIMEOUT_MS,
    bring_up_storage_topic,
    offsets_topic,
    prepare_storage_topic,
)
from sparkmirror.errors import DeniedError, KafkaError, describe_error
from sparkmirror.mirror.permissions import READ, Feature, ResourceKind, consequence_without
from sparkmirror.mirror.positions.own_offsets import OffsetsSettings, with_own_offsets
from sparkmirror.mirror.positions.provenance import Provenance, decode_provenance
from sparkmirror.mirror.records import START, decode_offset_key, decode_offset_value
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.admin import Admin

READ_SECONDS = 60.0


class StoredPosition(NamedTuple):
    """Where the copy of a partition continues, and in which log, as far as that was stored."""

    next_offset: int
    provenance: Provenance = Provenance()

    def is_of(self, topic_id: bytes) -> bool:
        """Whether the position may belong to the topic with this id (KIP-516)."""
        return not topic_id or self.provenance.topic_id in (None, topic_id)


StoredPositions = Mapping[TopicPartition, StoredPosition]


class ConnectorSettings(OffsetsSettings, Protocol):
    """The settings of a connector that determine which positions are its own, and their topic."""

    @property
    def name(self) -> str: ...
    @property
    def source_alias(self) -> str: ...


class KafkaOffsetBackingStore:
    """Positions of one connector. `shared`: those from before it had a topic of its own."""

    def __init__(
        self,
        worker: WorkerConfig,
        connector: str,
        cluster: str,
        shared: KafkaOffsetBackingStore | None = None,
    ) -> None:
        self._worker = worker
        self._shared = shared
        self._connector = connector
        self._cluster = cluster
        self.topic = worker.offset_storage_topic
        self.partitions = 0

    @classmethod
    def of(cls, worker: WorkerConfig, config: ConnectorSettings) -> KafkaOffsetBackingStore:
        """The worker's topic, or the connector's own with the worker's as a fallback (KIP-618)."""
        shared = cls(worker, config.name, config.source_alias)
        own = with_own_offsets(worker, config)
        return shared if own is worker else cls(own, config.name, config.source_alias, shared)

    def prepare(self, admin: Admin, client: ClientConfig | None = None) -> None:
        """Create the topic, or check the existing one.

        `admin` is connected to the cluster of `client`; the worker's own may be another.
        """
        if self._shared is not None:
            self._shared.prepare(admin, client)
        worker = self._worker
        wanted = offsets_topic(worker)
        if client is None or client.is_same_cluster(worker.client):
            self.partitions = bring_up_storage_topic(admin, wanted)
        else:
            self.partitions = prepare_storage_topic(worker.client, wanted)

    def prepare_alone(self) -> None:
        """`prepare` over a connection of its own, for a worker that only runs tasks."""
        if self._shared is not None:
            self._shared.prepare_alone()
        self.partitions = prepare_storage_topic(self._worker.client, offsets_topic(self._worker))

    def load_existing(
        self, admin: Admin, client: ClientConfig | None = None
    ) -> dict[TopicPartition, StoredPosition]:
        """What `load` finds, but before `prepare`: a missing topic is not created."""
        worker = self._worker
        if client is None or client.is_same_cluster(worker.client):
            found = admin.view_topic(self.topic)
        else:
            with closing(Admin(worker.client, ADMIN_TIMEOUT_MS)) as own:
                found = own.view_topic(self.topic)
        before = self._shared.load_existing(admin, client) if self._shared is not None else {}
        if found is None:
            return before
        self.partitions = found.partitions
        return self._over(before)

    def load(self) -> dict[TopicPartition, StoredPosition]:
        """The position of every partition that has one."""
        return self._over(self._shared.load() if self._shared is not None else {})

    def _over(
        self, found: dict[TopicPartition, StoredPosition]
    ) -> dict[TopicPartition, StoredPosition]:
        """The positions in this topic, and for other partitions those `found` in the shared one."""
        try:
            records = read_topic(self._worker.client, self.topic, self.partitions, READ_SECONDS)
        except DeniedError as error:
            raise KafkaError(
                describe_error(error, consequence_without(Feature.COPY, ResourceKind.OFFSETS, READ))
            ) from error
        for record in records:
            key = decode_offset_key(record.key)
            if key is None or (key.connector, key.cluster) != (self._connector, self._cluster):
                continue
            tp = TopicPartition(key.topic, key.partition)
            position = _decode(record)
            if position is None:
                found.pop(tp, None)
            else:
                found[tp] = position
        return found


def _decode(record: Record) -> StoredPosition | None:
    provenance = decode_provenance(record.headers)
    # Only our tasks write -1: start at offset 0, for example of a log that was empty with
    # auto.offset.reset=latest. Connect and MirrorMaker 2 read it as "no position".
    lowest = 0 if provenance is None else START
    last_offset = decode_offset_value(record.value, lowest)
    if last_offset is None:
        return None
    return StoredPosition(last_offset + 1, provenance or Provenance())
