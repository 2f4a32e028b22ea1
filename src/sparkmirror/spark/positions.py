"""How far each partition was copied, and the records that say so in Connect's offsets topic.

Runs on: executor. Pure bookkeeping: the copy loop sends what `take_commit` gives and tells when it
is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkmirror.batches.records import Record, encode
from sparkmirror.mirror.partitioner import partition_for_key
from sparkmirror.mirror.records import encode_offset_key, encode_offset_value
from sparkmirror.types import TopicPartition


@dataclass(slots=True)
class Commit:
    """Positions that one batch of the offsets topic carries."""

    last_offsets: dict[TopicPartition, int | None] = field(default_factory=dict)


class Positions:
    """The last upstream offset acknowledged by the target, and the last one committed."""

    def __init__(self, connector: str, cluster: str, offsets_topic: str, partitions: int) -> None:
        self._connector = connector
        self._cluster = cluster
        self._topic = offsets_topic
        self._partitions = partitions
        # None: whatever is stored holds no more.
        self._acked: dict[TopicPartition, int | None] = {}
        self._committed: dict[TopicPartition, int | None] = {}
        self._keys: dict[TopicPartition, bytes] = {}
        self._under_way = 0

    def acked(self, tp: TopicPartition, last_offset: int) -> None:
        """The target has everything of `tp` up to `last_offset`."""
        self._acked[tp] = last_offset

    def restarted(self, tp: TopicPartition) -> None:
        """Another topic has taken the name: until something of it is copied there is no position.

        The tombstone keeps a restart from taking the old topic's position for one of the new topic,
        and from leaving out what lies before it.
        """
        self._acked[tp] = None

    def forget(self, tp: TopicPartition) -> None:
        """The partition is no longer ours."""
        self._acked.pop(tp, None)
        self._committed.pop(tp, None)
        self._keys.pop(tp, None)

    @property
    def is_sending(self) -> bool:
        """True while a commit is under way."""
        return self._under_way > 0

    @property
    def is_committed(self) -> bool:
        """True when the offsets topic says all we know."""
        return self._under_way == 0 and self._acked == self._committed

    def is_committed_of(self, tp: TopicPartition) -> bool:
        """The same for one partition."""
        if tp not in self._acked:
            return True
        return tp in self._committed and self._committed[tp] == self._acked[tp]

    def take_commit(self, now_ms: int) -> list[tuple[TopicPartition, bytearray, Commit]]:
        """(partition of the offsets topic, batch, what it carries) for all that has changed.

        Nothing while an earlier commit is under way: an older position must not land after a newer.
        """
        if self._under_way:
            return []
        rows: dict[int, list[Record]] = {}
        commits: dict[int, Commit] = {}
        for tp, last_offset in self._acked.items():
            if self.is_committed_of(tp):
                continue
            key = self._key(tp)
            at = partition_for_key(key, self._partitions)
            batch = rows.setdefault(at, [])
            value = None if last_offset is None else encode_offset_value(last_offset)
            batch.append(Record(len(batch), now_ms, key, value))
            commits.setdefault(at, Commit()).last_offsets[tp] = last_offset
        self._under_way = len(rows)
        return [
            (TopicPartition(self._topic, at), encode(batch), commits[at])
            for at, batch in rows.items()
        ]

    def stored(self, commit: Commit) -> None:
        """The offsets topic has this commit."""
        self._under_way -= 1
        for tp, last_offset in commit.last_offsets.items():
            if tp in self._acked:
                self._committed[tp] = last_offset

    def _key(self, tp: TopicPartition) -> bytes:
        key = self._keys.get(tp)
        if key is None:
            key = encode_offset_key(self._connector, self._cluster, tp.topic, tp.partition)
            self._keys[tp] = key
        return key
