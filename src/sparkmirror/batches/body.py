"""The records of a batch as one piece of bytes: where each record lies, and patching them in place.

    record   length varint | attributes | timestamp delta | offset delta | key, value, headers
             ^ start         ^ field                                                         ^ end

A record that moves to the front of a batch gets a smaller offset delta, and a record whose
timestamp becomes the batch's gets the delta 0. Both fit, as over-long varints, in the bytes of the
old ones: nothing moves, no record length changes. Brokers and clients take over-long varints.

numpy wins from a few hundred records a batch, a plain loop below: numpy costs some 60 us a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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

_MANY = 250  # records a batch from which numpy is faster than a loop


class Spans(NamedTuple):
    """Position of every record: of its attributes byte, and of the first byte after it."""

    fields: list[int]
    ends: list[int]

    def start(self, index: int) -> int:
        """Find where a record starts: where the one before it ends."""
        return self.ends[index - 1] if index else 0


class Kept(NamedTuple):
    """Which records stay: index of the first one, and the old offset deltas as runs."""

    first: int
    runs: Runs


def locate(body: bytes | bytearray, count: int) -> Spans:
    """Find all records by following their lengths; they must fill `body` exactly."""
    try:
        spans = _follow_lengths(body, count)
    except IndexError:
        raise BatchError(f"the data ends inside one of {count} records") from None
    end = spans.ends[-1] if count else 0
    if end != len(body):
        raise BatchError(f"{count} records take {end} bytes, but {len(body)} are there")
    return spans


def _follow_lengths(body: bytes | bytearray, count: int) -> Spans:
    fields = []
    ends = []
    at = 0
    for _ in range(count):
        byte = body[at]
        at += 1
        bits = byte & 127
        shift = 7
        while byte > 127:
            byte = body[at]
            at += 1
            bits |= (byte & 127) << shift
            shift += 7
        if bits & 1 or shift > 35:
            raise BatchError("a record has a negative or endless length")
        fields.append(at)
        at += bits >> 1
        ends.append(at)
    return Spans(fields, ends)


def renumber(body: bytearray, spans: Spans, last_delta: int, cut_below: int) -> Kept:
    """Give the records whose offset delta is at least `cut_below` the deltas 0, 1, 2 ... in place.

    Records before them are left as they are: the caller cuts them off.
    """
    many = len(spans.fields) >= _MANY
    kept = (_renumber_many if many else _renumber_few)(body, spans, cut_below)
    if kept.runs and sum(kept.runs[-1]) - 1 > last_delta:
        raise BatchError(f"a record lies behind the last offset delta {last_delta}")
    return kept


def _renumber_few(body: bytearray, spans: Spans, cut_below: int) -> Kept:
    runs: list[tuple[int, int]] = []
    new = cut = expected = run_start = 0
    for field, end in zip(*spans, strict=True):
        at = field + 1
        while at < end and body[at] > 127:
            at += 1
        at = start = at + 1
        bits = shift = 0
        byte = 128
        while byte > 127:
            if at >= end:
                raise BatchError("a record ends before its offset delta")
            byte = body[at]
            at += 1
            bits |= (byte & 127) << shift
            shift += 7
        old = bits >> 1
        if bits & 1 or shift > 35 or (old < expected):
            raise BatchError("offset deltas are not in order")
        if old < cut_below:
            cut += 1
            expected = old + 1
            continue
        if new == 0:
            run_start = old
        elif old != expected:
            runs.append((run_start, expected - run_start))
            run_start = old
        expected = old + 1
        bits = new << 1
        new += 1
        while start < at - 1:
            body[start] = bits & 127 | 128
            bits >>= 7
            start += 1
        body[start] = bits
    if new:
        runs.append((run_start, expected - run_start))
    return Kept(cut, tuple(runs))


def _renumber_many(body: bytearray, spans: Spans, cut_below: int) -> Kept:
    data = np.frombuffer(body, np.uint8)
    at = skip_varints(data, np.array(spans.fields, np.int64) + 1)
    old, after = read_varints(data, at)
    if (after > np.array(spans.ends, np.int64)).any():
        raise BatchError("a record ends before its offset delta")
    if old[0] < 0 or (np.diff(old) <= 0).any():
        raise BatchError("offset deltas are not in order")
    first = int(np.searchsorted(old, cut_below))
    write_varints_over(data, at[first:], after[first:], np.arange(len(old) - first))
    return Kept(first, runs_of(old[first:]))


def runs_of(offsets: Ints) -> Runs:
    """Describe rising offsets as (first, count) of their runs without holes."""
    if not offsets.size:
        return ()
    breaks = np.flatnonzero(np.diff(offsets) != 1) + 1
    bounds = [0, *breaks.tolist(), len(offsets)]
    firsts = offsets[bounds[:-1]].tolist()
    return tuple(
        (first, after - before)
        for first, before, after in zip(firsts, bounds[:-1], bounds[1:], strict=True)
    )


def zero_timestamps(body: bytearray, spans: Spans) -> bool:
    """Make every timestamp delta 0 in its old width; tell whether one was not."""
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
