"""A flow whose users have chosen permissions, run step by step in the test's thread; no Spark."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
)

from sparkmirror.config.mm2 import FlowConfig, HeartbeatSpec, load_mm2
from sparkmirror.connect.dedicated.mirror_herder import MirrorHerder
from sparkmirror.connect.heartbeat.mirror_heartbeat_task import MirrorHeartbeatTask
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.storage.record_producer import RecordProducer
from sparkmirror.errors import MirrorError, StoppingError
from sparkmirror.mirror.permissions import Operation, Permission, topic_permission
from sparkmirror.spark.copy.copy_loop import CopyLoop
from sparkmirror.spark.link.frames import LinkMessage
from sparkmirror.spark.task_config import parse_start
from sparkmirror.spark.task_runner import TaskRunner
from sparkmirror.tools.check.required_permissions import (
    RequiredPermission,
    wanted_by_checkpoint,
    wanted_by_heartbeat,
    wanted_by_herder,
    wanted_by_source,
)
from sparkmirror.types import TopicPartition
from sparkmirror.wire.net.event_loop import EventLoop
from tests.clusters import Record, create_topic, end_offset, produce, unique_name, wait_for
from tests.connect.fakes import FakeTask
from tests.connect.local_checkpoints import LocalCheckpoints
from tests.connect.local_source import LocalSource
from tests.group_offsets import commit_offsets, committed_offsets
from tests.kafka.topics import delete_topic
from tests.permissions.guarded import SECONDS, Grant, Guarded, grants_of

RECORDS = 3
SOMEBODY = "User:ann"
RETENTION = {"retention.ms": "7777777"}
# How long a refusal is waited for that would come beside one that has come; and anything else.
REFUSED_SECONDS = 2.0
COPY_SECONDS = 15.0
FLUSH_SECONDS = 5.0
FLUSH_PART_SECONDS = 0.1


class Mirror(LocalSource):
    """A connector whose tasks only note what they are told."""

    def _new_runner(self, name: str, make_message: Callable[[], LinkMessage]) -> TaskRunner:
        del make_message
        return cast("TaskRunner", FakeTask(name))


class IdleSpark(Worker):
    """Has room for a task, which waits for Spark until the end."""

    is_up = True

    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__(settings, slots=1)
        self._given_up = threading.Event()

    def begin(self) -> Any:
        """It does not start."""

    def get(self) -> Any:
        self._given_up.wait()
        raise StoppingError("this process stops")

    def give_up_start(self) -> None:
        self._given_up.set()


class World:
    """Two topics, of which `cut` is the one that permissions are taken away of, and a group."""

    def __init__(self, folder: Path, guarded: Guarded) -> None:
        self.guarded = guarded
        kafka = guarded.kafka
        self.source, self.target = unique_name("s"), unique_name("t")
        self.kept = create_topic(kafka, unique_name("orders-kept"))
        self.cut = create_topic(kafka, unique_name("orders-cut"), partitions=2)
        self.group = unique_name("shop")
        # One that is there already, with too few partitions and other settings.
        create_topic(kafka, self.remote(self.cut))
        for topic in (self.kept, self.cut):
            produce(kafka, topic, [b"%d" % at for at in range(RECORDS)])
        self._commit()
        self._alter(self.cut)
        self.flow, self.pair = self._load(folder / "mm2.properties")
        self.messages: list[str] = []

    def remote(self, topic: str) -> str:
        return f"{self.source}.{topic}"

    def allow(self, missing: Iterable[Grant] = ()) -> None:
        """Grant the documented permissions except `missing`, and one of another user to copy."""
        copied = Grant(SOMEBODY, topic_permission(Operation.READ, self.kept))
        self.guarded.allow_only({*grants_of(self.wanted()), copied} - set(missing))

    def wanted(self) -> list[RequiredPermission]:
        """The rows of the table of permissions."""
        flow, topics = self.flow, (self.kept, self.cut)
        return [
            *wanted_by_source(flow.source, flow.worker, topics),
            *wanted_by_checkpoint(flow.checkpoint, flow.worker, [self.group], topics),
            *wanted_by_heartbeat(self.pair.config, self.pair.worker),
            *wanted_by_herder(flow.worker),
        ]

    def _load(self, path: Path) -> tuple[FlowConfig, HeartbeatSpec]:
        flow = f"{self.source}->{self.target}"
        storage = [f"{each}.storage" for each in ("config", "offset", "status")]
        factors = ("checkpoints.topic", "heartbeats.topic", "offset-syncs.topic", *storage)
        lines = {
            "clusters": f"{self.source}, {self.target}",
            **_under(self.source, self.guarded.login("reader")),
            **_under(self.target, self.guarded.login("writer")),
            f"{flow}.enabled": "true",
            f"{flow}.topics": f"{self.kept}, {self.cut}",
            f"{flow}.groups": self.group,
            f"{flow}.sync.group.offsets.enabled": "true",
            f"{flow}.heartbeats.replication.enabled": "false",
            f"{self.target}->{self.source}.emit.heartbeats.enabled": "false",
            "offset.storage.partitions": "1",
            f"{self.target}.offset.flush.interval.ms": "200",
            "replication.factor": "1",
            **{f"{prefix}.replication.factor": "1" for prefix in factors},
        }
        path.write_text("\n".join(f"{key} = {value}" for key, value in lines.items()))
        file = load_mm2(path)
        (flow_config,), (pair,) = file.flows, file.heartbeats
        (self.pair_config,) = file.pairs
        self.path = path
        return flow_config, pair

    def prepare(self, missing: Permission) -> None:
        """Make the permission necessary: no topic to create exists, and one to read has records."""
        kafka, internal = self.guarded.kafka, missing.name.endswith((".internal", "heartbeats"))
        if missing.operation is Operation.CREATE:
            self.delete(missing.name)
        if missing.operation is Operation.READ and internal:
            create_topic(kafka, missing.name, config={"cleanup.policy": "compact"})
            produce(kafka, missing.name, [Record(None, b"a tombstone")])

    def delete(self, topic: str) -> None:
        """If it is there, from a world before this one."""
        if self._partitions(topic):
            delete_topic(self.guarded.kafka, topic)

    # -- steps -------------------------------------------------------------------------------------

    def run_source(self) -> None:
        """Create topics, copy, settings, ACLs, as a connector and its task do."""
        mirror = Mirror(self.flow)
        mirror.connect()
        try:
            prepared = self._try(lambda: mirror._store.prepare(mirror._target))
            self._try(mirror._create_internal_topics)
            if prepared and self._try(mirror.look) and mirror.tasks:
                self._copy(mirror)
            self._try(lambda: mirror._config_sync.sync(mirror._remotes))
            self._try(mirror._acl_sync.sync)
        finally:
            mirror.stop()
            mirror.join(1.0)

    def _copy(self, mirror: Mirror) -> None:
        """Until all is copied and committed; where something was refused, for some seconds."""
        starts = []
        if not self._try(lambda: starts.append(mirror._copies[0].start_message())):
            return
        loop = EventLoop()
        copy = CopyLoop(parse_start(starts[0]), loop)
        began = time.monotonic()

        def is_over() -> bool:
            # Somebody may just not be known as a leader yet.
            denied = [each for each in copy.problems.values() if " lacks " in each.text]
            limit = REFUSED_SECONDS if self.messages or denied else COPY_SECONDS
            return (
                copy.metrics.behind() == 0 and copy.is_clean
            ) or time.monotonic() - began > limit

        try:
            while not is_over():
                copy.turn()
            copy._emitter.commit()
            loop.run_until(lambda: copy._emitter.idle, FLUSH_SECONDS)
            self.messages += [problem.text for problem in copy.problems.values()]
        finally:
            copy.close()
            loop.close()

    def run_checkpoints(self) -> None:
        """One round of checkpoints and group offsets."""
        connector = LocalCheckpoints(self.flow)
        connector.connect()
        connector._writer.start()
        connector._offsets.start()
        self._try(connector._prepare)
        self._try(connector.refresh)
        self._try(connector.emit)
        flush(connector._writer)
        self._try(connector.sync)
        self._try(connector._commit)
        flush(connector._writer)
        connector.stop()
        connector.join(1.0)

    def run_group(self) -> bool:
        """Join the flow's group; whether this process may run the flow."""
        herder = MirrorHerder(self.pair_config, IdleSpark({}), "h/1", "h/1", needs_spark=False)
        herder.start()
        try:
            wait_for(
                lambda: herder.is_settled or herder.failure or "lacks" in herder.stands_by,
                within=REFUSED_SECONDS + COPY_SECONDS,
                describe=lambda: herder.stands_by,
            )
            failure = [] if herder.failure is None else [str(herder.failure)]
            self.messages += failure or ([herder.stands_by] if herder.stands_by else [])
            return herder.is_settled
        finally:
            herder.stop(COPY_SECONDS)

    def run_heartbeats(self) -> None:
        """One heartbeat."""
        connector = MirrorHeartbeatTask(self.pair)
        connector.connect()
        connector._writer.start()
        self._try(connector._create_topics)
        self._try(connector._emit)
        flush(connector._writer)
        self._try(connector._commit)
        flush(connector._writer)
        connector.stop()
        connector.join(1.0)

    def _try(self, step: Callable[[], object]) -> bool:
        try:
            step()
        except MirrorError as error:
            self.messages.append(str(error))
            return False
        return True

    # -- what came of it ---------------------------------------------------------------------------

    def outcome(self) -> set[str]:
        """What was done, in words."""
        found = {
            "kept": self._count(self.remote(self.kept)) == RECORDS,
            "cut": self._count(self.remote(self.cut)) == RECORDS,
            "growth": self._partitions(self.remote(self.cut)) == 2,
            "settings": self._settings(self.remote(self.cut)) == RETENTION,
            "syncs": self._count(f"mm2-offset-syncs.{self.target}.internal") > 0,
            "map": self._count(f"mm2-offset-map.{self.source}.internal") > 0,
            "positions": self._count(f"mm2-offsets.{self.source}.internal") > 0,
            "acls": self.guarded.has_rule(SOMEBODY, self.remote(self.kept)),
        }
        return {name for name, done in found.items() if done}

    def checkpoints(self) -> int:
        return self._count(f"{self.source}.checkpoints.internal")

    def heartbeats(self) -> int:
        return self._count("heartbeats")

    def synced(self) -> set[str]:
        """Topics in which the group has an offset on the target."""
        topics = {self.remote(topic): topic for topic in (self.kept, self.cut)}
        found = committed_offsets(self.guarded.kafka, self.group)
        return {topics[where.topic] for where in found if where.topic in topics}

    def _count(self, topic: str) -> int:
        return end_offset(self.guarded.kafka, topic) if self._partitions(topic) else 0

    def _partitions(self, topic: str) -> int:
        topics = self.guarded.admin.list_topics(timeout=30.0).topics
        return len(topics[topic].partitions) if topic in topics else 0

    def _settings(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        found = self.guarded.admin.describe_configs([resource])[resource].result(30.0)
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {name: entry.value for name, entry in found.items() if entry.source == own}

    def _alter(self, topic: str) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in RETENTION.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
        self.guarded.admin.incremental_alter_configs([resource])[resource].result(30.0)

    def _commit(self) -> None:
        offsets = {TopicPartition(topic, 0): RECORDS for topic in (self.kept, self.cut)}
        commit_offsets(self.guarded.kafka, self.group, offsets)


def flush(writer: RecordProducer) -> None:
    """Until all is stored, or something was refused."""
    wait_for(
        lambda: writer.flush(FLUSH_PART_SECONDS) or writer.last_error,
        within=SECONDS,
        describe="what was written is stored, or refused",
    )


def warnings_of(records: Iterable[logging.LogRecord]) -> list[str]:
    return [record.getMessage() for record in records if record.levelno >= logging.WARNING]


def _under(prefix: str, settings: dict[str, str]) -> dict[str, str]:
    return {f"{prefix}.{key}": value for key, value in settings.items()}
