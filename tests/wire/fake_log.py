"""One partition of the fake broker: offsets, and Kafka's rules for idempotent producers.

The rules are those of org.apache.kafka.storage.internals.log.ProducerStateManager, the two that
surprise included: the last five batches of a producer are recognised when they come again, and a
producer that the log knows nothing of may begin with any sequence number.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from crc32c import crc32c

from sparkmirror.batches.records import Record, decode, encode

NONE = 0
OFFSET_OUT_OF_RANGE = 1
CORRUPT_MESSAGE = 2
MESSAGE_TOO_LARGE = 10
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
INVALID_PRODUCER_EPOCH = 47

REMEMBERED = 5
EARLIEST = -2
LAST_SEQUENCE = (1 << 31) - 1
# last offset delta, two timestamps, producer id, epoch, first sequence, record count
TAIL = struct.Struct(">iqqqhii")


class Appended(NamedTuple):
    """A broker's result for one batch."""

    code: int
    base_offset: int


class Sent(NamedTuple):
    """A batch that is remembered, to recognise it when it comes again."""

    first_sequence: int
    last_sequence: int
    base_offset: int


@dataclass(slots=True)
class ProducerState:
    """What the log knows of one producer."""

    epoch: int
    sent: deque[Sent] = field(default_factory=lambda: deque(maxlen=REMEMBERED))


class Stored(NamedTuple):
    """One batch of the log."""

    base_offset: int
    end_offset: int
    data: bytes


@dataclass(slots=True)
class FakeLog:
    """A partition's batches."""

    max_message_bytes: int = 1 << 30
    start_offset: int = 0
    end_offset: int = 0
    batches: list[Stored] = field(default_factory=list)
    producers: dict[int, ProducerState] = field(default_factory=dict)
    # (leader epoch, first offset), as a broker keeps them.
    epochs: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])

    def write(self, values: Iterable[bytes]) -> None:
        """Records of a producer without idempotence, as one batch."""
        records = [Record(at, 1_700_000_000_000, None, value) for at, value in enumerate(values)]
        assert self.append(bytes(encode(records))).code == NONE

    def offset_at(self, timestamp: int) -> int:
        """As ListOffsets has it: -2 is the start, -1 the end; -1 when all batches are older."""
        if timestamp < 0:
            return self.start_offset if timestamp == EARLIEST else self.end_offset
        ages = ((stored, *struct.unpack_from(">q", stored.data, 35)) for stored in self.batches)
        return next((stored.base_offset for stored, newest in ages if newest >= timestamp), -1)

    def append(self, data: bytes) -> Appended:
        """Check a batch as a broker does, and store it."""
        last_delta, _, _, producer_id, epoch, sequence, _ = TAIL.unpack_from(data, 23)
        if struct.unpack_from(">I", data, 17)[0] != crc32c(data[21:]):
            return Appended(CORRUPT_MESSAGE, -1)
        if len(data) > self.max_message_bytes:
            return Appended(MESSAGE_TOO_LARGE, -1)
        if producer_id < 0:
            return Appended(NONE, self._store(data, last_delta))
        last = (sequence + last_delta) & LAST_SEQUENCE
        state = self.producers.get(producer_id)
        if state is not None:
            for sent in state.sent:
                if sent[:2] == (sequence, last) and state.epoch == epoch:
                    return Appended(NONE, sent.base_offset)
            code = _check_sequence(state, epoch, sequence)
            if code:
                return Appended(code, -1)
        if state is None or state.epoch != epoch:
            state = self.producers[producer_id] = ProducerState(epoch)
        base_offset = self._store(data, last_delta)
        state.sent.append(Sent(sequence, last, base_offset))
        return Appended(NONE, base_offset)

    def read(self, offset: int, most_bytes: int) -> bytes:
        """Batches from the one that holds `offset` on; at least one if there is one."""
        found = bytearray()
        for batch in self.batches:
            if batch.end_offset <= offset:
                continue
            if found and len(found) + len(batch.data) > most_bytes:
                break
            found += batch.data
        return bytes(found)

    def values(self) -> list[bytes]:
        """The values of all records, in order."""
        return [record.value or b"" for record in self.records()]

    def records(self) -> list[Record]:
        """All records, in order."""
        return [record for batch in self.batches for record in decode(batch.data)]

    def delete_before(self, offset: int) -> None:
        """Retention."""
        self.batches = [batch for batch in self.batches if batch.end_offset > offset]
        self.start_offset = offset

    def truncate(self, end_offset: int = 0) -> None:
        """Lose everything from there on, as after an unclean election; the producers too."""
        self.batches = [batch for batch in self.batches if batch.end_offset <= end_offset]
        self.producers.clear()
        self.start_offset = min(self.start_offset, end_offset)
        self.end_offset = end_offset
        self.epochs = [row for row in self.epochs if row[1] < end_offset] or [(0, 0)]

    def elect(self, epoch: int) -> None:
        """Another leader begins to write."""
        self.epochs.append((epoch, self.end_offset))

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The last epoch up to this one, and its end: LeaderEpochFileCache.endOffsetFor."""
        if epoch > self.epochs[-1][0]:
            return -1, -1
        later = [start for own, start in self.epochs if own > epoch]
        floor = max((own for own, _ in self.epochs if own <= epoch), default=epoch)
        return floor, later[0] if later else self.end_offset

    def _store(self, data: bytes, last_delta: int) -> int:
        base_offset = self.end_offset
        self.end_offset += last_delta + 1
        # The leader writes the base offset and its epoch; neither is part of the CRC.
        epoch = struct.pack(">i", self.epochs[-1][0])
        stored = struct.pack(">q", base_offset) + data[8:12] + epoch + data[16:]
        self.batches.append(Stored(base_offset, self.end_offset, stored))
        return base_offset


def _check_sequence(state: ProducerState, epoch: int, sequence: int) -> int:
    if epoch < state.epoch:
        return INVALID_PRODUCER_EPOCH
    if epoch > state.epoch:
        return OUT_OF_ORDER_SEQUENCE_NUMBER if sequence else NONE
    expected = (state.sent[-1].last_sequence + 1) & LAST_SEQUENCE
    return NONE if sequence == expected else OUT_OF_ORDER_SEQUENCE_NUMBER
