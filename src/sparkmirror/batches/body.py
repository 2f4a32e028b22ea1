"""The records of a batch as one piece of bytes: where each record lies, and patching them in place.

    record   length varint | attributes | timestamp delta | offset delta | key, value, headers
             ^ start         ^ field                                                         ^ end

A record that moves to the front of a batch gets a smaller offset delta, and a record whose
timestamp becomes the batch's gets the delta 0. Both fit, as over-long varints, in the bytes of the
old ones: nothing moves, no record length changes. Brokers and clients take over-long varints.

numpy wins from a few hundred records a batch, a plain loop below: numpy costs some 60 us a call.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from sparkmirror.batches.outgoing import Runs
from sparkmirror.batches.varints import (
    MAX_LONG_BYTES,
    Ints,
    read_varint,
    read_varints,
    skip_varints,
    write_varints_over,
)
from sparkmirror.errors import BatchError

# Length, attributes, two deltas, two lengths and the number of headers, a byte each.
SHORTEST_RECORD_BYTES = 7
# Each takes up to 200 bytes here, though it may have come in a fraction of a bit. Brokers, which
# keep a list of them too, would be in trouble before.
MOST_RECORDS = 4 << 20
_VERY_MANY = 10_000
_MANY = 200  # records a batch from which numpy is faster than a loop
RecordPlaces: TypeAlias = "list[int] | array[int]"
_NO_ORDER = "offset deltas are not in order, or a record ends before its own"


class Spans(NamedTuple):
    """Position of every record: of its attributes byte, and of the first byte after it."""

    fields: RecordPlaces
    ends: RecordPlaces

    def start(self, index: int) -> int:
        """Find where a record starts: where the one before it ends."""
        return self.ends[index - 1] if index else 0


class KeptRecords(NamedTuple):
    """Which records stay: index of the first one, how many, and their old offsets as runs."""

    first: int
    left: int
    runs: Runs


def locate(body: bytes | bytearray, count: int) -> Spans:
    """Find all records by following their lengths; they must fill `body` exactly."""
    if count > MOST_RECORDS:
        raise BatchError(f"{count} records, at most {MOST_RECORDS} are looked at")
    if count * SHORTEST_RECORD_BYTES > len(body):
        raise BatchError(f"{count} records cannot have only {len(body)} bytes")
    try:
        spans = _follow_lengths(body, count)
    except IndexError:
        raise BatchError(f"the data ends inside one of {count} records") from None
    end = spans.ends[-1] if count else 0
    if end != len(body):
        raise BatchError(f"{count} records take {end} bytes, but {len(body)} are there")
    return spans


def _follow_lengths(body: bytes | bytearray, count: int) -> Spans:
    # Lists are faster, but take five times the memory: a kilobyte can hold millions of records.
    fields, ends = ([], []) if count < _VERY_MANY else (array("q"), array("q"))
    at = 0
    for _ in range(count):
        byte = body[at]
        at += 1
        bits = byte & 127
        shift = 7
        while byte > 127 and shift < 35:
            byte = body[at]
            at += 1
            bits |= (byte & 127) << shift
            shift += 7
        if bits & 1 or byte > 127:
            raise BatchError("a record has a negative or endless length")
        fields.append(at)
        at += bits >> 1
        ends.append(at)
    return Spans(fields, ends)


def renumber(body: bytearray, spans: Spans, offsets: range, next_offset: int) -> KeptRecords:
    """Give the records from `next_offset` on the deltas 0, 1, 2 ... in place.

    `offsets` are those the batch covers. Records before are left as they are: the caller cuts them
    off.
    """
    many = len(spans.fields) >= _MANY
    try:
        kept = (_renumber_many if many else _renumber_few)(body, spans, offsets.start, next_offset)
    except IndexError:
        raise BatchError(_NO_ORDER) from None
    if kept.runs and sum(kept.runs[-1]) > offsets.stop:
        raise BatchError(f"a record lies behind the last offset {offsets.stop - 1}")
    return kept


def _renumber_few(body: bytearray, spans: Spans, base: int, next_offset: int) -> KeptRecords:
    runs: list[tuple[int, int]] = []
    count = 0
    run_start = expected = base
    for field, end in zip(*spans, strict=True):
        at = field + 1
        while body[at] > 127:
            at += 1
        at = start = at + 1
        byte = body[at]
        at += 1
        bits = byte & 127
        shift = 7
        while byte > 127 and shift < 35:
            byte = body[at]
            at += 1
            bits |= (byte & 127) << shift
            shift += 7
        offset = base + (bits >> 1)
        if bits & 1 or byte > 127 or offset < expected or at > end:
            raise BatchError(_NO_ORDER)
        if offset >= next_offset:
            if not count:
                run_start = offset
            elif offset != expected:
                runs.append((run_start, expected - run_start))
                run_start = offset
            bits = count << 1
            count += 1
            while start < at - 1:
                body[start] = bits & 127 | 128
                bits >>= 7
                start += 1
            body[start] = bits
        expected = offset + 1
    if count:
        runs.append((run_start, expected - run_start))
    return KeptRecords(len(spans.fields) - count, count, tuple(runs))


def _renumber_many(body: bytearray, spans: Spans, base: int, next_offset: int) -> KeptRecords:
    data = np.frombuffer(body, np.uint8)
    at = skip_varints(data, np.array(spans.fields, np.int64) + 1)
    deltas, after = read_varints(data, at)
    too_long = (after > np.array(spans.ends, np.int64)).any()
    if too_long or deltas[0] < 0 or (deltas[1:] <= deltas[:-1]).any():
        raise BatchError(_NO_ORDER)
    first = int(np.searchsorted(deltas, next_offset - base))
    count = len(deltas) - first
    write_varints_over(data, at[first:], after[first:], np.arange(count))
    return KeptRecords(first, count, runs_of(deltas[first:] + base))


def runs_of(offsets: Ints) -> Runs:
    """Describe rising offsets as (first, count) of their runs without gaps."""
    if not offsets.size:
        return ()
    breaks = np.flatnonzero(np.diff(offsets) != 1) + 1
    bounds = np.concatenate(([0], breaks, [len(offsets)]))
    return tuple(zip(offsets[bounds[:-1]].tolist(), np.diff(bounds).tolist(), strict=True))


def zero_timestamps(body: bytearray, spans: Spans) -> bool:
    """Set every timestamp delta to 0 in its old width; return whether one was not 0."""
    changed = False
    for field, end in zip(*spans, strict=True):
        at = field + 1
        while at < end and body[at] > 127:
            changed = changed or body[at] != 128
            body[at] = 128
            at += 1
        if at >= end:
            raise BatchError("a record ends inside its timestamp delta")
        changed = changed or body[at] != 0
        body[at] = 0
    return changed


def largest_timestamp_delta(body: bytearray, spans: Spans, indexes: Sequence[int]) -> int:
    """Find the largest timestamp delta among some records."""
    fields, ends = spans
    return max(read_varint(body, fields[i] + 1, ends[i], MAX_LONG_BYTES)[0] for i in indexes)
