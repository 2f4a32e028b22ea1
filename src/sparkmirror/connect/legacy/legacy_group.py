"""MirrorMaker 1's consumer group on the source: where the copy begins, and what it commits.

Runs on: worker, the leader, beside the source connector of the flow. The tasks store their
positions in the flow's offsets topic as always. Before they start, group offsets that are newer are
written to that topic; while they run, and at the end, the stored positions are committed for the
group.

So the group is never ahead of what the target has confirmed. Positions of a deleted topic are not
committed for a new topic of the same name (by topic ids, KIP-516, so with brokers 2.8 or later).

A group has no members while sparkmirror copies: if it has some, MirrorMaker 1 runs, and this
process ends.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from sparkmirror.config.clients import ProducerConfig
from sparkmirror.config.connector_spec import ConnectorSpec
from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.connect.checkpoint.group_plans import is_in_use
from sparkmirror.connect.dedicated.mirror_herder import raise_together
from sparkmirror.connect.legacy.legacy_topics import fewer_partitions
from sparkmirror.connect.naming import some_names
from sparkmirror.connect.scheduler import Scheduler
from sparkmirror.connect.storage.kafka_based_log import now_ms
from sparkmirror.connect.storage.offset_backing_store import KafkaOffsetBackingStore, StoredPosition
from sparkmirror.connect.storage.record_producer import RecordProducer
from sparkmirror.errors import BrokerError, KafkaError, MirrorError, TransportError
from sparkmirror.mirror.positions.group_positions import (
    IDLE,
    changed_by_others,
    commit_mark,
    only_stored,
    plan_commit,
    plan_corrections,
    plan_seeds,
)
from sparkmirror.mirror.positions.partitioner import partition_for_key
from sparkmirror.mirror.positions.provenance import Provenance
from sparkmirror.mirror.records import encode_offset_key, encode_offset_value
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.admin import Admin
from sparkmirror.wire.admin.group_admin import GroupAdmin, GroupOffset
from sparkmirror.wire.protocol.error_codes import UNKNOWN_TOPIC_OR_PARTITION

log = logging.getLogger(__name__)

WATCH_SECONDS = 5.0
# The first commit after a start, or after new partitions, so that a crash soon after is harmless.
FIRST_COMMIT_SECONDS = 1.0
# Each commit reads the offsets topic.
LEAST_SECONDS = 0.5
# Brokers delete offsets of a group without members a week (offsets.retention.minutes) after their
# last commit, even if the partition has no new records. So unchanged offsets are renewed.
RENEW_SECONDS = 3600.0
WRITE_SECONDS = 30.0
LAST_REQUEST_SECONDS = 3.0

NOT_YET = "nothing is copied until then"
IN_USE = (
    "group '{group}' has active members on '{alias}' ({state}): MirrorMaker 1 is running; stop all "
    "of its processes first, or both would copy every record"
)


class LegacyGroup:
    """The group of one flow. `failure`: why the process must end.

    `assignment` returns which partitions are copied, by task.
    """

    def __init__(
        self,
        spec: ConnectorSpec[SourceConfig],
        assignment: Callable[[], Sequence[Sequence[TopicPartition]]],
        group: str,
        interval_ms: int,
    ) -> None:
        self.failure: MirrorError | None = None
        self.is_committed = True
        self._spec = spec
        self._group = group
        self._assignment = assignment
        self._interval = max(interval_ms / 1000, LEAST_SECONDS)
        self._store = KafkaOffsetBackingStore.of(spec.worker, spec.config)
        self._target_id = ""
        self._ours: set[TopicPartition] = set()
        self._seen: set[TopicPartition] = set()
        self._next_commit = 0.0
        self._pause = FIRST_COMMIT_SECONDS
        self._next_renewal = 0.0
        self._admins: list[Admin] = []
        self._scheduler = Scheduler(str(spec.flow))

    # -- lifecycle ---------------------------------------------------------------------------------

    def connect(self) -> None:
        """Check both clusters; changes nothing.

        Raises:
            KafkaError: the group is in use, or a cluster cannot be reached.
        """
        config = self._spec.config
        self._groups = GroupAdmin(config.source_client, config.admin_timeout_ms)
        self._admins.append(self._groups)
        self._target = Admin(config.target_client, config.admin_timeout_ms)
        self._admins.append(self._target)
        self._target_id = self._target.cluster_id()
        raise_together([*self._members(), *fewer_partitions(config, self._groups, self._target)])

    def disconnect(self) -> None:
        """Close what `connect` opened."""
        for admin in self._admins:
            admin.close()

    def start(self) -> None:
        """Write the group's offsets where the tasks read them; called before any task starts.

        Raises:
            KafkaError: MirrorMaker 1 has been started, or offsets cannot be read or written.
        """
        self._failing(self.refuse_members)
        self._store.prepare(self._target, self._spec.config.target_client)
        # Read before the offsets: if a topic is being replaced, they get the id of the old one.
        topic_ids = self._topic_ids()
        stored = {tp: at.next_offset for tp, at in self._stored(topic_ids).items()}
        committed = self._committed()
        seeds = plan_seeds(stored, committed, commit_mark(self._target_id), topic_ids)
        self._write(seeds, topic_ids)
        self._log_begin(len(seeds), stored, committed)
        self._next_renewal = time.monotonic()
        self._scheduler.repeat("check the group", WATCH_SECONDS, self._watch, delayed=True)
        tick = min(self._interval, FIRST_COMMIT_SECONDS)
        self._scheduler.repeat("commit to the group", tick, self._commit_if_due, delayed=True)
        self._scheduler.start()

    def stop(self) -> None:
        """Start nothing new; `join` makes the last commit."""
        self._scheduler.stop()

    def join(self, seconds: float) -> bool:
        """Commit the last stored positions after the tasks have ended; returns whether that
        worked.
        """
        try:
            if not self._scheduler.join(max(seconds, LAST_REQUEST_SECONDS)):
                raise TransportError("an earlier commit is still pending")
            self.commit(everything=True)
        except MirrorError as error:
            self.is_committed = False
            log.warning(
                "[%s] the last offsets were not committed for group '%s': %s; MirrorMaker 1 would "
                "copy the records after the last commit again",
                self._spec.flow,
                self._group,
                error,
            )
        self.disconnect()
        return self.is_committed

    @property
    def last_error(self) -> str:
        """Why the last commit failed; empty when it went well."""
        return self._scheduler.last_error

    # -- the group ---------------------------------------------------------------------------------

    def refuse_members(self) -> None:
        """Raise KafkaError if the group has members."""
        for error in self._members():
            raise error

    def _members(self) -> list[MirrorError]:
        """Why the group cannot be used: it has members, or its state is unknown."""
        state, error = self._groups.describe_groups([self._group])[self._group]
        if error is not None:
            return [error]
        return [] if state in IDLE else [self._in_use(state)]

    def commit(self, *, everything: bool) -> None:
        """Commit the stored positions of the copied partitions.

        Raises:
            KafkaError: the group is in use, or a partition's offset was rejected.
        """
        partitions = {tp for task in self._assignment() for tp in task}
        if not partitions:
            return
        topic_ids = self._topic_ids()
        wanted = self._wanted(sorted(partitions), topic_ids)
        committed = self._committed()
        corrected = plan_corrections(committed, self._target_id, topic_ids, partitions)
        mark = commit_mark(self._target_id)
        self._log_changed(changed_by_others(self._ours, committed, mark, wanted))
        changes = plan_commit(corrected | wanted, committed, everything=everything)
        outcomes = self._groups.alter_offsets(self._group, changes)
        for error in outcomes.values():
            if is_in_use(error):
                raise self._in_use("the broker rejected its commit")
            # With a topic that was just deleted, the group's offsets are gone too.
            if error is not None and not _is_gone(error):
                raise error
        self._ours |= {tp for tp, error in outcomes.items() if error is None}

    def _wanted(
        self, partitions: Iterable[TopicPartition], topic_ids: Mapping[str, bytes]
    ) -> dict[TopicPartition, tuple[int, str]]:
        """The offsets that the group should have, each marked with the id of its topic."""
        stored = self._stored(topic_ids)
        wanted = {}
        for tp in partitions:
            if (position := stored.get(tp)) is not None:
                topic_id = position.provenance.topic_id or topic_ids.get(tp.topic, b"")
                mark = commit_mark(self._target_id, topic_id)
                wanted[tp] = (position.next_offset, mark)
        return wanted

    def _commit_if_due(self) -> None:
        """Soon after the assignment changes, then less often, up to the configured interval."""
        now = time.monotonic()
        partitions = {tp for task in self._assignment() for tp in task}
        if not partitions <= self._seen:
            self._seen |= partitions
            self._pause = min(FIRST_COMMIT_SECONDS, self._interval)
            self._next_commit = now + self._pause
        if not partitions or now < self._next_commit:
            return
        self._pause = min(self._pause * 2, self._interval)
        self._next_commit = now + self._pause
        renews = now >= self._next_renewal
        self._failing(lambda: self.commit(everything=renews))
        if renews:
            self._next_renewal = now + RENEW_SECONDS

    def _watch(self) -> None:
        self._failing(self.refuse_members)

    def _failing(self, do: Callable[[], None]) -> None:
        """Errors that only an operator can fix end the process; others are retried."""
        try:
            do()
        except _InUse as error:
            self.failure = error
            raise

    def _in_use(self, state: str) -> _InUse:
        alias = self._spec.config.source_alias
        return _InUse(IN_USE.format(group=self._group, alias=alias, state=state))

    # -- positions ---------------------------------------------------------------------------------

    def _stored(self, topic_ids: Mapping[str, bytes]) -> dict[TopicPartition, StoredPosition]:
        """The stored positions, except those of topics that were deleted and recreated."""
        return {
            tp: position
            for tp, position in self._store.load().items()
            if position.is_of(topic_ids.get(tp.topic, b""))
        }

    def _committed(self) -> Mapping[TopicPartition, GroupOffset]:
        found = self._groups.committed_offsets([self._group])[self._group]
        if isinstance(found, KafkaError):
            raise found
        return found

    def _topic_ids(self) -> dict[str, bytes]:
        """The ids of the source's topics; empty where brokers (before 2.8) have none."""
        return {name: view.topic_id for name, view in self._groups.list_topics().items()}

    def _write(self, seeds: Mapping[TopicPartition, int], topic_ids: Mapping[str, bytes]) -> None:
        """Store positions as the tasks do; the header marks -1 as intended: begin at offset 0."""
        if not seeds:
            return
        worker, config = self._spec.worker, self._spec.config
        # All records of a batch share its header with the topic id.
        rows: dict[tuple[int, bytes], list[tuple[bytes | None, bytes | None, int]]] = {}
        for tp, offset in seeds.items():
            key = encode_offset_key(config.name, config.source_alias, tp.topic, tp.partition)
            at = partition_for_key(key, self._store.partitions)
            row = (key, encode_offset_value(offset - 1), now_ms())
            rows.setdefault((at, topic_ids.get(tp.topic, b"")), []).append(row)
        topic = self._store.topic
        errors: list[KafkaError | None] = []
        producer = ProducerConfig(worker.client)
        writer = RecordProducer(producer, f"'{topic}'", {topic: NOT_YET})
        writer.start()
        try:
            for (at, topic_id), batch in rows.items():
                headers = Provenance(topic_id or None).encode()
                writer.send(topic, at, batch, errors.append, headers)
            is_written = writer.flush(WRITE_SECONDS)
        finally:
            writer.close()
        failures = [error for error in errors if error is not None]
        if failures or not is_written:
            why = failures[0] if failures else writer.last_error or "no answer"
            raise TransportError(f"write the group's offsets to '{topic}': {why}")

    # -- logging -----------------------------------------------------------------------------------

    def _log_begin(
        self,
        seeds: int,
        stored: Mapping[TopicPartition, int],
        committed: Mapping[TopicPartition, GroupOffset],
    ) -> None:
        log.info(
            "[%s] group '%s' has offsets of %d partitions; %d of them are newer than those in '%s'",
            self._spec.flow,
            self._group,
            len(committed),
            seeds,
            self._store.topic,
        )
        if not committed:
            log.warning(
                "[%s] group '%s' has no committed offsets on '%s': if MirrorMaker 1 has used it, "
                "check group.id and bootstrap.servers",
                self._spec.flow,
                self._group,
                self._spec.config.source_alias,
            )
        if lost := only_stored(stored, committed):
            log.warning(
                "[%s] group '%s' no longer has an offset for %s; they resume at sparkmirror's "
                "stored positions. To begin elsewhere, stop sparkmirror and set offsets with "
                "kafka-consumer-groups.sh",
                self._spec.flow,
                self._group,
                some_names(map(str, lost)),
            )

    def _log_changed(self, partitions: list[TopicPartition]) -> None:
        if partitions:
            log.warning(
                "[%s] another client has committed offsets for group '%s', in %s; this has no "
                "effect while sparkmirror runs: it commits its own offsets again. Stop it first",
                self._spec.flow,
                self._group,
                some_names(map(str, partitions)),
            )


def _is_gone(error: KafkaError) -> bool:
    return isinstance(error, BrokerError) and error.code == UNKNOWN_TOPIC_OR_PARTITION


class _InUse(KafkaError):
    """The group has members."""
