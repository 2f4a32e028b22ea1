"""The source connector of one flow: which topics, their remote twins, and which task copies what.

Runs on: worker, one thread per flow. One round is `refresh`; the thread repeats it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence

from sparkmirror.config.findings import Findings
from sparkmirror.config.mm2 import FlowConfig
from sparkmirror.config.providers import load_providers, resolve
from sparkmirror.connect.offset_store import OffsetStore
from sparkmirror.errors import KafkaError, MirrorError
from sparkmirror.mirror.assignment import assign_partitions, extend_assignment
from sparkmirror.mirror.filters import make_config_property_filter, make_topic_filter
from sparkmirror.mirror.policy import make_policy
from sparkmirror.mirror.topics import (
    ConfigEntry,
    ConfigSource,
    TopicPlan,
    creation_configs,
    plan_topics,
    should_replicate_topic,
)
from sparkmirror.spark.copy_settings import Assigned, encode_assigned, start_message
from sparkmirror.spark.link_frames import Message
from sparkmirror.spark.link_server import LinkServer
from sparkmirror.spark.session import SparkEngine
from sparkmirror.spark.task_runner import TaskRunner
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin import Admin, NewTopic, TopicView

log = logging.getLogger(__name__)

SOURCE_CONNECTOR = "MirrorSourceConnector"
# A task that misses its target topic asks for a refresh; not more often than this.
SOONEST_REFRESH_SECONDS = 5.0


class SourceConnector:
    """Discovers topics, creates their remotes, and keeps the copy tasks in line with them."""

    def __init__(self, flow: FlowConfig) -> None:
        self.flow = flow
        self.config = flow.source
        self.last_error = ""
        self.tasks: list[TaskRunner] = []
        self._admins: list[Admin] = []
        self._props = _resolved(flow.connector_props[SOURCE_CONNECTOR])
        self._policy = make_policy(
            self.config.policy_class,
            self.config.source_alias,
            self.config.separator,
            self.config.internal_separator_enabled,
        )
        self._filter = make_topic_filter(self.config)
        self._property_filter = make_config_property_filter(self.config)
        self._store = OffsetStore(flow.worker, self.config.name, self.config.source_alias)
        self._assignment: list[list[TopicPartition]] = []
        self._topic_ids: dict[str, bytes] = {}
        # Positions of topics that were deleted and created anew, until a task stores others.
        self._stale: dict[TopicPartition, int] = {}
        self._said: set[str] = set()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"refresh {flow.name}", daemon=True)

    # -- life --------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Open the admin connections; nothing is changed anywhere.

        Raises:
            KafkaError: says of both clusters, if need be, why they cannot be reached.
        """
        errors = []
        for client in (self.config.source_client, self.config.target_client):
            try:
                self._admins.append(Admin(client, self.config.admin_timeout_ms))
            except KafkaError as error:
                errors.append(str(error))
        if errors:
            raise KafkaError("\n".join(errors))
        self._source, self._target = self._admins

    def start(self, engine: SparkEngine, links: LinkServer) -> None:
        """Create what is missing, start the tasks, and go on looking for topics."""
        self._engine, self._links = engine, links
        self._store.prepare(self._target)
        self.refresh()
        self._thread.start()

    def stop(self) -> None:
        """Ask all tasks to commit and end."""
        self._stopping.set()
        self._wake.set()
        for task in self.tasks:
            task.stop()

    def join(self, seconds: float) -> bool:
        """Wait for the tasks; tells whether all of them ended clean."""
        deadline = time.monotonic() + seconds
        clean = [task.join(max(0.1, deadline - time.monotonic())) for task in self.tasks]
        for admin in self._admins:
            admin.close()
        return all(clean)

    def refresh_soon(self, topics: Sequence[str]) -> None:
        """A task misses target topics: somebody deleted them."""
        log.warning("[%s] missing on the target: %s", self.flow.name, ", ".join(topics))
        self._wake.set()

    def _run(self) -> None:
        interval = float(self.config.refresh_topics_interval_seconds)
        if not self.config.refresh_topics_enabled:
            interval = threading.TIMEOUT_MAX
        while not self._stopping.is_set():
            if self._wake.wait(interval):
                self._wake.clear()
                self._stopping.wait(min(SOONEST_REFRESH_SECONDS, interval))
            if self._stopping.is_set():
                return
            try:
                self.refresh()
                self.last_error = ""
            except MirrorError as error:
                self.last_error = str(error)
                log.warning("[%s] refresh of topics failed: %s", self.flow.name, error)

    # -- one round ---------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Look at both clusters, create and grow remote topics, adjust the tasks."""
        source = {
            name: view for name, view in self._source.list_topics().items() if self._wants(name)
        }
        self._note_ids(source)
        counts = {name: view.partitions for name, view in source.items()}
        target = {name: view.partitions for name, view in self._target.list_topics().items()}
        plan = plan_topics(counts, target, self._policy, self.config.source_alias)
        for warning in plan.warnings:
            self._say_once(warning)
        target |= self._create(plan) | self._grow(plan)
        with self._lock:
            self._adjust(self._copyable(counts, target))

    def _wants(self, topic: str) -> bool:
        return should_replicate_topic(
            topic,
            self._filter,
            self._policy,
            heartbeats_replication_enabled=self.config.heartbeats_replication_enabled,
            source_alias=self.config.source_alias,
            target_alias=self.config.target_alias,
        )

    def _note_ids(self, source: Mapping[str, TopicView]) -> None:
        """A topic that came back under another id has nothing to do with its stored positions."""
        known = self._topic_ids
        recreated = {
            name for name, view in source.items() if known.get(name, view.topic_id) != view.topic_id
        }
        if recreated:
            stored = self._store.load()
            self._stale |= {tp: last for tp, last in stored.items() if tp.topic in recreated}
        known.update({name: view.topic_id for name, view in source.items()})

    def _create(self, plan: TopicPlan) -> dict[str, int]:
        settings = self._source.describe_topic_configs(t.source_topic for t in plan.create.values())
        topics = [
            NewTopic(
                remote,
                wanted.partitions,
                self.config.replication_factor,
                self._configs(settings.get(wanted.source_topic, [])),
            )
            for remote, wanted in plan.create.items()
        ]
        created: dict[str, int] = {}
        for remote, error in self._target.create_topics(topics).items():
            if error is None:
                created[remote] = plan.create[remote].partitions
                log.info("[%s] created topic '%s'", self.flow.name, remote)
            else:
                self._say_once(f"{error}; trying again with the next refresh")
        return created

    def _configs(
        self, settings: Sequence[tuple[str, str | None, int, bool, bool]]
    ) -> dict[str, str]:
        entries = [
            ConfigEntry(name, value, ConfigSource(source), read_only, sensitive)
            for name, value, source, read_only, sensitive in settings
        ]
        return creation_configs(entries, self._property_filter)

    def _grow(self, plan: TopicPlan) -> dict[str, int]:
        grown: dict[str, int] = {}
        for remote, error in self._target.create_partitions(plan.grow).items():
            if error is None:
                grown[remote] = plan.grow[remote]
                log.info("[%s] '%s' has %d partitions now", self.flow.name, remote, grown[remote])
            else:
                self._say_once(f"{error}; the new partitions are not copied until it works")
        return grown

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

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            log.warning("[%s] %s", self.flow.name, text)

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
        for at in range(len(self.tasks), len(after)):
            self.tasks.append(self._new_task(at))
            self.tasks[at].start()
        log.info("[%s] %d partitions in %d tasks", self.flow.name, len(wanted), len(self.tasks))

    def _changes(
        self, before: Sequence[Sequence[TopicPartition]], after: Sequence[Sequence[TopicPartition]]
    ) -> dict[int, list[Message]]:
        """What running tasks must be told. Reads positions, so it may fail: before anything is."""
        orders: dict[int, list[Message]] = {}
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
        )

    def _orders(self, at: int) -> Message:
        """Called when task `at` has started, on its link's thread."""
        with self._lock:
            partitions = list(self._assignment[at])
        return start_message(
            self._props,
            self.flow.worker_props,
            self._store.partitions,
            self._with_positions(partitions),
        )

    def _with_positions(self, partitions: Sequence[TopicPartition]) -> list[Assigned]:
        stored = self._store.load()
        rows = []
        for tp in partitions:
            last_offset = stored.get(tp)
            is_stale = last_offset is not None and last_offset == self._stale.get(tp)
            next_offset = None if last_offset is None or is_stale else last_offset + 1
            target = TopicPartition(self._remote(tp.topic), tp.partition)
            rows.append(Assigned(tp, target, next_offset))
        return rows


def _resolved(props: Mapping[str, str]) -> dict[str, str]:
    """Placeholders replaced: what tasks are told. The file was checked when it was loaded."""
    findings = Findings()
    resolved = resolve(props, load_providers(props, findings), findings)
    findings.raise_errors()
    return dict(resolved)
