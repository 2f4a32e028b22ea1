"""A checkpoint connector without clusters: groups, records and topics that the test plays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from sparkmirror.batches.records import Record
from sparkmirror.connect.checkpoint.checkpoint_topic import CheckpointTopic
from sparkmirror.connect.checkpoint.group_offset_sync import GroupOffsetSync
from sparkmirror.connect.checkpoint.offset_translator import OffsetTranslator
from sparkmirror.connect.checkpoint.translation_reader import TranslationReader
from sparkmirror.connect.storage.record_producer import KeyValueTime, OnDone, RecordProducer
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.records import Checkpoint, OffsetSync
from sparkmirror.mirror.translation.offset_map_chunks import Chunk, ChunkKey
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.group_admin import DescribedGroup, GroupAdmin, GroupOffset, ListedGroup
from sparkmirror.wire.protocol.error_codes import UNKNOWN_MEMBER_ID, broker_error
from tests.connect.fakes import FakeAdmin
from tests.connect.local_checkpoints import LocalCheckpoints
from tests.flows import make_flow

Offsets = dict[TopicPartition, GroupOffset]


class FakeGroups(FakeAdmin):
    """Groups of one cluster, in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.states: dict[str, str] = {}
        self.offsets: dict[str, Offsets] = {}
        self.errors: dict[str, KafkaError] = {}
        self.refused: dict[TopicPartition, KafkaError] = {}
        self.altered: list[tuple[str, dict[TopicPartition, tuple[int, str]]]] = []
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.starts: dict[TopicPartition, int | KafkaError] = {}
        # Of those that are not here the end is far away.
        self.ends: dict[TopicPartition, int | KafkaError] = {}
        # Groups that get their first member right after they were described.
        self.joining: set[str] = set()

    def set(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        state: str = "Empty",
        metadata: str = "",
    ) -> None:
        """A group and what it committed."""
        self.states[group] = state
        self.offsets[group] = {tp: GroupOffset(at, metadata) for tp, at in offsets.items()}

    def remove(self, group: str) -> None:
        del self.states[group], self.offsets[group]

    def list_groups(self) -> list[ListedGroup]:
        return [ListedGroup(group, "consumer", state, "") for group, state in self.states.items()]

    def describe_groups(self, group_ids: Iterable[str]) -> dict[str, DescribedGroup]:
        groups = tuple(group_ids)
        self.asked.append(("states", groups))
        found = {group: self._describe(group) for group in groups}
        self.states |= dict.fromkeys(self.joining & self.states.keys(), "Stable")
        return found

    def _describe(self, group: str) -> DescribedGroup:
        return DescribedGroup(self.states.get(group, "Dead"), self.errors.get(group))

    def committed_offsets(self, group_ids: Iterable[str]) -> dict[str, Offsets | KafkaError]:
        groups = tuple(group_ids)
        self.asked.append(("offsets", groups))
        return {group: self.errors.get(group) or self.offsets.get(group, {}) for group in groups}

    def alter_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, tuple[int, str]]
    ) -> dict[TopicPartition, KafkaError | None]:
        if self.states.get(group_id, "Dead") not in ("Empty", "Dead"):
            error = broker_error(f"commit offsets of '{group_id}'", UNKNOWN_MEMBER_ID)
            return dict.fromkeys(offsets, error)
        self.altered.append((group_id, dict(offsets)))
        self.states.setdefault(group_id, "Empty")
        for tp, (offset, metadata) in offsets.items():
            if tp not in self.refused:
                self.offsets.setdefault(group_id, {})[tp] = GroupOffset(offset, metadata)
        return {tp: self.refused.get(tp) for tp in offsets}

    def alter_many(
        self,
        wanted: Mapping[str, Mapping[TopicPartition, tuple[int, str]]],
        is_stopping: Callable[[], bool],
    ) -> dict[str, dict[TopicPartition, KafkaError | None]]:
        return {
            group: self.alter_offsets(group, offsets)
            for group, offsets in wanted.items()
            if not is_stopping()
        }

    def end_offsets(
        self, partitions: Iterable[TopicPartition], seconds: float | None = None
    ) -> dict[TopicPartition, int | KafkaError]:
        return {tp: self.ends.get(tp, 1 << 60) for tp in partitions}

    def start_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | KafkaError]:
        return {tp: self.starts[tp] for tp in partitions}


class FakeWriter:
    """Takes records, and stores them at once unless it refuses."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, int, list[KeyValueTime]]] = []
        self.refuses: KafkaError | None = None
        self.waiting = 0
        self.last_error = ""
        self.missing: frozenset[str] = frozenset()

    def send(
        self,
        topic: str,
        partition: int,
        records: Sequence[KeyValueTime],
        on_done: OnDone | None = None,
    ) -> None:
        if self.refuses is None:
            self.batches.append((topic, partition, list(records)))
        if on_done is not None:
            on_done(self.refuses)

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """All that were written, in order."""
        return [
            Checkpoint.decode(key or b"", value or b"")
            for topic, _, rows in self.batches
            if topic.endswith("checkpoints.internal")
            for key, value, _ in rows
        ]


class FakeFollower:
    """Returns what a test puts in, once."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.restarted = False
        self.new: list[Record] = []
        self.error: KafkaError | None = None
        self.is_closed = False
        self.has_given_up = False

    def catch_up(self, seconds: float) -> Sequence[Record]:
        if self.error is not None:
            raise self.error
        records, self.new = self.new, []
        return records

    def cancel(self) -> None:
        self.has_given_up = True

    def close(self) -> None:
        self.is_closed = True


class PassingTime:
    """Passes only while somebody rests; `happens` is called then."""

    def __init__(self) -> None:
        self.now = 0.0
        self.happens: Callable[[], None] = lambda: None
        self.is_stopping = False

    def rest(self, seconds: float) -> bool:
        self.now += seconds
        if seconds:
            self.happens()
        return self.is_stopping

    def seconds_of(self, run: Callable[[], None]) -> float:
        """How long it rests."""
        before = self.now
        run()
        return self.now - before


class Checkpoints(LocalCheckpoints):
    """The real connector of a flow a->b over fakes."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        target: Sequence[str] = ("127.0.0.1:1",),
        partner_problem: Callable[[], str] = lambda: "",
    ) -> None:
        flow = make_flow(folder, settings, target=target)
        super().__init__(flow, partner_problem=partner_problem)
        self.source, self.target, self.writer = FakeGroups(), FakeGroups(), FakeWriter()
        self.syncs, self.map = FakeFollower("syncs"), FakeFollower("map")
        self._admins = [cast("GroupAdmin", self.source), cast("GroupAdmin", self.target)]
        self._source, self._target = self._admins
        self._group_sync = GroupOffsetSync(self._flow, self.target)
        self.time = PassingTime()
        self._reader = TranslationReader(self._flow, self.time.rest, lambda: self.time.now)
        self._writer = cast("RecordProducer", self.writer)
        self._offsets._writer = self._writer
        self._log = CheckpointTopic(
            self._log.topic, "MirrorCheckpointConnector", self.writer, self._offsets
        )

    def make_ready(self) -> None:
        """As after reading an empty checkpoints topic."""
        self._translator = OffsetTranslator(self.syncs, self.map, must_read_to_end=False)

    def add_sync(self, tp: TopicPartition, upstream: int, downstream: int) -> None:
        """A record of the offset-syncs topic."""
        sync = OffsetSync(*tp, upstream, downstream)
        self.syncs.new.append(Record(0, 0, sync.encode_key(), sync.encode_value()))

    def add_chunk(self, tp: TopicPartition, chunk: Chunk) -> None:
        """A record of the offset map's topic."""
        key = ChunkKey(*tp, chunk.first).encode()
        self.map.new.append(Record(0, 0, key, chunk.encode()))
