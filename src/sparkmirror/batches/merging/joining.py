"""Batches that wait for a far target become one: five may be in flight, however large they are.

A broker takes one batch of a partition per request and remembers five (KAFKA-5494), so what a
partition can have in flight is five times the size of its batches. `join` puts planned batches
together (those that `forward.plan` gave); records keep timestamps, keys, values and headers, and
get new offset deltas.
Runs on: executor. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparkmirror.batches import body as bodies
from sparkmirror.batches.codecs import Codec, Data, TooLarge
from sparkmirror.batches.header import ATTRIBUTES_AT, CODEC_MASK, HEADER_BYTES
from sparkmirror.batches.merging.merger import Rows, build, read_fronts
from sparkmirror.batches.outgoing import ForwardRules, OutgoingBatch
from sparkmirror.batches.varints import Ints
from sparkmirror.errors import BatchError

# Below Kafka's default max.message.bytes of 1048588: a far target would take a round trip to reject
# what is larger.
JOIN_INTO_BYTES = 1_000_000
# Each record costs 0.6 us or more, in which the task does nothing else.
MOST_RECORDS = 16_384
# Joining has some three copies of what is decompressed in memory at once.
MOST_OPENED_BYTES = 8 << 20
# A length and two deltas may each take so many bytes more than before.
_GROWTH_BYTES = 6
# Compressing these takes longer than sending them.
_TOO_SLOW = (Codec.GZIP,)


def codec_of(batch: OutgoingBatch) -> Codec:
    """Return the codec of a planned batch."""
    return Codec.of(batch.view[ATTRIBUTES_AT + 1] & CODEC_MASK)


def count_joinable(batches: Sequence[OutgoingBatch], rules: ForwardRules) -> int:
    """Count how many, from the first on, fit in one batch in the order of the source."""
    codec = codec_of(batches[0])
    if codec in _TOO_SLOW:
        return 1
    room = min(rules.max_batch_bytes or JOIN_INTO_BYTES, JOIN_INTO_BYTES) - HEADER_BYTES
    records, before = MOST_RECORDS, -1
    for at, batch in enumerate(batches):
        records -= batch.count
        room -= len(batch.view) - HEADER_BYTES + batch.count * _GROWTH_BYTES
        fits = records >= 0 and room >= 0
        if not fits or batch.first_offset <= before or codec_of(batch) is not codec:
            return max(at, 1)
        before = batch.last_offset
    return len(batches)


def join(batches: Sequence[OutgoingBatch], rules: ForwardRules) -> OutgoingBatch:
    """Make one batch of planned ones that `count_joinable` has counted, or of the first of them.

    Raises:
        BatchError: the content of one does not fit its header.
    """
    first = batches[0]
    codec = codec_of(first)
    try:
        opened = _open(batches, codec)
        rows = _rows(batches[: len(opened)], opened)
    except BatchError as error:
        raise BatchError(
            f"join batches at offsets {first.first_offset} to {batches[-1].last_offset}: {error}"
        ) from error
    return build(rows, codec, rules)


def _open(batches: Sequence[OutgoingBatch], codec: Codec) -> list[Data]:
    """Decompress as many from the first on as there is memory for, two at least."""
    opened: list[Data] = []
    left = MOST_OPENED_BYTES
    for batch in batches:
        try:
            data = codec.decompress(memoryview(batch.view)[HEADER_BYTES:], left)
        except TooLarge:
            if len(opened) <= 1:
                raise
            break
        opened.append(data)
        left -= len(data)
    return opened


def _rows(batches: Sequence[OutgoingBatch], opened: Sequence[Data]) -> Rows:
    joined = b"".join(opened)
    counts = np.array([batch.count for batch in batches])
    fields, ends = (np.array(part, np.int64) for part in bodies.locate(joined, int(counts.sum())))
    if (ends[np.cumsum(counts) - 1] != np.cumsum([len(each) for each in opened])).any():
        raise BatchError("records reach over the end of their batch")
    deltas, times, tails = read_fronts(np.frombuffer(joined, np.uint8), fields, ends)
    firsts = np.cumsum(counts) - counts
    if (deltas != np.arange(len(deltas)) - np.repeat(firsts, counts)).any():
        raise BatchError("offset deltas are not in order")
    base_times = np.array([batch.base_timestamp for batch in batches], np.int64)
    timestamps = np.repeat(base_times, counts) + times
    offsets = np.concatenate([_offsets(batch) for batch in batches])
    return Rows(memoryview(joined), tails, ends, offsets, timestamps)


def _offsets(batch: OutgoingBatch) -> Ints:
    """List the upstream offsets of a batch."""
    runs = batch.runs or ((batch.first_offset, batch.count),)
    return np.concatenate([np.arange(first, first + count) for first, count in runs])
