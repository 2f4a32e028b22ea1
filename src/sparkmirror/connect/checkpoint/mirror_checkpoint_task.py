"""The checkpoint task of one flow: where its consumer groups go on at the target.

Runs on: worker, one thread per flow, for all tasks of its connector: each would read the offset map
as a whole. Mirrors: org.apache.kafka.connect.mirror.MirrorCheckpointTask (4.4).

    groups of the source --committed offsets--> translate --> checkpoints topic --> target's groups
                                                   ^                        sync.group.offsets
                                     offset map, offset syncs
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from sparkmirror.config.connector_spec import ConnectorSpec
from sparkmirror.config.mirror_configs import CheckpointConfig
from sparkmirror.connect.checkpoint.checkpoint_latencies import CheckpointLatencies
from sparkmirror.connect.checkpoint.checkpoint_places import CheckpointPlaces
from sparkmirror.connect.checkpoint.checkpoint_topic import CheckpointTopic
from sparkmirror.connect.checkpoint.group_discovery import GroupDiscovery
from sparkmirror.connect.checkpoint.group_offset_sync import GroupOffsetSync, SyncReport
from sparkmirror.connect.checkpoint.offset_translator import OffsetTranslator, make_translator
from sparkmirror.connect.checkpoint.skipped_partitions import SkippedPartitions
from sparkmirror.connect.checkpoint.topic_creation import create_checkpoints_topic
from sparkmirror.connect.checkpoint.translation_reader import READ_SECONDS, TranslationReader
from sparkmirror.connect.connector import TaskConfigs, TaskReport
from sparkmirror.connect.forwarded_admin import forwarded
from sparkmirror.connect.scheduler import Scheduler
from sparkmirror.connect.storage.log_reader import LogReader
from sparkmirror.connect.storage.offset_backing_store import KafkaOffsetBackingStore
from sparkmirror.connect.storage.record_producer import RecordProducer
from sparkmirror.connect.storage.source_offsets import SourceOffsets, own_writer
from sparkmirror.connect.storage.topic_admin import (
    about_missing,
    noting_refusal,
)
from sparkmirror.connect.task_reports import WrittenTopic, report_of
from sparkmirror.connect.warn_once import WarnOnce
from sparkmirror.errors import KafkaError, MirrorError, describe_error
from sparkmirror.mirror.checkpoints import CheckpointRules, NoCheckpoint
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
from sparkmirror.mirror.records import Checkpoint
from sparkmirror.mirror.task_configs import assigned_groups
from sparkmirror.spark.link.lease import Lender, for_ever, is_over
from sparkmirror.types import FlowName, TopicPartition
from sparkmirror.wire.admin.admin import open_admins
from sparkmirror.wire.admin.group_admin import GroupAdmin

log = logging.getLogger(__name__)

EARLIER = consequence_without(Feature.CHECKPOINTS, ResourceKind.CHECKPOINTS, READ)
PREPARE_SECONDS = 10.0  # between attempts to create and to read the topics
PRUNE_SECONDS = 3600.0  # sources delete whole segments, a few times a day
TOMBSTONES = 1000
# Batches that may wait for the target before no further checkpoints are made.
MOST_WAITING = 100


class MirrorCheckpointTask:
    """Follows groups of one flow, as long as it runs; a `TaskWork`. Its rounds run on one thread.

    `partner_problem` says how the flow's source connector names its topics otherwise. `lease`:
    nothing is written when it is over.
    """

    runner = None
    # All of it is in this process.
    is_released = True

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
        self._topics = WrittenTopic()
        self._groups = GroupDiscovery(self._flow, config, self._rules.topic_filter)
        self.name = f"{spec.flow}|{spec.name}"
        self._ticker = Scheduler(self.name)
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
        """Those that are followed."""
        return self._assigned

    @property
    def last_error(self) -> str:
        """What keeps checkpoints from being made or stored, or makes them coarse."""
        return self._ticker.last_error or self._writer.last_error or self._reader.error

    @property
    def blocked(self) -> str:
        """Why no checkpoint can be made; empty while nothing but the network is in the way."""
        return self.refused or self._places.mismatch

    @property
    def records(self) -> int:
        """How many checkpoints were stored since the start."""
        return self._offsets.noted

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
        """Whose groups these are."""
        return self._flow

    # -- life --------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Open the admin connections; nothing is changed anywhere.

        Raises:
            KafkaError: says of both clusters, if need be, why they cannot be reached.
        """
        if not self._config.is_on:
            return
        clients = (self._config.source_client, self._config.target_client)
        open_admins(GroupAdmin, clients, self._config.admin_timeout_ms, self._admins)
        self._admins = [forwarded(admin, self._config) for admin in self._admins]
        self._source, self._target = self._admins
        self._group_sync = GroupOffsetSync(self._flow, self._target)

    def disconnect(self) -> None:
        """Close all connections; the only step that is needed when nothing was started."""
        for each in (self._translator, *self._admins):
            if each is not None:
                each.close()

    def start(self) -> None:
        """Create and read the topics, then follow the groups; what fails is tried again."""
        if not self._config.is_on:
            return
        config, ticker = self._config, self._ticker
        self._writer.start()
        self._offsets.start()
        ticker.repeat("preparing checkpoints", PREPARE_SECONDS, self._prepare)
        ticker.repeat(
            "emitting checkpoints",
            config.emit_checkpoints_interval_seconds,
            self.emit,
            delayed=True,
        )
        ticker.repeat(
            "syncing group offsets",
            config.sync_group_offsets_interval_seconds,
            self.sync,
            delayed=True,
            enabled=config.sync_group_offsets_enabled,
        )
        ticker.repeat("storing offsets", self._flush_seconds, self._commit, delayed=True)
        ticker.repeat("pruning the offset map", PRUNE_SECONDS, self.prune, delayed=True)
        ticker.start()

    def look(self) -> None:
        """All periodic work is on the thread."""

    def reconfigure(self, configs: TaskConfigs) -> None:
        """Follow the groups of all these tasks."""
        self._assigned = assigned_groups(configs.values())

    def restart(self) -> bool:
        """It begins again with another life."""
        return False

    def report(self) -> TaskReport:
        """A task that cannot do its work has failed, until it can."""
        return report_of(self.blocked)

    def take_topics(self) -> set[str]:
        return self._topics.take(self.topic, self.records)

    def stop(self) -> None:
        """Start nothing more, and let reading that is under way fail."""
        self._stopping.set()
        self._ticker.stop()
        for reader in (self._loading, self._translator):
            if reader is not None:
                reader.cancel()

    def join(self, seconds: float) -> bool:
        """Wait until all that was emitted is stored; tells whether it is."""
        deadline = time.monotonic() + seconds
        has_ended = self._ticker.join(seconds)
        is_stored = has_ended and self._finish(deadline)
        self._writer.close()
        self._offsets.close()
        if has_ended:  # whoever closes under a thread's feet makes it fail in strange ways
            self.disconnect()
        return is_stored

    def _finish(self, deadline: float) -> bool:
        if not self._config.is_on:
            return True
        if not self._writer.flush(max(0.0, deadline - time.monotonic())):
            return False
        self._commit()
        return self._offsets.flush(max(0.0, deadline - time.monotonic()))

    # -- getting ready -----------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Create the topic and read it; then the syncs know how old they may be."""
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
        """Create what somebody deleted; all checkpoints are made once more for the new topic."""
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
        """Make checkpoints of what the groups committed since the last time."""
        translator = self._translator
        if translator is None or self._log.has_lost_some or not self.groups:
            return
        if self._places.are_elsewhere():
            return
        if self._writer.waiting >= MOST_WAITING:
            raise KafkaError(f"earlier checkpoints are not stored yet: {self._writer.last_error}")
        now_ms = time.time_ns() // 1_000_000
        committed, _ = self._groups.committed(self._source, self.groups)
        # Afterwards, so that the map knows of the records that groups have just read.
        self._reader.read(translator, committed)
        # And then, so that nothing that the map knows of lies beyond these ends.
        places = self._places.look(self._target, self._rules.partitions_on_target(committed))
        emit: list[Checkpoint] = []
        skipped: dict[str, Mapping[TopicPartition, NoCheckpoint]] = {}
        for group, offsets in committed.items():
            last = self._log.of_group(group)
            plan = self._rules.plan(group, offsets, translator.translate, last, places)
            emit += plan.emit
            skipped[group] = plan.skipped
        self._log.append(emit, now_ms)
        self._places.judge(skipped.values())
        self._skipped.say(skipped)
        level = logging.INFO if emit else logging.DEBUG
        groups = len({checkpoint.group for checkpoint in emit})
        log.log(level, "[%s] %d checkpoints of %d groups", self._flow, len(emit), groups)

    def sync(self) -> SyncReport:
        """Write the offsets of the last checkpoints to the target's groups."""
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
        """Delete what the offset map says of records that the source has deleted."""
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
