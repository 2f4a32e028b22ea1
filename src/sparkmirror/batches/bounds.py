"""Where the batches of fetched bytes begin and end. Runs on: executor.

Each length leads to the next batch, so they are followed one by one, at 0.1 us each. Where
batches are tiny that is a large share of all work. Then numpy looks at every byte of a
stretch that could be the magic of a batch with the first one's leader epoch, and compares the
lengths found there with where the next such place is:

    byte 2 at        16         186  230           357        first: by the lengths that are known
    epoch fits       16         186                357        the 2 at 230 is a byte of some value
    length there     158        159                ...        12 + 158 later comes the next: linked

Batches of equal size, as sensors write them, are tried first, with one check each.
Only what is linked from the first batch on counts; a value that looks like a header ends the
stretch, or is left out because no batch begins where its "length" leads.
"""

from __future__ import annotations

import sys

import numpy as np

from sparkmirror.batches.header import (
    HEADER_BYTES,
    LENGTH,
    MAGIC_AT,
    MIN_LENGTH,
    PREFIX_BYTES,
)
from sparkmirror.batches.message_set import MIN_MESSAGE_LENGTH
from sparkmirror.batches.pieces import take_pieces
from sparkmirror.batches.varints import Bytes, Ints
from sparkmirror.errors import BatchError

# Batches that are followed one by one before numpy takes over, and where it finds fewer than these.
_FIRST = 32
# Looking at every byte costs more than following lengths from this size of batches on.
_TINY_BYTES = 600
# The stretch that numpy looks at: small enough for the processor's cache.
_STRETCH_BYTES = 256 << 10
# Stretches in which it may find too few, before the lengths of all the rest are followed.
_MOST_MISSES = 8
_MAGIC = 2
_EPOCH = (1 << 32) - 1

_NONE = np.empty(0, np.int64)

Bounds = list[int] | Ints


def find_batches(records: memoryview) -> tuple[list[int], int]:
    """Find the bounds of all whole batches, and how many bytes a cut one behind them would have."""
    bounds = [0]
    cut_bytes = _follow(records, bounds, sys.maxsize)
    return bounds, cut_bytes


def find_tiny_batches(records: memoryview) -> tuple[Bounds, int]:
    """The same, faster where batches are tiny: then the bounds are an array."""
    bounds = [0]
    cut_bytes = _follow(records, bounds, _FIRST)
    at = bounds[-1]
    if cut_bytes or len(bounds) <= _FIRST:
        return bounds, cut_bytes
    if at > _FIRST * _TINY_BYTES:
        cut_bytes = _follow(records, bounds, sys.maxsize)
        return bounds, cut_bytes
    parts = [np.array(bounds, np.int64)]
    data = np.frombuffer(records, np.uint8)
    misses = 0
    while misses < _MOST_MISSES:
        ends = _linked_ends(data, at)
        if ends.size < _FIRST:
            misses += 1
            few = [at]
            cut_bytes = _follow(records, few, _FIRST)
            ends = np.array(few[1:], np.int64)
            if ends.size < _FIRST:
                return np.concatenate([*parts, ends]), cut_bytes
        parts.append(ends)
        at = int(ends[-1])
    rest = [at]
    cut_bytes = _follow(records, rest, sys.maxsize)
    return np.concatenate([*parts, np.array(rest[1:], np.int64)]), cut_bytes


def _follow(records: memoryview, bounds: list[int], most: int) -> int:
    """Append where up to `most` batches end; return how many bytes a cut one would have, or 0."""
    total = len(records)
    at: int = bounds[-1]
    unpack, append = LENGTH.unpack_from, bounds.append
    most += len(bounds)
    while at + MAGIC_AT < total and len(bounds) < most:
        (length,) = unpack(records, at + 8)
        if length < MIN_LENGTH:
            _check_short(records, at, length)
        at += PREFIX_BYTES + length
        if at > total:
            return at - bounds[-1]
        append(at)
    return 0


def _check_short(records: memoryview, at: int, length: int) -> None:
    """Only messages of the old formats are shorter than a batch header."""
    magic = records[at + MAGIC_AT]
    if magic > 1 or length < MIN_MESSAGE_LENGTH:
        offset = int.from_bytes(records[at : at + 8], "big", signed=True)
        raise BatchError(f"read batch at offset {offset}: magic {magic} with length {length}")


def _linked_ends(data: Bytes, at: int) -> Ints:
    """Find where batches end that lie side by side from `at` on, in one stretch of the bytes."""
    if at + HEADER_BYTES > len(data):
        return _NONE
    stop = min(at + _STRETCH_BYTES, len(data))
    ends = _equal_ends(data, at, stop)
    return ends if ends.size >= _FIRST else _marked_ends(data, at, stop)


def _equal_ends(data: Bytes, at: int, stop: int) -> Ints:
    """Find where batches of one size and leader epoch end: no byte but theirs is looked at."""
    (length,) = LENGTH.unpack_from(data.data, at + 8)
    if length < MIN_LENGTH:
        return _NONE
    size = PREFIX_BYTES + length
    starts = np.arange(at, min(stop, len(data) - size + 1), size)
    fields = take_pieces(data, starts + 8, 8).view(np.int64)
    equal = (fields == fields[:1]) & (data[starts + MAGIC_AT] == _MAGIC)
    linked = len(starts) if equal.all() else int(np.argmin(equal))
    ends: Ints = starts[:linked] + size
    return ends


def _marked_ends(data: Bytes, at: int, stop: int) -> Ints:
    """Find where batches of any size and one leader epoch end, by their magic bytes."""
    starts = np.flatnonzero(data[at + MAGIC_AT : stop] == _MAGIC)
    if not starts.size or starts[0] != 0:
        return _NONE
    starts += at
    fields = take_pieces(data, starts + 8, 8).view(">i8").astype(np.int64)
    fits = fields & _EPOCH == fields[0] & _EPOCH
    starts, lengths = starts[fits], fields[fits] >> 32
    ends: Ints = starts + lengths + PREFIX_BYTES
    if (ends[:-1] != starts[1:]).any():
        starts, ends = _leading_somewhere(starts, ends, stop, len(data))
    whole = (ends - starts >= HEADER_BYTES) & (ends <= len(data))
    whole[1:] &= ends[:-1] == starts[1:]
    linked = len(ends) if whole.all() else int(np.argmin(whole))
    return ends[:linked]


def _leading_somewhere(starts: Ints, ends: Ints, stop: int, total: int) -> tuple[Ints, Ints]:
    """Drop places that look like a header but whose length does not lead to another one.

    With leader epoch 0, every base offset from 131,072 to 196,607 does: 00 00 00 00 02.
    """
    first = starts[0]
    known = np.zeros(stop - first + 1, np.bool_)
    known[starts - first] = True
    known[-MAGIC_AT - 1 :] = True  # a batch may begin there, whose magic is behind the stretch
    leads = (ends >= first) & (ends <= total) & known[np.clip(ends, first, stop) - first]
    leads[0] = True
    return starts[leads], ends[leads]
