"""Writes the heartbeats of one pair of clusters to its target.

Runs on: worker. Mirrors: org.apache.kafka.connect.mirror.MirrorHeartbeatTask.
A heartbeat that another flow copies onwards shows that this flow is alive and how old its data is.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from functools import partial

from sparkmirror.config.connector_spec import ConnectorSpec
from sparkmirror.config.keys.connector_keys import HEARTBEAT_KEYS
from sparkmirror.config.mirror_configs import HeartbeatConfig
from sparkmirror.connect.connector import TaskConfigs
from sparkmirror.connect.forwarded_admin import forwarded
from sparkmirror.connect.scheduled_work import ScheduledWork
from sparkmirror.connect.scheduler import Scheduler
from sparkmirror.connect.storage.offset_backing_store import KafkaOffsetBackingStore
from sparkmirror.connect.storage.record_producer import RecordProducer
from sparkmirror.connect.storage.source_offsets import SourceOffsets, own_writer
from sparkmirror.connect.storage.topic_admin import (
    about_missing,
    ensure_internal_topic,
    noting_refusal,
)
from sparkmirror.connect.warn_once import WarnOnce
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.permissions import (
    CREATE,
    NO_TRACE,
    WRITE,
    Feature,
    ResourceKind,
    consequence_without,
)
from sparkmirror.mirror.policy import flow_policy
from sparkmirror.mirror.positions.own_offsets import with_own_offsets
from sparkmirror.mirror.records import Heartbeat, encode_heartbeat_offset_key
from sparkmirror.spark.link.lease import Lender, for_ever
from sparkmirror.wire.admin.admin import Admin

REPLICAS_KEY = HEARTBEAT_KEYS["heartbeats.topic.replication.factor"].name
# How often to retry the creation of the topics.
CREATE_SECONDS = 10.0
# No more heartbeats than this wait for the target: when it is back, old ones are of little use.
MOST_WAITING = 60


def emits(config: HeartbeatConfig) -> bool:
    """Whether the connector emits heartbeats."""
    return config.emit_heartbeats_enabled and config.emit_heartbeats_interval_seconds >= 0


def create_heartbeats_topic(
    target: Admin, config: HeartbeatConfig, topic: str, *, is_missing: bool
) -> None:
    """Create it, or check the one that is there; `is_missing`: brokers say that it is not.

    Raises:
        KafkaError: why it cannot be created.
    """
    ensure_internal_topic(
        target,
        topic,
        config.heartbeats_topic_replication_factor,
        REPLICAS_KEY,
        consequence_without(Feature.HEARTBEATS, ResourceKind.HEARTBEATS, CREATE),
        is_chosen=REPLICAS_KEY in config.settings,
        is_missing=is_missing,
    )


class MirrorHeartbeatTask(ScheduledWork):
    """Emits a heartbeat at every interval while it runs; a `TaskWork`.

    `lease`: nothing is written when it is over.
    """

    def __init__(self, spec: ConnectorSpec[HeartbeatConfig], lease: Lender = for_ever) -> None:
        config = spec.config
        self._config = config
        self.name = f"{spec.flow}|{spec.name}"
        policy = flow_policy(config)
        self.topic = policy.heartbeats_topic()
        self._store = KafkaOffsetBackingStore.of(spec.worker, config)
        self._flush_seconds = spec.worker.offset_flush_interval_ms / 1000
        self._offset_key = encode_heartbeat_offset_key(
            config.name, config.source_alias, config.target_alias
        )
        self._admin: Admin | None = None
        self._scheduler = Scheduler(self.name)
        without = {
            self.topic: consequence_without(Feature.HEARTBEATS, ResourceKind.HEARTBEATS, WRITE),
            self._store.topic: NO_TRACE,
        }
        self._writer = RecordProducer(config.producer, self.name, without, lease)
        own = own_writer(with_own_offsets(spec.worker, config), config.producer, self.name, lease)
        self._offsets = SourceOffsets(self._writer, self._store.topic, own)
        self._complaints = WarnOnce(self.name)
        self._has_topic = False
        self._has_offsets_topic = False
        self.refused = ""
        self.flow = spec.flow
        self.made = 0
        # Of the newest heartbeat that the target has; until then, of the start.
        self._newest_ms = _now_ms()

    @property
    def is_enabled(self) -> bool:
        """Whether there is anything to do."""
        return emits(self._config)

    @property
    def last_error(self) -> str:
        """Why heartbeats cannot be stored; empty while they are."""
        return self._scheduler.last_error or self._writer.last_error

    @property
    def blocked(self) -> str:
        """Why no heartbeat can be emitted; empty if only the network prevents it."""
        return self.refused

    @property
    def age_seconds(self) -> float:
        """Since the newest heartbeat that the target has; without any: since the start."""
        return max(0.0, (_now_ms() - self._newest_ms) / 1000)

    def connect(self) -> None:
        """Open the admin connection to the target; changes nothing.

        Raises:
            KafkaError: why the target cannot be reached.
        """
        if self.is_enabled:
            self._admin = self._open_admin()

    def disconnect(self) -> None:
        """Close the admin connection: only creating topics needs it, and there are many pairs."""
        admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()

    def start(self) -> None:
        """Create the topics, then emit; failures are retried until `stop`."""
        if not self.is_enabled:
            return
        self._writer.start()
        self._offsets.start()
        interval = self._config.emit_heartbeats_interval_seconds
        self._scheduler.repeat("creating topics", CREATE_SECONDS, self._create_topics)
        self._scheduler.repeat("emitting a heartbeat", interval, self._emit, delayed=True)
        self._scheduler.repeat("storing offsets", self._flush_seconds, self._commit, delayed=True)
        self._scheduler.start()

    def reconfigure(self, configs: TaskConfigs) -> None:
        """Nothing to do: a single task has no share of anything."""

    def stop(self) -> None:
        """Stop emitting."""
        self._scheduler.stop()

    def _open_admin(self) -> Admin:
        config = self._config
        return forwarded(Admin(config.target_client, config.admin_timeout_ms), config)

    # -- jobs --------------------------------------------------------------------------------------

    def _create_topics(self) -> None:
        """At the start, and again after someone has deleted them."""
        config, missing = self._config, self._writer.missing
        self._complaints.report(about_missing(missing, config.target_alias))
        if self._has_offsets_topic and not missing:
            return
        with noting_refusal(self):
            self._bring_up_topics(missing)

    def _bring_up_topics(self, missing: Collection[str]) -> None:
        config = self._config
        if self._admin is None:
            self._admin = self._open_admin()
        create_heartbeats_topic(self._admin, config, self.topic, is_missing=self.topic in missing)
        self._has_topic = True
        self._store.prepare(self._admin, config.target_client)
        self._has_offsets_topic = True
        self.disconnect()

    def _emit(self) -> None:
        if not self._has_topic or self._writer.waiting >= MOST_WAITING:
            return
        config = self._config
        now_ms = _now_ms()
        beat = Heartbeat(config.source_alias, config.target_alias, now_ms)
        self._writer.send(
            self.topic,
            0,
            [(beat.encode_key(), beat.encode_value(), now_ms)],
            partial(self._on_stored, now_ms),
        )
        self.made += 1

    def _on_stored(self, emitted_ms: int, error: KafkaError | None) -> None:
        if error is None:
            self._newest_ms = max(self._newest_ms, emitted_ms)
            self._offsets.note(self._offset_key)

    def _commit(self) -> None:
        if self._has_offsets_topic:
            self._offsets.store(self._store.partitions)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
