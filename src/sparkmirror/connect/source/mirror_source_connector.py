"""The source connector of one flow: its topics, their remote topics, and which task copies what.

Runs on: worker, the leader, one thread per flow. One round is `look`; the thread repeats it. After
each, the connector's context writes the new task configurations.
Mirrors: org.apache.kafka.connect.mirror.MirrorSourceConnector (KIP-382).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence, Set

from sparkmirror.config.connector_spec import ConnectorSpec
from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.connect.connector import ConnectorContext
from sparkmirror.connect.denied_topics import DeniedTopics
from sparkmirror.connect.entities import DEGRADED
from sparkmirror.connect.forwarded_admin import forwarded
from sparkmirror.connect.naming import some_names
from sparkmirror.connect.scheduler import Job, Scheduler
from sparkmirror.connect.source.accepted_settings import AcceptedSettings
from sparkmirror.connect.source.acl_sync import AclSync
from sparkmirror.connect.source.cycles import Cycles
from sparkmirror.connect.source.missing_topics import MissingTopics
from sparkmirror.connect.source.remote_topics import RemoteTopics
from sparkmirror.connect.source.source_topics import SourceTopics
from sparkmirror.connect.source.stale_positions import StalePositions
from sparkmirror.connect.source.start_report import StartReport
from sparkmirror.connect.source.topic_config_sync import ConfigSync
from sparkmirror.connect.storage.offset_backing_store import KafkaOffsetBackingStore
from sparkmirror.errors import KafkaError, MirrorError
from sparkmirror.events import EventKind, event
from sparkmirror.mirror.assignment import assign_partitions, extend_assignment
from sparkmirror.mirror.config_sync import topics_to_sync
from sparkmirror.mirror.filters import make_config_property_filter, make_topic_filter
from sparkmirror.mirror.policy import flow_offset_syncs_topic, flow_policy
from sparkmirror.mirror.task_configs import TaskSettings, assigned_partitions, source_tasks
from sparkmirror.mirror.topics import should_replicate_topic
from sparkmirror.mirror.translation.offset_map_chunks import offset_map_topic
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.admin import Admin, TopicView, open_admins

log = logging.getLogger(__name__)

# The shortest interval between refreshes that tasks request because a target topic is missing.
SOONEST_REFRESH_SECONDS = 5.0
# The shortest interval between attempts to create internal topics that were rejected or deleted.
SOONEST_CREATE_SECONDS = 10.0
# How long a user's request waits for a refresh of both clusters.
REFRESH_SECONDS = 55.0
# How long to wait for the heartbeats topic, which its connector is about to create.
HEARTBEATS_SECONDS = 5.0
HEARTBEATS_LOOK_SECONDS = 0.2
# How long to wait for an admin request in progress when the connector stops.
LAST_REQUEST_SECONDS = 0.5


class MirrorSourceConnector:
    """Discovers topics, creates their remote topics, and assigns their partitions to tasks."""

    task_class = "MirrorSourceTask"

    def __init__(
        self, spec: ConnectorSpec[SourceConfig], *, awaits_heartbeats: bool = False
    ) -> None:
        """`awaits_heartbeats`: another connector of this process is about to create the source's
        heartbeats topic. If it were found later, it would be copied only after the next refresh.
        """
        self.spec = spec
        self._awaits_heartbeats = awaits_heartbeats
        self.config = spec.config
        self._admins: list[Admin] = []
        producer, target = self.config.producer.client, self.config.target_client
        self._is_elsewhere = not producer.is_same_cluster(target)
        self._policy = flow_policy(self.config)
        self._filter = make_topic_filter(self.config)
        self._cycles = Cycles(self.config, self._filter, self._policy)
        self._property_filter = make_config_property_filter(self.config)
        self._store = KafkaOffsetBackingStore.of(spec.worker, self.config)
        self._assignment: list[list[TopicPartition]] = []
        # Whether the assignment is the result of a round.
        self._is_assigned = False
        # Partitions whose start positions have been logged.
        self._reported: set[TopicPartition] = set()
        self._stale = StalePositions()
        self._missing_topics = MissingTopics()
        # By source topic, its remote topic, as of the last refresh.
        self._remotes: dict[str, str] = {}
        self._notice = spec.elsewhere
        self._context: ConnectorContext | None = None
        self._look_job: Job | None = None
        self._lock = threading.Lock()
        self._misses_topics = threading.Event()
        self._scheduler = Scheduler(str(spec.flow))
        self._topics = SourceTopics(
            self.config, spec.worker, self.offset_syncs_topic, self.offset_map_topic
        )

    # -- lifecycle ---------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        """Whether the admin connections are open."""
        return bool(self._admins)

    def connect(self) -> None:
        """Open the admin connections; changes nothing.

        Raises:
            KafkaError: which clusters cannot be reached, and why.
        """
        if not self.config.enabled or self.is_connected:
            return
        clients = [self.config.source_client, self.config.target_client]
        if self._is_elsewhere:
            clients.append(self.config.producer.client)
        open_admins(Admin, clients, self.config.admin_timeout_ms, self._admins)
        self._admins = [forwarded(admin, self.config) for admin in self._admins]
        self._use(*self._admins)

    def disconnect(self) -> None:
        """Close what `connect` opened. Enough if `start` was not called."""
        for admin in self._admins:
            admin.close()

    def _use(self, source: Admin, target: Admin, records: Admin | None = None) -> None:
        """`records`: the cluster that records go to, if that is not the target."""
        self._source, self._target, self._records = source, target, records
        name, policy, properties = self.spec.flow, self._policy, self._property_filter
        accepted = AcceptedSettings(name, self.config.target_alias)
        self._remote_topics = RemoteTopics(
            self.config, policy, properties, accepted, source=source, target=target
        )
        self._config_sync = ConfigSync(name, properties, source, target, accepted)
        self._acl_sync = AclSync(name, policy, self._wants, source, target)
        self._hidden = DeniedTopics(self.config, self._wants, source)
        self._start_report = StartReport(name, self.config, source)

    def start(self, context: ConnectorContext) -> None:
        """Create what is missing, then refresh periodically.

        Partitions stay with the tasks that have them, unless `tasks.max` has changed.
        """
        self._context = context
        if not self.config.enabled:
            self._is_assigned = True
            return
        stored = context.stored_tasks()
        self._stale.take_from(stored)
        with self._lock:
            self._assignment = [assigned_partitions(task) for task in stored]
        self._store.prepare(self._target, self.config.target_client)
        self._schedule_internal_topics()
        self._await_heartbeats()
        self.look()
        self._schedule()
        self._scheduler.start()

    def _await_heartbeats(self) -> None:
        topic = self._policy.heartbeats_topic()
        until = time.monotonic() + (HEARTBEATS_SECONDS if self._awaits_heartbeats else 0.0)
        while time.monotonic() < until and self._source.view_topic(topic) is None:
            if self._scheduler.wait_for_stop(HEARTBEATS_LOOK_SECONDS):
                return

    def stop(self) -> None:
        """Stop refreshing."""
        self._scheduler.stop()

    def join(self, seconds: float) -> bool:
        """Wait for an admin request in progress; return whether it ended."""
        has_ended = self._scheduler.join(min(seconds, LAST_REQUEST_SECONDS))
        self.disconnect()
        return has_ended

    @property
    def notice(self) -> str:
        """What does not work although tasks copy, else a notice about the settings."""
        degraded = self.degraded if self._context is not None and self.config.enabled else ""
        return f"{DEGRADED}{degraded}" if degraded else self._notice

    @property
    def last_error(self) -> str:
        """Why the last refresh or sync failed; empty if all of them succeeded."""
        return self._scheduler.last_error

    @property
    def assignment(self) -> list[list[TopicPartition]]:
        """The partitions of each task."""
        with self._lock:
            return [list(partitions) for partitions in self._assignment]

    def task_configs(self) -> list[TaskSettings] | None:
        """Which partitions each task copies."""
        return self._stale.add_to(source_tasks(self.assignment)) if self._is_assigned else None

    def refresh(self) -> str:
        """Look for changes now, on the connector's thread; return what failed."""
        if not self.config.enabled or self._look_job is None:
            return ""
        return self._scheduler.run_and_wait(self._look_job, REFRESH_SECONDS)

    def refresh_soon(self, topics: Sequence[str]) -> None:
        """A task cannot find target topics: they were deleted."""
        mark = event(EventKind.GONE, flow=self.spec.flow, cluster=self.config.target_alias)
        log.warning(
            "[%s] missing on the target: %s", self.spec.flow, some_names(topics), extra=mark
        )
        self._misses_topics.set()

    def _schedule(self) -> None:
        """Schedule the periodic jobs. They run one after the other, while the tasks copy."""
        config, scheduler = self.config, self._scheduler
        scheduler.repeat(
            "copying ACLs",
            config.sync_topic_acls_interval_seconds,
            self._acl_sync.sync,
            enabled=config.sync_topic_acls_enabled,
        )
        scheduler.repeat(
            "copying topic configs",
            config.sync_topic_configs_interval_seconds,
            lambda: self._config_sync.sync(self._remotes),
            enabled=config.sync_topic_configs_enabled,
        )
        self._look_job = scheduler.repeat(
            "refresh of topics",
            config.refresh_topics_interval_seconds,
            self.look,
            enabled=config.refresh_topics_enabled,
            delayed=True,
        )
        scheduler.repeat("refresh for a task", SOONEST_REFRESH_SECONDS, self._refresh_for_task)

    def _refresh_for_task(self) -> None:
        if not self._misses_topics.is_set():
            return
        self._misses_topics.clear()
        try:
            self.look()
        except MirrorError:
            self._misses_topics.set()
            raise

    # -- internal topics ---------------------------------------------------------------------------

    @property
    def offset_syncs_topic(self) -> str:
        """Name of the topic for offset syncs."""
        return flow_offset_syncs_topic(self._policy, self.config)

    @property
    def offset_map_topic(self) -> str:
        """Name of the offset map topic; empty if records go to a cluster other than the target."""
        return "" if self._is_elsewhere else offset_map_topic(self.config.source_alias)

    def _schedule_internal_topics(self) -> None:
        """Create internal topics now, before any task writes to them, and again with each refresh.

        Copying never waits for it. As in MirrorMaker 2 a rejection is only logged; here it is also
        retried.
        """
        job = self._scheduler.repeat(
            "creating internal topics",
            max(self.config.refresh_topics_interval_seconds, SOONEST_CREATE_SECONDS),
            self._create_internal_topics,
            enabled=self.config.refresh_topics_enabled,
        )
        self._scheduler.run_soon(job)
        self._scheduler.run_due()

    def _create_internal_topics(self) -> None:
        self._topics.create(self._source, self._target)

    @property
    def degraded(self) -> str:
        """What does not work although tasks copy; empty if everything works."""
        reasons = (self._remote_topics.refused, self._topics.refused)
        return "; ".join(reason for reason in reasons if reason)

    # -- one round ---------------------------------------------------------------------------------

    def look(self) -> None:
        """List both clusters' topics, create and grow remote topics, assign partitions to tasks."""
        source, copyable = self._bring_up()
        self._report_starts(copyable, source)
        self._assign(copyable)

    def rehearse(self, *admins: Admin) -> None:
        """All changes of a start, over connections that write nothing (`sparkmirror plan`).

        `admins` are of the source, the target, and the cluster of the records if that is another.

        Raises:
            KafkaError: a cluster cannot be asked.
        """
        self._use(*admins)
        try:
            self._create_internal_topics()
        except KafkaError as error:
            log.warning("[%s] %s", self.spec.flow, error)
        self._bring_up()
        if self.config.sync_topic_acls_enabled:
            self._acl_sync.sync()
        if self.config.sync_topic_configs_enabled:
            self._config_sync.sync(self._remotes)

    def _bring_up(self) -> tuple[Mapping[str, TopicView], list[TopicPartition]]:
        """Create and grow remote topics; the topics to copy, and what has its place there."""
        shown = self._missing_topics.complete(self._source.list_topics())
        if self._missing_topics.is_waiting:
            self._misses_topics.set()
        cycles = self._cycles.look(shown)
        source = {name: view for name, view in shown.items() if self._wants(name)}
        self._stale.note_ids(source, self._store.load)
        counts = {name: view.partitions for name, view in source.items()}
        gone = self._remotes.keys() - counts.keys()
        self._log_gone(gone - self._hidden.look(counts, gone, shown, cycles))
        target = self._remote_topics.bring_up(counts)
        if self._remote_topics.awaits_brokers:
            self._misses_topics.set()
        self._remotes = topics_to_sync(counts, target, self._policy, self.config.source_alias)
        self._ask_for_remotes()
        return source, self._copyable(counts, target)

    def refused_starts(self) -> list[str]:
        """Before `start`: partitions without a stored position to resume at; changes nothing."""
        return self._start_report.refused(self._wants, self._store, self._target)

    def _report_starts(
        self, wanted: Sequence[TopicPartition], topics: Mapping[str, TopicView]
    ) -> None:
        new = sorted(set(wanted) - self._reported)
        self._reported = set(wanted)
        if new:
            self._start_report.log_starts(new, topics, self._store.load, self._stale.hold)

    def _ask_for_remotes(self) -> None:
        """Make the brokers of another cluster that records go to auto-create the remote topics.

        As with Kafka Connect's producer, only the brokers create topics there.
        """
        if self._records is not None:
            self._records.ask_for_topics(self._remotes.values())

    def _log_gone(self, topics: Set[str]) -> None:
        if topics:
            log.warning(
                "[%s] not copied from '%s' any more: %s; deleted, or filtered out",
                self.spec.flow,
                self.config.source_alias,
                some_names(topics),
                extra=event(EventKind.GONE, flow=self.spec.flow, cluster=self.config.source_alias),
            )

    def _wants(self, topic: str) -> bool:
        return should_replicate_topic(
            topic,
            self._filter,
            self._policy,
            heartbeats_replication_enabled=self.config.heartbeats_replication_enabled,
            source_alias=self.config.source_alias,
            target_alias=self.config.target_alias,
        )

    def _copyable(
        self, source: Mapping[str, int], target: Mapping[str, int]
    ) -> list[TopicPartition]:
        """Every source partition that has a partition of the same number on the target."""
        return [
            TopicPartition(topic, at)
            for topic in sorted(source)
            for at in range(min(source[topic], target.get(self._remote(topic), 0)))
        ]

    def _remote(self, topic: str) -> str:
        return self._policy.format_remote_topic(self.config.source_alias, topic)

    # -- tasks -------------------------------------------------------------------------------------

    def _assign(self, wanted: Sequence[TopicPartition]) -> None:
        """Assign partitions to tasks; those already assigned stay where they are."""
        with self._lock:
            before = self._assignment
            if before:
                self._assignment = extend_assignment(before, wanted, self.config.tasks_max)
            else:
                self._assignment = assign_partitions(wanted, self.config.tasks_max)
            self._is_assigned = True
            has_changed = self._assignment != before
        if has_changed:
            counts = sum(map(len, self._assignment)), len(self._assignment)
            mark = event(EventKind.REBALANCED, flow=self.spec.flow, connector=self.spec.name)
            log.info("[%s] %d partitions in %d tasks", self.spec.flow, *counts, extra=mark)
        if self._context is not None:
            self._context.request_task_reconfiguration()
