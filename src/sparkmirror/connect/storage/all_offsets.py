"""Offsets as the REST API shows and changes them (KIP-875), in whichever topic they are.

Runs on: worker, blocking, on the caller's thread. A connector with `offsets.storage.topic` has a
topic of its own (KIP-618); what that lacks is in the worker's (`mirror/positions/own_offsets`).
Mirrors: org.apache.kafka.connect.storage.ConnectorOffsetBackingStore (4.3), except that positions
are written only to the connector's own topic.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import closing

from sparkmirror.config.connector_spec import AnySpec
from sparkmirror.config.worker_config import WorkerConfig
from sparkmirror.connect.entities import Json
from sparkmirror.connect.storage.storage_topics import (
    ADMIN_TIMEOUT_MS,
    offsets_topic,
    prepare_storage_topic,
)
from sparkmirror.connect.storage.stored_offsets import ConnectorOffsets, merge_rows
from sparkmirror.mirror.positions.own_offsets import with_own_offsets
from sparkmirror.wire.admin.admin import Admin

Parse = Callable[[str], AnySpec | None]
"""Returns the current settings of the connector with this name; None if there is none."""


class AllOffsets:
    """The worker's topic, and the connectors' own topics."""

    def __init__(self, worker: WorkerConfig, parse: Parse) -> None:
        self._worker = worker
        self._parse = parse
        self._preparing = threading.Lock()
        self._prepared: ConnectorOffsets | None = None

    def prepare(self) -> ConnectorOffsets:
        """Create or check the worker's topic, once.

        Raises:
            ConfigError: it cannot be used.
            KafkaError: the worker's cluster cannot be reached.
        """
        with self._preparing:
            if self._prepared is None:
                worker = self._worker
                partitions = prepare_storage_topic(worker.client, offsets_topic(worker))
                topic = worker.offset_storage_topic
                self._prepared = ConnectorOffsets(worker.client, topic, partitions)
            return self._prepared

    def list(self, connector: str) -> list[tuple[Json, Json]]:
        """All (partition, offset) that the connector has stored.

        Raises:
            KafkaError: a topic cannot be read.
        """
        own = self._own(connector)
        rows = self.prepare().rows(connector)
        return merge_rows(rows if own is None else [*rows, *own.rows(connector)])

    def write(self, connector: str, rows: Sequence[tuple[Json, Json | None]]) -> None:
        """Store an offset for each partition, or delete it (None).

        Raises:
            KafkaError: some or all offsets were not written.
        """
        own, shared = self._own(connector, create=True), self.prepare()
        if own is None:
            shared.write(connector, rows)
            return
        # Deletions go to the worker's topic first. It is read where the connector's own topic has
        # nothing, so an offset deleted only in the own topic would come back.
        gone = [(partition, offset) for partition, offset in rows if offset is None]
        if gone:
            shared.write(connector, gone)
        own.write(connector, rows)

    def _own(self, connector: str, *, create: bool = False) -> ConnectorOffsets | None:
        """The connector's own topic; None if it has none, or it is missing and not `create`."""
        parsed = self._parse(connector)
        worker = self._worker if parsed is None else with_own_offsets(self._worker, parsed.config)
        if worker is self._worker:
            return None
        partitions = _find(worker)
        if partitions is None and not create:
            return None
        if partitions is None:
            partitions = prepare_storage_topic(worker.client, offsets_topic(worker))
        return ConnectorOffsets(worker.client, worker.offset_storage_topic, partitions)


def _find(worker: WorkerConfig) -> int | None:
    with closing(Admin(worker.client, ADMIN_TIMEOUT_MS)) as admin:
        found = admin.view_topic(worker.offset_storage_topic)
    return None if found is None else found.partitions
