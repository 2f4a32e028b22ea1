"""The source connector of one flow: which topics, their remote twins, and which task copies what.

Runs on: worker, one thread per flow. One round is `refresh`; the thread repeats it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence, Set

from sparkmirror.connect.denied_topics import DeniedTopics
from sparkmirror.connect.forwarded_admin import forwarded
from sparkmirror.connect.naming import some_names
from sparkmirror.connect.scheduler import Scheduler
from sparkmirror.connect.source.accepted_settings import AcceptedSettings
from sparkmirror.connect.source.acl_sync import AclSync
from sparkmirror.connect.source.cycles import Cycles
from sparkmirror.connect.source.missing_topics import MissingTopics
from sparkmirror.connect.source.remote_topics import RemoteTopics
from sparkmirror.connect.source.source_flow import SourceFlow
from sparkmirror.connect.source.source_topics import SourceTopics
from sparkmirror.connect.source.stale_positions import StalePositions
from sparkmirror.connect.source.start_report import StartReport
from sparkmirror.connect.source.topic_config_sync import ConfigSync
from sparkmirror.connect.storage.offset_backing_store import KafkaOffsetBackingStore
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.assignment import assign_partitions, extend_assignment
from sparkmirror.mirror.config_sync import topics_to_sync
from sparkmirror.mirror.filters import make_config_property_filter, make_topic_filter
from sparkmirror.mirror.policy import flow_offset_syncs_topic, flow_policy
from sparkmirror.mirror.topics import should_replicate_topic
from sparkmirror.mirror.translation.offset_map_chunks import offset_map_topic
from sparkmirror.spark.link.files import SecretFileSender, clients_of_tasks
from sparkmirror.spark.link.frames import LinkMessage
from sparkmirror.spark.link.lease import Lender
from sparkmirror.spark.link.server import LinkServer
from sparkmirror.spark.session import SparkEngine
from sparkmirror.spark.task_config import AssignedPartition, encode_assigned, start_message
from sparkmirror.spark.task_runner import TaskRunner
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.admin import Admin, TopicView, open_admins

log = logging.getLogger(__name__)

# A task that misses its target topic asks for a refresh; not more often than this.
SOONEST_REFRESH_SECONDS = 5.0
# Internal topics that were refused, or deleted, are created again with a refresh; not more often.
SOONEST_CREATE_SECONDS = 10.0
# How soon tasks elsewhere have a certificate, keytab or token that was renewed.
FILES_SECONDS = 10.0
# For an admin request that is under way when the connector stops.
LAST_REQUEST_SECONDS = 0.5


class MirrorSourceConnector:
    """Discovers topics, creates their remotes, and keeps the copy tasks in line with them."""

    # It copies, for whoever shows it beside flows that other processes copy.
    stands_by = ""

    def __init__(self, flow: SourceFlow) -> None:
        self.flow = flow
        self.config = flow.source
        self.tasks: list[TaskRunner] = []
        self._admins: list[Admin] = []
        producer, target = self.config.producer.client, self.config.target_client
        self._is_elsewhere = not producer.is_same_cluster(target)
        self._policy = flow_policy(self.config)
        self._filter = make_topic_filter(self.config)
        self._cycles = Cycles(self.config, self._filter, self._policy)
        self._property_filter = make_config_property_filter(self.config)
        self._store = KafkaOffsetBackingStore.of(flow.worker, self.config)
        self._assignment: list[list[TopicPartition]] = []
        self._stale = StalePositions()
        self._missing_topics = MissingTopics()
        # The remote topic of every topic that has one, as of the last refresh.
        self._remotes: dict[str, str] = {}
        # For executors elsewhere, which have none; those of this machine have the worker's.
        self._files: SecretFileSender | None = None
        self._lock = threading.Lock()
        self._misses_topics = threading.Event()
        self._ticker = Scheduler(str(flow.name))
        self._topics = SourceTopics(
            self.config, flow.worker, self.offset_syncs_topic, self.offset_map_topic
        )

    # -- life --------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Open the admin connections; nothing is changed anywhere.

        Raises:
            KafkaError: says of all clusters, if need be, why they cannot be reached.
        """
        clients = [self.config.source_client, self.config.target_client]
        if self._is_elsewhere:
            clients.append(self.config.producer.client)
        open_admins(Admin, clients, self.config.admin_timeout_ms, self._admins)
        self._admins = [forwarded(admin, self.config) for admin in self._admins]
        self._use(*self._admins)

    def disconnect(self) -> None:
        """Close what `connect` opened; the only step that is needed when nothing was started."""
        for admin in self._admins:
            admin.close()

    def _use(self, source: Admin, target: Admin, records: Admin | None = None) -> None:
        """`records` is the cluster that records go to, if that is not the target."""
        self._source, self._target, self._records = source, target, records
        name, policy, properties = self.flow.name, self._policy, self._property_filter
        accepted = AcceptedSettings(name, self.config.target_alias)
        self._remote_topics = RemoteTopics(
            self.config, policy, properties, accepted, source=source, target=target
        )
        self._config_sync = ConfigSync(name, properties, source, target, accepted)
        self._acl_sync = AclSync(name, policy, self._wants, source, target)
        self._hidden = DeniedTopics(self.config, self._wants, source)
        self._start_report = StartReport(name, self.config, source)

    def start(self, engine: SparkEngine, links: LinkServer, lease: Lender | None = None) -> None:
        """Create what is missing, start the tasks, and go on looking for topics.

        `lease` tells how long tasks may write, if their flow has a group of its own.
        """
        self._engine, self._links, self._lease = engine, links, lease
        if not engine.is_local:
            self._files = SecretFileSender(clients_of_tasks(self.config, self.flow.worker))
        self._store.prepare(self._target, self.config.target_client)
        self._schedule_internal_topics()
        self.refresh()
        self._schedule()
        self._ticker.start()

    def stop(self) -> None:
        """Ask all tasks to commit and end."""
        self._ticker.stop()
        for task in self.tasks:
            task.stop()

    def join(self, seconds: float) -> bool:
        """Wait for the tasks; tells whether all of them ended clean."""
        deadline = time.monotonic() + seconds
        clean = [task.join(max(0.1, deadline - time.monotonic())) for task in self.tasks]
        self._ticker.join(LAST_REQUEST_SECONDS)
        self.disconnect()
        return all(clean)

    @property
    def last_error(self) -> str:
        """Why the last refresh or sync failed; empty when all of them went well."""
        return self._ticker.last_error

    @property
    def assignment(self) -> list[list[TopicPartition]]:
        """The partitions of each task."""
        with self._lock:
            return [list(partitions) for partitions in self._assignment]

    def refresh_soon(self, topics: Sequence[str]) -> None:
        """A task misses target topics: somebody deleted them."""
        log.warning("[%s] missing on the target: %s", self.flow.name, some_names(topics))
        self._misses_topics.set()

    def _schedule(self) -> None:
        """Everything is done one after the other; the tasks copy meanwhile."""
        config, ticker = self.config, self._ticker
        ticker.repeat(
            "copying ACLs",
            config.sync_topic_acls_interval_seconds,
            self._acl_sync.sync,
            enabled=config.sync_topic_acls_enabled,
        )
        ticker.repeat(
            "copying topic configs",
            config.sync_topic_configs_interval_seconds,
            lambda: self._config_sync.sync(self._remotes),
            enabled=config.sync_topic_configs_enabled,
        )
        ticker.repeat(
            "refresh of topics",
            config.refresh_topics_interval_seconds,
            self.refresh,
            enabled=config.refresh_topics_enabled,
            delayed=True,
        )
        ticker.repeat("refresh for a task", SOONEST_REFRESH_SECONDS, self._refresh_for_task)
        ticker.repeat(
            "sending files to tasks",
            FILES_SECONDS,
            self._send_changed_files,
            enabled=self._files is not None,
        )

    def _refresh_for_task(self) -> None:
        if not self._misses_topics.is_set():
            return
        self._misses_topics.clear()
        try:
            self.refresh()
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
        """Name of the topic for the offset map; empty: nobody would look for it elsewhere."""
        return "" if self._is_elsewhere else offset_map_topic(self.config.source_alias)

    def _schedule_internal_topics(self) -> None:
        """Now, before any task writes to them, and with each refresh; copying never waits for it.

        As in MirrorMaker 2 a refusal is only told; here it is also tried again.
        """
        job = self._ticker.repeat(
            "creating internal topics",
            max(self.config.refresh_topics_interval_seconds, SOONEST_CREATE_SECONDS),
            self._create_internal_topics,
            enabled=self.config.refresh_topics_enabled,
        )
        self._ticker.run_soon(job)
        self._ticker.run_due()

    def _create_internal_topics(self) -> None:
        self._topics.create(self._source, self._target)

    @property
    def degraded(self) -> str:
        """What does not work though tasks copy; empty if everything does."""
        reasons = (self._remote_topics.refused, self._topics.refused)
        return "; ".join(reason for reason in reasons if reason)

    # -- one round ---------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Look at both clusters, create and grow remote topics, adjust the tasks."""
        shown = self._missing_topics.complete(self._source.list_topics())
        if self._missing_topics.is_waiting:
            self._misses_topics.set()
        cycles = self._cycles.look(shown)
        source = {name: view for name, view in shown.items() if self._wants(name)}
        self._stale.note_ids(source, self._store.load)
        counts = {name: view.partitions for name, view in source.items()}
        gone = self._remotes.keys() - counts.keys()
        self._say_gone(gone - self._hidden.look(counts, gone, shown, cycles))
        target = self._remote_topics.bring_up(counts)
        if self._remote_topics.awaits_brokers:
            self._misses_topics.set()
        self._remotes = topics_to_sync(counts, target, self._policy, self.config.source_alias)
        self._ask_for_remotes()
        copyable = self._copyable(counts, target)
        self._report_starts(copyable, source)
        with self._lock:
            self._adjust(copyable)

    def refused_starts(self) -> list[str]:
        """What would not resume at a stored position, before `start`; nothing is changed."""
        return self._start_report.refused(self._wants, self._store, self._target)

    def _report_starts(
        self, wanted: Sequence[TopicPartition], topics: Mapping[str, TopicView]
    ) -> None:
        new = sorted(set(wanted).difference(*self._assignment))
        if new:
            self._start_report.say(new, topics, self._store.load, self._stale.hold)

    def _ask_for_remotes(self) -> None:
        """Records that go elsewhere need topics there: its brokers create them, or nobody does.

        That is how it is with the producer of Kafka Connect.
        """
        if self._records is not None:
            self._records.ask_for_topics(self._remotes.values())

    def _say_gone(self, topics: Set[str]) -> None:
        if topics:
            log.warning(
                "[%s] not copied from '%s' any more: %s; deleted, or filtered out",
                self.flow.name,
                self.config.source_alias,
                some_names(topics),
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
        """Every source partition that has its place on the target."""
        return [
            TopicPartition(topic, at)
            for topic in sorted(source)
            for at in range(min(source[topic], target.get(self._remote(topic), 0)))
        ]

    def _remote(self, topic: str) -> str:
        return self._policy.format_remote_topic(self.config.source_alias, topic)

    # -- tasks -------------------------------------------------------------------------------------

    def _adjust(self, wanted: Sequence[TopicPartition]) -> None:
        """Tell each task what is new and what is gone; the others do not notice."""
        before = self._assignment
        if before:
            after = extend_assignment(before, wanted, self.config.tasks_max)
        else:
            after = assign_partitions(wanted, self.config.tasks_max)
        # Tasks that have nothing left keep their number, and are told so.
        after += [[]] * (len(self.tasks) - len(after))
        if after == before:
            return
        orders = self._changes(before, after)
        self._assignment = after
        for at, messages in orders.items():
            for message in messages:
                self.tasks[at].send(message)
        # Told to stop while it starts: none of the tasks would have anything to store.
        for at in range(len(self.tasks), 0 if self._ticker.is_stopping else len(after)):
            self.tasks.append(self._new_task(at))
            self.tasks[at].start()
        log.info("[%s] %d partitions in %d tasks", self.flow.name, len(wanted), len(self.tasks))

    def _changes(
        self, before: Sequence[Sequence[TopicPartition]], after: Sequence[Sequence[TopicPartition]]
    ) -> dict[int, list[LinkMessage]]:
        """What running tasks must be told. Reads positions, so it may fail: before anything is."""
        orders: dict[int, list[LinkMessage]] = {}
        for at in range(len(self.tasks)):
            gone = sorted(set(before[at]) - set(after[at]))
            new = sorted(set(after[at]) - set(before[at]))
            if gone:
                rows = [[tp.topic, tp.partition] for tp in gone]
                orders.setdefault(at, []).append({"type": "revoke", "partitions": rows})
            if new:
                rows = encode_assigned(self._with_positions(new))
                orders.setdefault(at, []).append({"type": "assign", "assigned": rows})
        return orders

    def _new_task(self, at: int) -> TaskRunner:
        return TaskRunner(
            self._engine,
            self._links,
            f"{self.flow.name}|{self.config.name}-{at}",
            lambda: self._orders(at),
            self.refresh_soon,
            lease=self._lease,
        )

    def _orders(self, at: int) -> LinkMessage:
        """Called when task `at` has started, on its link's thread."""
        with self._lock:
            partitions = list(self._assignment[at])
        syncs = self.config.emit_offset_syncs_enabled
        orders = start_message(
            self.config.settings,
            self.flow.worker_props,
            self._store.partitions,
            self._with_positions(partitions),
            offset_syncs_topic=self.offset_syncs_topic if syncs else "",
            offset_map_topic=self.offset_map_topic if syncs else "",
        )
        return orders if self._files is None else orders | self._files.all()

    def _send_changed_files(self) -> None:
        """New connections of the tasks are to use the new ones."""
        message = None if self._files is None else self._files.take_changed()
        if message is not None:
            for task in list(self.tasks):
                task.send(message)

    def _with_positions(self, partitions: Sequence[TopicPartition]) -> list[AssignedPartition]:
        stored = self._store.load()
        rows = []
        for tp in partitions:
            position = stored.get(tp)
            target = TopicPartition(self._remote(tp.topic), tp.partition)
            if position is None or self._stale.hold(tp, position):
                rows.append(AssignedPartition(tp, target, None))
            else:
                rows.append(AssignedPartition(tp, target, *position))
        return rows
