"""A backlog of one partition, read with many requests in flight: which offsets, and in which order.

Runs on: executor and worker. Pure: bytes and offsets only.

A request names an offset, and where the response before it will end is not known yet. So it is
guessed from the batches seen so far. What a response has in common with the one before is skipped
by whole batches; what lies between two responses is asked for in a request of its own:

    asked     |0        |889      |1778     |2700
    came       0 ... 888 889 .. 1777  -      2667 .. 3500     the third is awaited, the fourth is
    handed on  0 ... 888 889 .. 1777                          kept; it begins in the batch at 2667
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.wire.net.buffer_pool import PooledBuffer, buffer_size

# Of a batch: its base offset and length; behind the leader epoch, its format ("magic").
OFFSET_LENGTH = struct.Struct(">qi")
PREFIX_BYTES = OFFSET_LENGTH.size
MAGIC_AT = 16
# From format 2 on: how far the last offset is behind the base offset. The offset of older messages
# is that of the last record in them.
LAST_DELTA = struct.Struct(">i")
LAST_DELTA_AT = 23
# No batch or message of any format is shorter than this.
MIN_LENGTH = 14
# Guesses that leave a gap cost a round trip, guesses that overlap cost bytes: each gap makes the
# next steps shorter, each response without one longer, so that about one in twenty leaves a gap.
SHORTER = 0.02
LONGER = 0.001
SHORTEST = 0.5
# What a response may have besides its records.
HEAD_BYTES = 2 << 10
# One request for what lies between two others asks for no more; more may follow.
MOST_GAP_BYTES = 1 << 20


class ResponseContent(NamedTuple):
    """The whole batches of a response."""

    first_offset: int
    end_offset: int
    batches: int
    size: int
    largest: int


class Response(NamedTuple):
    """The records of one response; `view` lies in `buffer`.

    `log_end` is where the log ended for us when the broker responded.
    """

    view: memoryview
    buffer: PooledBuffer
    aborted: Sequence[tuple[int, int]]
    log_end: int
    content: ResponseContent


@dataclass(slots=True, eq=False)
class AheadRequest:
    """One request: from `offset` on, `most_bytes` at most.

    Brokers send the first batch whole, whatever its size (KIP-74): `largest` is that of the largest
    one seen.
    """

    offset: int
    most_bytes: int
    largest: int = 0
    response: Response | None = None

    @property
    def expected_bytes(self) -> int:
        """What may come."""
        return max(self.most_bytes, self.largest)

    @property
    def buffer_bytes(self) -> int:
        """The memory that its response takes."""
        return buffer_size(self.expected_bytes + HEAD_BYTES)

    @property
    def held_bytes(self) -> int:
        """What has come, or may come."""
        return self.expected_bytes if self.response is None else len(self.response.view)


class ReadAhead:
    """What was asked of one partition and is not handed on yet, in the order of offsets."""

    __slots__ = ("_asks", "_per_batch", "_share", "bytes", "has_gap", "largest", "next_offset")

    def __init__(self, next_offset: int, seen: ResponseContent) -> None:
        """`seen` is what the last response brought: guesses begin with it."""
        self.next_offset = next_offset
        # What is asked for or kept.
        self.bytes = 0
        self.largest = 0
        self._asks: list[AheadRequest] = []
        # Whether something between two requests may be missing: `next_gap`.
        self.has_gap = False
        # Bytes and offsets of a batch.
        self._per_batch = _per_batch(seen)
        self._share = 1.0
        self._learn(seen)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is asked for or kept."""
        return not self._asks

    def next_gap(self) -> AheadRequest | None:
        """A request for what lies between two others; the caller sends it."""
        if not self.has_gap:
            return None
        covered, is_known = self.next_offset, True
        for at, ask in enumerate(self._asks):
            if is_known and covered < ask.offset:
                return self._add(at, covered, self._gap_bytes(ask.offset - covered))
            is_known = ask.response is not None
            if ask.response is not None:
                covered = max(covered, ask.response.content.end_offset)
        self.has_gap = False
        return None

    def next_ask(self, log_end: int, most_bytes: int) -> AheadRequest | None:
        """A request behind all others, or None where the log ends; the caller sends it."""
        offset = self._guess()
        if offset >= log_end:
            return None
        return self._add(len(self._asks), offset, min(most_bytes, self._whole_bytes(most_bytes)))

    def keep(self, ask: AheadRequest, response: Response) -> None:
        """The response to `ask` has come. Its content has at least one batch."""
        self.bytes -= ask.held_bytes
        ask.response = response
        self.bytes += ask.held_bytes
        self._learn(response.content)
        at = self._asks.index(ask) + 1
        if at < len(self._asks):
            is_gap = response.content.end_offset < self._asks[at].offset
            self.has_gap = self.has_gap or is_gap
            self._share = max(SHORTEST, self._share - SHORTER) if is_gap else self._share
        self._share = min(1.0, self._share + LONGER)

    @property
    def is_ready(self) -> bool:
        """Whether the response that is next has come."""
        asks = self._asks
        return bool(asks) and asks[0].offset <= self.next_offset and asks[0].response is not None

    def take(self) -> Response:
        """Return the response that is next; the caller reports how far it led: `move`."""
        ask = self._asks.pop(0)
        self.bytes -= ask.held_bytes
        assert ask.response is not None
        return ask.response

    def move(self, next_offset: int) -> None:
        """What was taken was handed on, up to this offset."""
        self.next_offset = next_offset
        self.has_gap = self.has_gap or bool(self._asks and self._asks[0].offset > next_offset)

    def drop(self) -> list[Response]:
        """Forget everything; the caller releases their buffers."""
        kept = [ask.response for ask in self._asks if ask.response is not None]
        self._asks.clear()
        self.bytes = 0
        return kept

    def _add(self, at: int, offset: int, most_bytes: int) -> AheadRequest:
        ask = AheadRequest(offset, most_bytes, self.largest)
        self._asks.insert(at, ask)
        self.bytes += ask.held_bytes
        return ask

    def _whole_bytes(self, most_bytes: int) -> int:
        """What the batches that fit may take: brokers fill the rest with a part of the next one."""
        size, _ = self._per_batch
        batches = max(1, int(most_bytes / size))
        return int(batches * size + (self.largest - size) * batches**0.5) + 1

    def _gap_bytes(self, count: int) -> int:
        size, offsets = self._per_batch
        return min(int(count / offsets * size), MOST_GAP_BYTES) + self.largest

    def _guess(self) -> int:
        """Where what was asked for last will end."""
        if not self._asks:
            return self.next_offset
        last = self._asks[-1]
        if last.response is not None:
            return max(self.next_offset, last.response.content.end_offset)
        size, offsets = self._per_batch
        batches = max(1, int(last.most_bytes / size))
        return max(self.next_offset, last.offset + max(1, round(batches * offsets * self._share)))

    def _learn(self, content: ResponseContent) -> None:
        size, offsets = _per_batch(content)
        known_size, known_offsets = self._per_batch
        self._per_batch = (known_size + size) / 2, (known_offsets + offsets) / 2
        self.largest = max(content.largest, self.largest * 3 // 4)


def _per_batch(content: ResponseContent) -> tuple[float, float]:
    offsets = content.end_offset - content.first_offset
    return content.size / content.batches, offsets / content.batches


def measure(view: memoryview) -> ResponseContent | None:
    """Measure the whole batches of a response; None if there are none, or they make no sense."""
    at = count = largest = end_offset = 0
    first_offset = -1
    total = len(view)
    while at + PREFIX_BYTES <= total:
        offset, length = OFFSET_LENGTH.unpack_from(view, at)
        size = PREFIX_BYTES + length
        if length < MIN_LENGTH or at + size > total:
            break
        last = _last_offset(view, at, offset, length)
        if first_offset < 0:
            first_offset = min(offset, last)
        if last < end_offset:
            return None
        end_offset, count, largest = last + 1, count + 1, max(largest, size)
        at += size
    return ResponseContent(first_offset, end_offset, count, at, largest) if count else None


def new_part(
    view: memoryview, aborted: Sequence[tuple[int, int]], next_offset: int
) -> memoryview | None:
    """What a response has from `next_offset` on, in whole batches; None: nothing.

    The list of aborted transactions is of the whole response. With one, nothing is left out: the
    marker that ends a transaction may be in what comes before.
    """
    start = skip_old(view, next_offset)
    if start + PREFIX_BYTES > len(view):
        return None
    (_, length) = OFFSET_LENGTH.unpack_from(view, start)
    if start + PREFIX_BYTES + length > len(view):
        return None
    return view if aborted else view[start:]


def skip_old(view: memoryview, next_offset: int) -> int:
    """Find the byte at which the first batch begins that reaches `next_offset`.

    Offsets that do not rise are of a damaged batch: its reader must find that out.
    """
    at, end_offset, total = 0, 0, len(view)
    while at + PREFIX_BYTES <= total:
        offset, length = OFFSET_LENGTH.unpack_from(view, at)
        if length < MIN_LENGTH or at + PREFIX_BYTES + length > total:
            break
        last = _last_offset(view, at, offset, length)
        if last >= next_offset or last < end_offset:
            break
        end_offset = last + 1
        at += PREFIX_BYTES + length
    return at


def _last_offset(view: memoryview, at: int, offset: int, length: int) -> int:
    if view[at + MAGIC_AT] < 2 or length < LAST_DELTA_AT:
        return offset
    return offset + int(LAST_DELTA.unpack_from(view, at + LAST_DELTA_AT)[0])
