"""What `run` would change on the clusters of a file: the connectors' own code, rehearsed.

Runs on: any machine; reads all clusters, writes nothing. The first round of every connector runs
against a `RehearsalAdmin`. Rounds are repeated until they change nothing more: a topic that one
flow would create may be copied by the next flow.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.connector_spec import AnySpec, ConnectorConfig
from sparkmirror.config.keys.classes import FORWARDING_ADMIN
from sparkmirror.config.mirror_configs import CheckpointConfig, HeartbeatConfig, SourceConfig
from sparkmirror.config.worker_config import WorkerConfig
from sparkmirror.connect.checkpoint.group_preview import GroupPreview, preview_groups
from sparkmirror.connect.checkpoint.topic_creation import create_checkpoints_topic
from sparkmirror.connect.heartbeat.mirror_heartbeat_task import create_heartbeats_topic, emits
from sparkmirror.connect.source.mirror_source_connector import MirrorSourceConnector
from sparkmirror.connect.storage.storage_topics import (
    StorageTopic,
    bring_up_storage_topic,
    offsets_topic,
)
from sparkmirror.errors import ConfigError, KafkaError, MirrorError
from sparkmirror.mirror.checkpoints import NoCheckpoint
from sparkmirror.mirror.group_offsets import NotWritten
from sparkmirror.mirror.policy import flow_policy
from sparkmirror.mirror.positions.own_offsets import with_own_offsets
from sparkmirror.tools.preview.plan_report import FlowGroups, GroupWrite, MirrorPlan
from sparkmirror.tools.preview.planned_file import PlannedFile, PlannedWorker
from sparkmirror.tools.preview.rehearsed_cluster import RehearsalAdmin, RehearsedCluster
from sparkmirror.types import FlowName
from sparkmirror.wire.admin.group_admin import GroupAdmin

TIMEOUT_MS = 30_000
# As many flows as a chain of clusters has.
MOST_ROUNDS = 8
OWN_CLASS = (
    "{flow}: changes on '{alias}' go through forwarding.admin.class={name}, which is not called "
    "here: it may decide otherwise"
)
# The group's offset on the target is as it should be, or there is nothing to do about it.
QUIET = frozenset({NotWritten.UNCHANGED, NotWritten.ALREADY_AHEAD, NotWritten.NO_CHECKPOINT})


def plan_file(file: PlannedFile) -> MirrorPlan:
    """Ask all clusters, and collect what would be changed.

    Raises:
        KafkaError: clusters that cannot be reached, all of them.
    """
    rehearsal = _Rehearsal()
    try:
        with _warnings() as warnings:
            rehearsal.connect(file.workers)
            rehearsal.run(file.workers)
            groups = rehearsal.groups(file.workers)
    finally:
        rehearsal.close()
    return MirrorPlan(
        str(file.path),
        file.flows,
        rehearsal.clusters,
        groups,
        tuple(dict.fromkeys([*file.warnings, *rehearsal.notes, *warnings])),
        tuple(dict.fromkeys(rehearsal.problems)),
    )


class _Rehearsal:
    """One connection for each login, one `RehearsedCluster` for each cluster."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.notes: list[str] = []
        self._admins: list[tuple[ClientConfig, GroupAdmin, RehearsedCluster]] = []

    @property
    def clusters(self) -> tuple[RehearsedCluster, ...]:
        found = {id(cluster): cluster for _, _, cluster in self._admins}
        return tuple(found.values())

    def connect(self, workers: Sequence[PlannedWorker]) -> None:
        """Reach every cluster that a connector or a worker uses."""
        errors: dict[str, None] = {}
        for client in _clients(workers):
            try:
                self._open(client)
            except KafkaError as error:
                errors[str(error)] = None
        if errors:
            raise KafkaError("\n".join(errors))

    def close(self) -> None:
        for _, admin, _ in self._admins:
            admin.close()

    def run(self, workers: Sequence[PlannedWorker]) -> None:
        """All connectors again and again, until nothing more would change."""
        size = -1
        for _ in range(MOST_ROUNDS):
            if sum(cluster.size for cluster in self.clusters) == size:
                return
            size = sum(cluster.size for cluster in self.clusters)
            self._run_once(workers)

    def _run_once(self, workers: Sequence[PlannedWorker]) -> None:
        for each in workers:
            for topic in each.topics:
                self._store(each.worker, topic(each.worker))
            for spec in each.connectors:
                self._positions(spec, each.worker)
        # Heartbeats first: other flows copy them.
        for kind in (HeartbeatConfig, CheckpointConfig, SourceConfig):
            for each in workers:
                for spec in each.connectors:
                    if isinstance(spec.config, kind):
                        self._connector(spec)

    def _store(self, worker: WorkerConfig, topic: StorageTopic) -> None:
        if not topic.name:  # of an unknown worker
            return
        try:
            bring_up_storage_topic(self._admin(worker.client), topic)
        except (KafkaError, ConfigError) as error:
            self.problems.append(str(error))

    def _positions(self, spec: AnySpec, worker: WorkerConfig) -> None:
        """The topics for positions of a connector that has something to store."""
        config = spec.config
        if _is_on(config):
            for each in (worker, with_own_offsets(worker, config)):
                self._store(each, offsets_topic(each))

    def _connector(self, spec: AnySpec) -> None:
        config = spec.config
        target = self._admin(config.target_client, config)
        try:
            if isinstance(config, HeartbeatConfig) and emits(config):
                topic = flow_policy(config).heartbeats_topic()
                create_heartbeats_topic(target, config, topic, is_missing=False)
            elif isinstance(config, CheckpointConfig) and config.is_on:
                create_checkpoints_topic(target, config, is_missing=False)
            elif (source := spec.narrowed(SourceConfig)) and source.config.enabled:
                connector = MirrorSourceConnector(source)
                admins = [self._admin(source.config.source_client, config), target]
                records = source.config.producer.client
                if not records.is_same_cluster(source.config.target_client):
                    admins.append(self._admin(records, config))
                connector.rehearse(*admins)
        except MirrorError as error:
            self.problems.append(f"{spec.flow}: {error}")

    def groups(self, workers: Sequence[PlannedWorker]) -> tuple[FlowGroups, ...]:
        """Of every flow that makes checkpoints."""
        found = []
        for each in workers:
            for spec in each.connectors:
                config = spec.config
                if isinstance(config, CheckpointConfig) and config.is_on:
                    found.append(self._groups(spec.flow, config))
        return tuple(found)

    def _groups(self, flow: FlowName, config: CheckpointConfig) -> FlowGroups:
        source, target = self._admin(config.source_client), self._admin(config.target_client)
        try:
            previews = preview_groups(config, source, target)
        except MirrorError as error:
            self.problems.append(f"{flow}: {error}")
            return FlowGroups(str(flow), flow.target)
        is_written = config.sync_group_offsets_enabled
        shown = dict(sorted(previews.items())) if is_written else {}
        return FlowGroups(
            str(flow),
            flow.target,
            tuple(_write(group, each) for group, each in shown.items() if each.plan.write),
            tuple(group for group, each in shown.items() if _is_later(each)),
            {group: why for group, each in shown.items() if (why := _why_kept(each))},
            tuple(sorted(previews)),
            is_written,
        )

    # -- connections -------------------------------------------------------------------------------

    def _open(self, client: ClientConfig) -> None:
        if any(known == client for known, _, _ in self._admins):
            return
        same = (each for known, _, each in self._admins if known.is_same_cluster(client))
        cluster = next(same, None) or RehearsedCluster(client.alias)
        self._admins.append((client, GroupAdmin(client, TIMEOUT_MS), cluster))

    def _admin(self, client: ClientConfig, config: ConnectorConfig | None = None) -> GroupAdmin:
        """What a connector takes for its admin connection."""
        _, admin, cluster = next(each for each in self._admins if each[0] == client)
        name = FORWARDING_ADMIN if config is None else config.forwarding_admin_class
        is_own = name != FORWARDING_ADMIN
        if is_own and config is not None:
            flow = FlowName(config.source_alias, config.target_alias)
            self.notes.append(OWN_CLASS.format(flow=flow, alias=client.alias, name=name))
        return cast("GroupAdmin", RehearsalAdmin(admin, cluster, validates=not is_own))


def _clients(workers: Sequence[PlannedWorker]) -> Iterator[ClientConfig]:
    """Sources first: the plan shows the clusters in this order."""
    specs = [spec for each in workers for spec in each.connectors]
    for spec in specs:
        if not isinstance(spec.config, HeartbeatConfig) and _is_on(spec.config):
            yield spec.config.source_client
    for spec in specs:
        if _is_on(spec.config):
            yield spec.config.target_client
            yield spec.config.producer.client
    for each in workers:
        if each.topics:
            yield each.worker.client
        for spec in each.connectors:
            if _is_on(spec.config):
                yield each.worker.client
                yield with_own_offsets(each.worker, spec.config).client


def _is_on(config: ConnectorConfig) -> bool:
    if isinstance(config, SourceConfig):
        return config.enabled
    return emits(config) if isinstance(config, HeartbeatConfig) else config.is_on


def _write(group: str, preview: GroupPreview) -> GroupWrite:
    before = preview.before
    return GroupWrite(
        group,
        {tp: (before.get(tp), each.next_offset) for tp, each in preview.plan.write.items()},
    )


def _is_later(preview: GroupPreview) -> bool:
    """Whether nothing but the copy is missing."""
    waits = NoCheckpoint.UNKNOWN in preview.skipped.values()
    return waits and not preview.plan.write and preview.plan.reason is NotWritten.NO_CHECKPOINT


def _why_kept(preview: GroupPreview) -> str:
    """Why a group is not written although users may expect it."""
    if preview.error:
        return preview.error
    if preview.plan.reason is not None:
        reason = preview.plan.reason
        return "" if reason in QUIET else reason.value
    reasons: Mapping[Any, NotWritten] = preview.plan.kept
    return next((each.value for each in reasons.values() if each not in QUIET), "")


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """What the connectors warn of, which the log does not show here."""
    found: list[str] = []

    class Collector(logging.Handler):
        """Keeps messages."""

        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    logger, collector = logging.getLogger("sparkmirror"), Collector(logging.WARNING)
    level, propagates = logger.level, logger.propagate
    logger.addHandler(collector)
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    try:
        yield found
    finally:
        logger.removeHandler(collector)
        logger.setLevel(level)
        logger.propagate = propagates
