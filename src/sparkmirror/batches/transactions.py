"""Which transactional batches were aborted, by the rule of Java's consumer (CompletedFetch).

KIP-98: brokers hand out aborted batches, too, and leave it to the reader to drop them. A fetch
response lists (producer id, first offset) of the aborted transactions it touches. A transaction
becomes active at the first batch whose last offset reaches its first offset, and ends at its
producer's abort marker.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.batches.header import CONTROL, NO_PRODUCER_ID, TRANSACTIONAL, Header
from sparkmirror.batches.records import decode

_ABORT = 0
_MARKER_KEY_BYTES = 4  # version, type
_MARKER_LIMIT_BYTES = 64 << 10


class AbortedTransactions:
    """The aborted transactions of one fetched partition; batches are shown in offset order."""

    __slots__ = ("_active", "_coming")

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        self._coming = sorted(((first, producer) for producer, first in aborted), reverse=True)
        self._active: set[int] = set()

    def holds(self, header: Header, batch: memoryview) -> bool:
        """Return whether the batch is data of an aborted transaction."""
        if header.producer_id == NO_PRODUCER_ID:
            return False
        while self._coming and self._coming[-1][0] <= header.last_offset:
            self._active.add(self._coming.pop()[1])
        if header.attributes & CONTROL:
            if is_abort_marker(batch):
                self._active.discard(header.producer_id)
            return False
        return bool(header.attributes & TRANSACTIONAL) and header.producer_id in self._active


def is_abort_marker(batch: memoryview) -> bool:
    """Return whether a control batch ends its producer's transaction with an abort."""
    records = decode(batch, check_crcs=False, limit_bytes=_MARKER_LIMIT_BYTES)
    if not records:
        return False
    key = records[0].key or b""
    return len(key) >= _MARKER_KEY_BYTES and int.from_bytes(key[2:4], "big") == _ABORT
