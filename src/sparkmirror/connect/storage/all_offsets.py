"""Offsets as the REST API shows and changes them, whichever topic a connector keeps them in.

Runs on: worker, blocking, on whichever thread asks. A connector with `offsets.storage.topic` has a
topic of its own; what that does not say is in the worker's (`mirror/positions/own_offsets`).
Mirrors: org.apache.kafka.connect.storage.ConnectorOffsetBackingStore (4.3), but for one thing:
positions are written to the connector's own topic only.
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
"""The connector of that name as it is configured now; None: there is none."""


class AllOffsets:
    """The worker's topic, and those that connectors have for themselves."""

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
            KafkaError: it was not written, or not all of it.
        """
        own, shared = self._own(connector, create=True), self.prepare()
        if own is None:
            shared.write(connector, rows)
            return
        # Deletions in the worker's topic first: what is gone from the connector's own only would
        # come back from there, for it is read where the other says nothing.
        gone = [(partition, offset) for partition, offset in rows if offset is None]
        if gone:
            shared.write(connector, gone)
        own.write(connector, rows)

    def _own(self, connector: str, *, create: bool = False) -> ConnectorOffsets | None:
        """The connector's own topic; None: it has none, or it is not there and not to be made."""
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
