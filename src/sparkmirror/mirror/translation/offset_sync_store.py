"""Translates offsets of consumer groups with a few selected offset syncs.

Runs on: worker, in the checkpoint connector. Pure: the reader of the offset-syncs topic adds its
records here, in order. Mirrors: org.apache.kafka.connect.mirror.OffsetSyncStore (4.4).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from sparkmirror.mirror.records import OffsetSync
from sparkmirror.types import TopicPartition

SLOTS = 64
_LAST = SLOTS - 1


class TranslationKind(enum.Enum):
    """Whether an offset could be translated, and if not, why."""

    OFFSET = "translated"
    UNKNOWN = "the partition has no translation yet"
    TOO_OLD = "the group is behind all known translations of the partition"


@dataclass(frozen=True, slots=True)
class Translation:
    """A position on the target, or why there is none; offset is set for OFFSET only.

    `target_lost_records`: the remote topic was recreated or truncated, so earlier positions there
    may be larger than this one, and wrong.
    """

    kind: TranslationKind
    downstream_offset: int | None = None
    target_lost_records: bool = False

    @classmethod
    def to(cls, downstream_offset: int, *, target_lost_records: bool = False) -> Self:
        """The translation for a group that continues at this offset."""
        return cls(TranslationKind.OFFSET, downstream_offset, target_lost_records)


UNKNOWN = Translation(TranslationKind.UNKNOWN)
TOO_OLD = Translation(TranslationKind.TOO_OLD)


class OffsetSyncStore:
    """Keeps at most 64 syncs S[0..63] of each upstream partition, with growing distances.

    u is the upstream offset of a sync; with fewer syncs, several slots hold the same one:

    Invariant A: S[0] is the newest sync.
    Invariant B: S[i].u <= S[j].u + 2^j - 2^i for i < j: slots are not too far apart.
    Invariant C: S[i].u >= S[j].u + 2^max(i-2, 0) for i < j, or they are the same sync: slots are
                 not too close, so that all of the log is covered.
    Invariant D: S[63] is the oldest sync that may still be used (offsets below 2^62).
    Never ahead: a translated offset is at most one past the sync it used.

        source |-s?????r???g-|     s sync   ? maybe replicated   g group position
        target |-sg----r-----|     r read again after failover

    A sync that goes back upstream discards all others. With `must_read_to_end`, so does every sync
    until the topic was read to its end: without the checkpoints of earlier runs, an old sync could
    move a group back. Pass True if they could not be read.

    Slots are compared by identity: add a new object for each sync.
    Owned by one thread.
    """

    def __init__(self, must_read_to_end: bool) -> None:
        self._must_read_to_end = must_read_to_end
        self._is_read_to_end = False
        self._slots: dict[TopicPartition, list[OffsetSync]] = {}

    def add(self, sync: OffsetSync) -> None:
        """Add the next record of the offset-syncs topic."""
        tp = TopicPartition(sync.topic, sync.partition)
        slots = self._slots.get(tp)
        only_the_newest = self._must_read_to_end and not self._is_read_to_end
        if slots is None or only_the_newest or sync.upstream_offset < slots[0].upstream_offset:
            self._slots[tp] = [sync] * SLOTS
        else:
            _insert(slots, sync)

    def finish_load(self) -> None:
        """Start translating: the topic was read to the end that it had at the start."""
        self._is_read_to_end = True

    def slots(self, tp: TopicPartition) -> tuple[OffsetSync, ...]:
        """S[0..63] of an upstream partition; empty if it has no sync."""
        return tuple(self._slots.get(tp, ()))

    def translate_downstream(self, tp: TopicPartition, upstream_offset: int) -> Translation:
        """The position on the target for a group at this position of the source's `tp`."""
        if not self._is_read_to_end or tp not in self._slots:
            return UNKNOWN
        for sync in self._slots[tp]:
            if sync.upstream_offset <= upstream_offset:
                # One past the sync is safe: the group has read that record. More would be a guess:
                # how many of the records in between were copied is unknown.
                is_exact = sync.upstream_offset == upstream_offset
                return Translation.to(sync.downstream_offset + (0 if is_exact else 1))
        return TOO_OLD


def _insert(slots: list[OffsetSync], newest: OffsetSync) -> None:
    """Put the newest sync first, and move older ones back as the invariants require.

    Each slot takes an old sync if one fits, which keeps more different ones, else that of its
    neighbour. Slots after the first that need not change stay unchanged.
    """
    candidates = _Candidates(slots, newest)
    slots[0] = newest
    for current in range(1, SLOTS):
        replacement = candidates.choose(slots, current)
        if _invariant_b(slots[current - 1], slots[current], current - 1, current):
            return
        slots[current] = replacement


class _Candidates:
    """The previous syncs, from new to old, for slots that must change."""

    def __init__(self, slots: list[OffsetSync], newest: OffsetSync) -> None:
        self._old = slots.copy()
        self._next = 0
        self._chosen = newest

    def choose(self, slots: list[OffsetSync], current: int) -> OffsetSync:
        """The sync for slot `current`; the slots before it are final."""
        previous = slots[current - 1]
        for sync, is_repeated in self._remaining(current):
            recent = _invariant_b(previous, sync, current - 1, current)
            apart_from_previous = _invariant_c(previous, sync, current - 1)
            apart_from_next = current == _LAST or _invariant_c(sync, slots[current + 1], current)
            promoted = recent and apart_from_previous and apart_from_next
            skipped = is_repeated or not apart_from_previous
            if promoted:
                self._chosen = sync
            if promoted or skipped:
                self._next += 1
            if not skipped:
                break
        return self._chosen

    def _remaining(self, current: int) -> Iterator[tuple[OffsetSync, bool]]:
        """The next old sync, at least one, and whether the slot after it held the same."""
        while True:
            sync = self._old[self._next]
            yield sync, self._next < _LAST and self._old[self._next + 1] is sync
            if self._next >= current:
                return


def _invariant_b(left: OffsetSync, right: OffsetSync, i: int, j: int) -> bool:
    return left is right or left.upstream_offset <= right.upstream_offset + (1 << j) - (1 << i)


def _invariant_c(left: OffsetSync, right: OffsetSync, i: int) -> bool:
    return left is right or left.upstream_offset >= right.upstream_offset + (1 << max(i - 2, 0))
