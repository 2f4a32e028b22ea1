"""The internal topics that a source connector writes: offset syncs, and the offset map.

Runs on: worker. They are created before any task writes to them; copying never waits for them.
"""

from __future__ import annotations

from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.config.worker_config import WorkerConfig
from sparkmirror.connect.storage.topic_admin import InternalTopic, ensure_internal_topics
from sparkmirror.errors import KafkaError, TransportError
from sparkmirror.mirror.permissions import CREATE, Feature, ResourceKind, consequence_without
from sparkmirror.wire.admin.admin import Admin

OFFSET_SYNCS_REPLICAS = "offset-syncs.topic.replication.factor"
OFFSET_STORAGE_REPLICAS = "offset.storage.replication.factor"


class SourceTopics:
    """Creates the internal topics. `refused`: why one of them was rejected; empty if none was."""

    def __init__(
        self, config: SourceConfig, worker: WorkerConfig, syncs: str, offset_map: str
    ) -> None:
        """`offset_map` is empty if there is none."""
        self.refused = ""
        self._config = config
        self._worker = worker
        self._syncs = syncs
        self._offset_map = offset_map

    def create(self, source: Admin, target: Admin) -> None:
        """Create missing topics; KafkaError names those that were rejected, and why."""
        if not self._config.emit_offset_syncs_enabled:
            return
        try:
            ensure_internal_topics(self._wanted(source, target))
        except TransportError:  # not a rejection; retried
            raise
        except KafkaError as error:
            self.refused = str(error)
            raise
        self.refused = ""

    def _wanted(self, source: Admin, target: Admin) -> list[InternalTopic]:
        on_source = self._config.offset_syncs_location == "source"
        syncs = InternalTopic(
            source if on_source else target,
            self._syncs,
            self._config.offset_syncs_replication_factor,
            OFFSET_SYNCS_REPLICAS,
            consequence_without(Feature.COPY, ResourceKind.SYNCS, CREATE),
            OFFSET_SYNCS_REPLICAS in self._config.settings,
        )
        offset_map = InternalTopic(
            target,
            self._offset_map,
            self._worker.offset_storage_replication_factor,
            OFFSET_STORAGE_REPLICAS,
            consequence_without(Feature.COPY, ResourceKind.OFFSET_MAP, CREATE),
        )
        return [topic for topic in (syncs, offset_map) if topic.name]
