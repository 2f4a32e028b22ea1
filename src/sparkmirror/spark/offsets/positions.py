"""How far each partition was copied, and the records in Connect's offsets topic that hold it.

Runs on: executor. Pure bookkeeping: the copy loop sends what `take_commit` returns and reports when
it is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sparkmirror.batches.records import Record, encode
from sparkmirror.mirror.positions.partitioner import partition_for_key
from sparkmirror.mirror.positions.provenance import Provenance
from sparkmirror.mirror.records import encode_offset_key, encode_offset_value
from sparkmirror.types import TopicPartition


@dataclass(slots=True)
class Commit:
    """Positions that one batch carries, for this partition of the offsets topic."""

    partition: int
    last_offsets: dict[TopicPartition, int | None] = field(default_factory=dict)


class Positions:
    """The last upstream offset acknowledged by the target, and the last one committed."""

    def __init__(
        self,
        connector: str,
        cluster: str,
        offsets_topic: str,
        partitions: int,
        provenance: Callable[[TopicPartition, int], Provenance] = lambda *_: Provenance(),
    ) -> None:
        """`provenance` returns which log a partition and its last offset are of."""
        self._connector = connector
        self._cluster = cluster
        self._topic = offsets_topic
        self._partitions = partitions
        # None: what is stored is no longer valid.
        self._acked: dict[TopicPartition, int | None] = {}
        self._committed: dict[TopicPartition, int | None] = {}
        self._keys: dict[TopicPartition, bytes] = {}
        self._provenance = provenance
        # Positions that were decided, not reached: stored even if they look like the last one.
        self._decided: set[TopicPartition] = set()
        # Partitions of the offsets topic that have not acknowledged the last commit. Each is
        # separate: one without a leader must not keep the others' positions from being stored.
        self._under_way: set[int] = set()

    def acked(self, tp: TopicPartition, last_offset: int) -> None:
        """The target has everything of `tp` up to `last_offset`."""
        self._acked[tp] = last_offset

    def moved(self, tp: TopicPartition, last_offset: int) -> None:
        """The copy continues after `last_offset`, wherever it was before; -1: at offset 0."""
        self._acked[tp] = last_offset
        self._decided.add(tp)

    def restarted(self, tp: TopicPartition) -> None:
        """The topic was recreated: delete its position until records of the new one are copied.

        Without the tombstone, a restart would resume the new topic at the old one's position and
        skip the records before it.
        """
        self._acked[tp] = None
        self._decided.add(tp)

    def forget(self, tp: TopicPartition) -> None:
        """The partition is no longer ours."""
        self._acked.pop(tp, None)
        self._committed.pop(tp, None)
        self._keys.pop(tp, None)
        self._decided.discard(tp)

    @property
    def is_sending(self) -> bool:
        """True while a commit is under way."""
        return bool(self._under_way)

    @property
    def has_decided(self) -> bool:
        """True while a position that was decided waits for an earlier one to be stored."""
        return bool(self._decided)

    @property
    def is_committed(self) -> bool:
        """True when the offsets topic holds all positions."""
        return not (self._under_way or self._decided) and self._acked == self._committed

    def is_committed_of(self, tp: TopicPartition) -> bool:
        """The same for one partition."""
        if tp not in self._acked:
            return True
        if tp in self._decided:
            return False
        return tp in self._committed and self._committed[tp] == self._acked[tp]

    def take_commit(self, now_ms: int) -> list[tuple[TopicPartition, bytearray, Commit]]:
        """(partition of the offsets topic, batch, what it carries) for all that has changed.

        Nothing for a partition of the offsets topic where an earlier commit is under way: an older
        position must not land after a newer.
        """
        rows: dict[int, list[Record]] = {}
        commits: dict[int, Commit] = {}
        for tp, last_offset in self._acked.items():
            if self.is_committed_of(tp):
                continue
            key = self._key(tp)
            at = partition_for_key(key, self._partitions)
            if at in self._under_way:
                continue
            batch = rows.setdefault(at, [])
            batch.append(self._record(len(batch), now_ms, key, tp, last_offset))
            commits.setdefault(at, Commit(at)).last_offsets[tp] = last_offset
            self._decided.discard(tp)
        self._under_way |= rows.keys()
        return [
            (TopicPartition(self._topic, at), encode(batch), commits[at])
            for at, batch in rows.items()
        ]

    def stored(self, commit: Commit) -> None:
        """The offsets topic has this commit."""
        self._under_way.discard(commit.partition)
        for tp, last_offset in commit.last_offsets.items():
            if tp in self._acked:
                self._committed[tp] = last_offset

    def _record(
        self, at: int, now_ms: int, key: bytes, tp: TopicPartition, last_offset: int | None
    ) -> Record:
        if last_offset is None:
            return Record(at, now_ms, key, None)
        headers = self._provenance(tp, last_offset).encode()
        return Record(at, now_ms, key, encode_offset_value(last_offset), headers)

    def _key(self, tp: TopicPartition) -> bytes:
        key = self._keys.get(tp)
        if key is None:
            key = encode_offset_key(self._connector, self._cluster, tp.topic, tp.partition)
            self._keys[tp] = key
        return key
