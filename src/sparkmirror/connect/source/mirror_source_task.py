"""The worker's side of a copy task: its start message, and changes of its partitions.

Runs on: worker. Spark does the copying (spark/copy); `TaskRunner` keeps it running. Positions are
read when the copy task connects to the worker, and when it gets more partitions.
Mirrors: org.apache.kafka.connect.mirror.MirrorSourceTask.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from sparkmirror.config.connector_spec import ConnectorSpec
from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.connect.connector import TaskConfigs, TaskReport
from sparkmirror.connect.source.stale_positions import is_stale
from sparkmirror.connect.states import TaskEvent
from sparkmirror.connect.storage.offset_backing_store import KafkaOffsetBackingStore
from sparkmirror.mirror.policy import flow_offset_syncs_topic, flow_policy
from sparkmirror.mirror.task_configs import assigned_partitions, stale_offsets
from sparkmirror.mirror.translation.offset_map_chunks import offset_map_topic
from sparkmirror.spark.link.files import SecretFileSender, clients_of_tasks
from sparkmirror.spark.link.frames import LinkMessage
from sparkmirror.spark.task_config import AssignedPartition, encode_assigned, start_message
from sparkmirror.spark.task_runner import TaskRunner, TaskState, reason_of
from sparkmirror.types import TopicPartition

# How soon executors on other machines get a renewed certificate, keytab or token.
FILES_SECONDS = 10.0

MakeRunner = Callable[[str, Callable[[], LinkMessage]], TaskRunner]
"""Makes the runner of a task from its name and a function that makes its start message."""


class SourceTaskSettings:
    """What the copy tasks of one source connector share on this worker; for any thread."""

    def __init__(self, spec: ConnectorSpec[SourceConfig], store: KafkaOffsetBackingStore) -> None:
        self.spec = spec
        self.store = store
        # Positions that belong to deleted topics.
        self._stale: dict[TopicPartition, int] = {}
        self._policy = flow_policy(spec.config)
        self._preparing = threading.Lock()

    def prepare(self) -> None:
        """Create or check the offsets topic, once for all tasks."""
        with self._preparing:
            if not self.store.partitions:
                self.store.prepare_alone()

    def note_stale(self, task: Mapping[str, str]) -> None:
        """Note the positions of deleted topics that are listed in a task's settings."""
        self._stale |= stale_offsets(task)

    @property
    def offset_syncs_topic(self) -> str:
        """Name of the topic for offset syncs."""
        return flow_offset_syncs_topic(self._policy, self.spec.config)

    @property
    def offset_map_topic(self) -> str:
        """Name of the offset map topic; empty if records go to a cluster other than the target."""
        config = self.spec.config
        is_elsewhere = not config.producer.client.is_same_cluster(config.target_client)
        return "" if is_elsewhere else offset_map_topic(config.source_alias)

    def start_message(self, partitions: Sequence[TopicPartition]) -> LinkMessage:
        """All that a task needs to copy these partitions; reads their positions."""
        syncs = self.spec.config.emit_offset_syncs_enabled
        return start_message(
            self.spec.config.settings,
            self.spec.worker_props,
            self.store.partitions,
            self.with_positions(partitions),
            offset_syncs_topic=self.offset_syncs_topic if syncs else "",
            offset_map_topic=self.offset_map_topic if syncs else "",
        )

    def with_positions(self, partitions: Sequence[TopicPartition]) -> list[AssignedPartition]:
        """The target partition and the stored position of each partition."""
        stored = self.store.load()
        rows = []
        for tp in partitions:
            position = stored.get(tp)
            remote = self._policy.format_remote_topic(self.spec.config.source_alias, tp.topic)
            target = TopicPartition(remote, tp.partition)
            if position is None or is_stale(position, self._stale.get(tp)):
                rows.append(AssignedPartition(tp, target, None))
            else:
                rows.append(AssignedPartition(tp, target, *position))
        return rows


class MirrorSourceTask:
    """Copy task `number` of a connector; a `TaskWork`."""

    def __init__(
        self,
        settings: SourceTaskSettings,
        number: int,
        partitions: Iterable[TopicPartition],
        make_runner: MakeRunner,
    ) -> None:
        self.runner: TaskRunner | None = None
        # A task on Spark reports errors through its state and its log.
        self.last_error = ""
        self._settings = settings
        self._number = number
        self._make_runner = make_runner
        self._lock = threading.Lock()
        self._partitions = list(partitions)
        # For executors on other machines; those on this one read the worker's files.
        self._files: SecretFileSender | None = None
        self._files_at = 0.0
        # The attempt that `restart` has stopped; it still runs for a moment.
        self._ended_attempt = 0

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions that this task copies."""
        with self._lock:
            return list(self._partitions)

    def connect(self) -> None:
        """Make the runner, which waits until Spark is up, and create the offsets topic."""
        spec = self._settings.spec
        name = f"{spec.flow}|{spec.name}-{self._number}"
        self.runner = self._make_runner(name, self.start_message)
        if self.runner.needs_files:
            self._files = SecretFileSender(clients_of_tasks(spec.config, spec.worker))
        self._settings.prepare()

    def start(self) -> None:
        self._running.start()

    def look(self) -> None:
        """Send renewed secret files to the executor, for its next connections."""
        if self._files is None or time.monotonic() < self._files_at:
            return
        self._files_at = time.monotonic() + FILES_SECONDS
        message = self._files.take_changed()
        if message is not None:
            self._running.send(message)

    def reconfigure(self, configs: TaskConfigs) -> None:
        self._settings.note_stale(configs[self._number])
        self.assign(assigned_partitions(configs[self._number]))

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Send added and revoked partitions over the link, after reading the positions.

        A start message made at the same time may have the old or the new partitions; the runner
        sends it before these messages.
        """
        before = set(self.partitions)
        gone, new = sorted(before.difference(partitions)), sorted(set(partitions) - before)
        messages: list[LinkMessage] = []
        if gone:
            rows = [[tp.topic, tp.partition] for tp in gone]
            messages.append({"type": "revoke", "partitions": rows})
        if new:
            assigned = encode_assigned(self._settings.with_positions(new))
            messages.append({"type": "assign", "assigned": assigned})
        with self._lock:
            self._partitions = list(partitions)
        for message in messages:
            self._running.send(message)

    def restart(self) -> bool:
        self._ended_attempt = self._running.attempts
        self._running.restart()
        return True

    def stop(self) -> None:
        if self.runner is not None:
            self.runner.stop()

    def join(self, seconds: float) -> bool:
        return self.runner is None or self.runner.join(seconds)

    @property
    def is_released(self) -> bool:
        """Whether its Spark job has ended, or its executor may write no more."""
        return self.runner is None or self.runner.is_released

    def report(self) -> TaskReport:
        runner = self._running
        state, trace = runner.state, runner.trace
        if state is TaskState.RUNNING:
            is_ending = runner.attempts == self._ended_attempt
            return TaskReport(TaskEvent.ENDED if is_ending else TaskEvent.CALLED_IN)
        if not runner.has_failed:
            return TaskReport(TaskEvent.ENDED)
        reason = reason_of(trace)
        return TaskReport(TaskEvent.RAISED, trace if trace == reason else f"{reason}\n{trace}")

    def take_topics(self) -> set[str]:
        return set() if self.runner is None else self.runner.take_topics()

    def start_message(self) -> LinkMessage:
        """Called when the copy task has connected, on its link's thread."""
        message = self._settings.start_message(self.partitions)
        return message if self._files is None else message | self._files.all()

    @property
    def _running(self) -> TaskRunner:
        assert self.runner is not None, "connect comes first"
        return self.runner
