"""The checkpoint task of one flow: where its consumer groups continue on the target.

Runs on: worker, one thread for all tasks of a connector, because each of them would read the whole
offset map. Mirrors: org.apache.kafka.connect.mirror.MirrorCheckpointTask (4.4).

    groups of the source --committed offsets--> translate --> checkpoints topic --> target's groups
                                                   ^                        sync.group.offsets
                                     offset map, offset syncs
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from sparkmirror.config.connector_spec import ConnectorSpec
from sparkmirror.config.mirror_configs import CheckpointConfig
from sparkmirror.connect.checkpoint.checkpoint_latencies import CheckpointLatencies
from sparkmirror.connect.checkpoint.checkpoint_places import CheckpointPlaces
from sparkmirror.connect.checkpoint.checkpoint_topic import CheckpointTopic
from sparkmirror.connect.checkpoint.group_discovery import GroupDiscovery
from sparkmirror.connect.checkpoint.group_offset_sync import GroupOffsetSync, SyncReport
from sparkmirror.connect.checkpoint.group_preview import plan_checkpoints
from sparkmirror.connect.checkpoint.offset_translator import OffsetTranslator, make_translator
from sparkmirror.connect.checkpoint.skipped_partitions import SkippedPartitions
from sparkmirror.connect.checkpoint.topic_creation import create_checkpoints_topic
from sparkmirror.connect.checkpoint.translation_reader import READ_SECONDS, TranslationReader
from sparkmirror.connect.connector import TaskConfigs
from sparkmirror.connect.forwarded_admin import forwarded
from sparkmirror.connect.scheduled_work import ScheduledWork
from sparkmirror.connect.scheduler import Scheduler
from sparkmirror.connect.storage.log_reader import LogReader
from sparkmirror.connect.storage.offset_backing_store import KafkaOffsetBackingStore
from sparkmirror.connect.storage.record_producer import RecordProducer
from sparkmirror.connect.storage.source_offsets import SourceOffsets, own_writer
from sparkmirror.connect.storage.topic_admin import (
    about_missing,
    noting_refusal,
)
from sparkmirror.connect.warn_once import WarnOnce
from sparkmirror.errors import KafkaError, MirrorError, describe_error
from sparkmirror.mirror.checkpoints import CheckpointRules
from sparkmirror.mirror.filters import make_topic_filter
from sparkmirror.mirror.permissions import (
    NO_TRACE,
    READ,
    WRITE,
    Feature,
    ResourceKind,
    consequence_without,
)
from sparkmirror.mirror.policy import flow_policy
from sparkmirror.mirror.positions.own_offsets import with_own_offsets
from sparkmirror.mirror.task_configs import assigned_groups
from sparkmirror.spark.link.lease import Lender, for_ever, is_over
from sparkmirror.types import FlowName
from sparkmirror.wire.admin.admin import open_admins
from sparkmirror.wire.admin.group_admin import GroupAdmin

log = logging.getLogger(__name__)

EARLIER = consequence_without(Feature.CHECKPOINTS, ResourceKind.CHECKPOINTS, READ)
PREPARE_SECONDS = 10.0  # between attempts to create and to read the topics
PRUNE_SECONDS = 3600.0  # sources delete whole segments, a few times a day
TOMBSTONES = 1000
# No new checkpoints are made while this many batches wait for the target.
MOST_WAITING = 100


class MirrorCheckpointTask(ScheduledWork):
    """Follows groups of one flow while it runs; a `TaskWork`. Its rounds run on one thread.

    `partner_problem` returns how the flow's source connector names topics differently, "" if it
    does not. `lease`: nothing is written when it is over.
    """

    def __init__(
        self,
        spec: ConnectorSpec[CheckpointConfig],
        *,
        partner_problem: Callable[[], str] = lambda: "",
        groups: tuple[str, ...] = (),
        lease: Lender = for_ever,
    ) -> None:
        config = spec.config
        self._config = config
        self._flow = spec.flow
        self._policy = flow_policy(config)
        self._rules = CheckpointRules(
            self._policy, make_topic_filter(config), config.source_alias, config.target_alias
        )
        self._places = CheckpointPlaces(self._flow, config, self._rules, partner_problem)
        self._assigned = groups
        self._groups = GroupDiscovery(self._flow, config, self._rules.topic_filter)
        self.name = f"{spec.flow}|{spec.name}"
        self._scheduler = Scheduler(self.name)
        self.topic = self._policy.checkpoints_topic(config.source_alias)
        worker = with_own_offsets(spec.worker, config)
        without = {
            self.topic: consequence_without(Feature.CHECKPOINTS, ResourceKind.CHECKPOINTS, WRITE),
            worker.offset_storage_topic: NO_TRACE,
        }
        self._lease = lease
        self._writer = RecordProducer(config.producer, self.name, without, lease)
        self._complaints = WarnOnce(self.name)
        self._store = KafkaOffsetBackingStore.of(spec.worker, config)
        self._flush_seconds = spec.worker.offset_flush_interval_ms / 1000
        own = own_writer(worker, config.producer, self.name, lease)
        self._offsets = SourceOffsets(self._writer, self._store.topic, own)
        self._log = CheckpointTopic(self.topic, config.name, self._writer, self._offsets)
        self._admins: list[GroupAdmin] = []
        self._loading: LogReader | None = None
        self._translator: OffsetTranslator | None = None
        self._has_offsets_topic = False
        self.refused = ""
        self._stopping = threading.Event()
        self._reader = TranslationReader(self._flow, self._stopping.wait)
        # Of the last round; None before the first.
        self.last_sync: SyncReport | None = None
        self._skipped = SkippedPartitions(self._flow)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that are followed."""
        return self._assigned

    @property
    def last_error(self) -> str:
        """Why checkpoints cannot be made or stored, or are imprecise."""
        return self._scheduler.last_error or self._writer.last_error or self._reader.error

    @property
    def blocked(self) -> str:
        """Why no checkpoint can be made; empty if only the network prevents it."""
        return self.refused or self._places.mismatch

    @property
    def made(self) -> int:
        """How many were made, stored or not."""
        return self._log.made

    @property
    def latencies(self) -> CheckpointLatencies:
        """How long they took."""
        return self._log.latencies

    @property
    def flow(self) -> FlowName:
        """The flow whose groups these are."""
        return self._flow

    # -- lifecycle ---------------------------------------------------------------------------------

    def connect(self) -> None:
        """Open the admin connections; changes nothing.

        Raises:
            KafkaError: which clusters cannot be reached, and why.
        """
        if not self._config.is_on:
            return
        clients = (self._config.source_client, self._config.target_client)
        open_admins(GroupAdmin, clients, self._config.admin_timeout_ms, self._admins)
        self._admins = [forwarded(admin, self._config) for admin in self._admins]
        self._source, self._target = self._admins
        self._group_sync = GroupOffsetSync(self._flow, self._target)

    def disconnect(self) -> None:
        """Close all connections. Enough if `start` was not called."""
        for each in (self._translator, *self._admins):
            if each is not None:
                each.close()

    def start(self) -> None:
        """Create and read the topics, then follow the groups; failures are retried."""
        if not self._config.is_on:
            return
        config, scheduler = self._config, self._scheduler
        self._writer.start()
        self._offsets.start()
        scheduler.repeat("preparing checkpoints", PREPARE_SECONDS, self._prepare)
        scheduler.repeat(
            "emitting checkpoints",
            config.emit_checkpoints_interval_seconds,
            self.emit,
            delayed=True,
        )
        scheduler.repeat(
            "syncing group offsets",
            config.sync_group_offsets_interval_seconds,
            self.sync,
            delayed=True,
            enabled=config.sync_group_offsets_enabled,
        )
        scheduler.repeat("storing offsets", self._flush_seconds, self._commit, delayed=True)
        scheduler.repeat("pruning the offset map", PRUNE_SECONDS, self.prune, delayed=True)
        scheduler.start()

    def reconfigure(self, configs: TaskConfigs) -> None:
        """Follow the groups of all these tasks."""
        self._assigned = assigned_groups(configs.values())

    def stop(self) -> None:
        """Start nothing new, and cancel reads in progress."""
        self._stopping.set()
        self._scheduler.stop()
        for reader in (self._loading, self._translator):
            if reader is not None:
                reader.cancel()

    def _finish(self, deadline: float) -> bool:
        return not self._config.is_on or super()._finish(deadline)

    # -- getting ready -----------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Create the topic and read it; then it is known how old a sync may be."""
        if self._log.has_lost_some:
            log.warning("[%s] reads '%s' again: some were refused", self._flow, self._log.topic)
            self._load()
        if self._translator is not None:
            self._restore()
            return
        with noting_refusal(self):
            self._create_topic()
            self._prepare_offsets()
        is_loaded = self._try_to_load()
        self._translator = make_translator(
            self._config, self._policy, must_read_to_end=not is_loaded
        )

    def _create_topic(self) -> None:
        is_missing = self._log.topic in self._writer.missing
        create_checkpoints_topic(self._target, self._config, is_missing=is_missing)

    def _restore(self) -> None:
        """Recreate deleted topics; a new checkpoints topic gets all checkpoints again."""
        missing = self._writer.missing
        self._complaints.report(about_missing(missing, self._config.target_alias))
        if self._log.topic in missing:
            with noting_refusal(self):
                self._create_topic()
            self._log.forget()
        if self._store.topic in missing:
            self._prepare_offsets()

    def _prepare_offsets(self) -> None:
        self._store.prepare(self._target, self._config.target_client)
        self._has_offsets_topic = True

    def _try_to_load(self) -> bool:
        try:
            self._load()
        except MirrorError as error:
            self._log.forget()
            log.warning(
                "[%s] earlier checkpoints cannot be read, which may degrade offset translation: %s",
                self._flow,
                describe_error(error, if_denied=EARLIER),
            )
            return False
        return True

    def _load(self) -> None:
        follower = LogReader(self._config.checkpoints_reader, self._log.topic)
        self._loading = follower
        try:
            self._log.load(follower.catch_up(READ_SECONDS))
        finally:
            self._loading = None
            follower.close()

    # -- rounds ------------------------------------------------------------------------------------

    def emit(self) -> None:
        """Emit checkpoints for offsets that the groups have committed since the last round."""
        translator = self._translator
        if translator is None or self._log.has_lost_some or not self.groups:
            return
        if self._places.are_elsewhere():
            return
        if self._writer.waiting >= MOST_WAITING:
            raise KafkaError(f"earlier checkpoints are not stored yet: {self._writer.last_error}")
        now_ms = time.time_ns() // 1_000_000
        committed, _ = self._groups.committed(self._source, self.groups)
        # The map is read after the commits, so that it has the records that groups have just read.
        self._reader.read(translator, committed)
        # The ends are read after the map, so that they cover every record in it.
        places = self._places.look(self._target, self._rules.partitions_on_target(committed))
        emit, skipped = plan_checkpoints(
            self._rules, committed, translator.translate, self._log.of_group, places
        )
        self._log.append(emit, now_ms)
        self._places.judge(skipped.values())
        self._skipped.report(skipped)
        level = logging.INFO if emit else logging.DEBUG
        groups = len({checkpoint.group for checkpoint in emit})
        log.log(level, "[%s] %d checkpoints of %d groups", self._flow, len(emit), groups)

    def sync(self) -> SyncReport:
        """Write the offsets of the last checkpoints to the target's groups (KIP-545)."""
        report = self._group_sync.run(self.groups, self._log.by_group(), self._must_not_write)
        self.last_sync = report
        if report.written:
            reasons = ", ".join(f"{n} {why.name.lower()}" for why, n in report.counts.items())
            log.info(
                "[%s] offsets of %d groups written on the target; not written: %s",
                self._flow,
                len(report.written),
                reasons or "none",
            )
        return report

    def prune(self) -> None:
        """Delete the entries of the offset map for records that the source has deleted."""
        translator = self._translator
        if translator is None or not translator.mapped:
            return
        found = self._source.start_offsets(translator.mapped)
        starts = {tp: start for tp, start in found.items() if isinstance(start, int)}
        keys = translator.prune(starts)
        now_ms = time.time_ns() // 1_000_000
        for at in range(0, len(keys), TOMBSTONES):
            rows = [(key, None, now_ms) for key in keys[at : at + TOMBSTONES]]
            self._writer.send(translator.map_topic, 0, rows)

    def _must_not_write(self) -> bool:
        return self._stopping.is_set() or is_over(self._lease)

    def _commit(self) -> None:
        if self._has_offsets_topic:
            self._offsets.store(self._store.partitions)
