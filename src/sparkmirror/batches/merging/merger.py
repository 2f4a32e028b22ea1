"""Tiny batches that lie side by side become one: a request each would cost more than their bytes.

`merge` takes any batches of one codec: it decompresses them, finds every record, and joins the
tails of all records behind new fronts. What is written is in shortest form, as a producer does it.
Uncompressed batches of one record by the thousand have a faster way (singles).

    record   | length, attributes, timestamp delta, offset delta | key, value, headers |
             | front: rewritten                                  | tail: unchanged     |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparkmirror.batches import body as bodies
from sparkmirror.batches import header as layout
from sparkmirror.batches.codecs import Codec, Data, TooLarge
from sparkmirror.batches.header import (
    HEADER_BYTES,
    Header,
)
from sparkmirror.batches.outgoing import ForwardRules, OutgoingBatch
from sparkmirror.batches.varints import (
    MAX_LONG_BYTES,
    Bytes,
    Ints,
    read_varints,
    write_varints_before,
)
from sparkmirror.errors import BatchError

# Length, attributes, timestamp delta, offset delta, each at its longest: 5 + 1 + 10 + 5.
FRONT_BYTES = 21


class MergePiece(NamedTuple):
    """One batch that waits for its neighbours; records before `next_offset` are not wanted."""

    header: Header
    batch: memoryview
    next_offset: int


class OpenPiece(NamedTuple):
    """A piece and its records, decompressed; one that can only go alone may have none."""

    piece: MergePiece
    body: Data


def group(pieces: Sequence[MergePiece], rules: ForwardRules) -> Iterator[list[OpenPiece]]:
    """Put neighbours of one codec together as far as one batch may grow."""
    taken: list[OpenPiece] = []
    room = 0
    largest = room_for_records(rules)
    for piece in pieces:
        header = piece.header
        opened, size = _open(piece, largest)
        if taken and (taken[0].piece.header.codec_id != header.codec_id or size > room):
            yield taken
            taken = []
        if not taken:
            room = largest
        taken.append(opened)
        room -= size
    if taken:
        yield taken


def _open(piece: MergePiece, largest: int) -> tuple[OpenPiece, int]:
    """Decompress a piece; also return how much room it takes in a batch.

    A kilobyte can become many megabytes: decompression stops at what would fit.
    """
    codec = Codec.of(piece.header.codec_id)
    try:
        body = codec.decompress(piece.batch[HEADER_BYTES:], largest)
    except TooLarge:
        return OpenPiece(piece, b""), largest + 1
    return OpenPiece(piece, body), len(body) + piece.header.record_count * FRONT_BYTES


def room_for_records(rules: ForwardRules) -> int:
    """Return how many bytes of records a merged batch may have."""
    largest = rules.max_batch_bytes or rules.merge_into_bytes
    return min(rules.merge_into_bytes, largest) - HEADER_BYTES


def merge(pieces: Sequence[OpenPiece], rules: ForwardRules) -> OutgoingBatch | None:
    """Make one batch of several; None when none of their records is wanted."""
    headers = [piece.piece.header for piece in pieces]
    try:
        rows = _open_rows(pieces, headers, rules)
    except BatchError as error:
        raise BatchError(
            f"merge batches at offsets {headers[0].base_offset} to "
            f"{headers[-1].last_offset}: {error}"
        ) from error
    if not rows.offsets.size:
        return None
    codec = Codec.of(headers[0].codec_id) if rules.codec is None else rules.codec
    return build(rows, codec, rules)


def build(rows: Rows, codec: Codec, rules: ForwardRules) -> OutgoingBatch:
    """Make one batch of the rows."""
    batch = bytearray().join([bytes(HEADER_BYTES), *_fronts_apart(rows)])
    return finish(rows, batch, codec, rules)


class Rows(NamedTuple):
    """One row a record: its bytes after the offset delta, and what goes before them."""

    data: memoryview
    tails: Ints
    ends: Ints
    offsets: Ints
    timestamps: Ints

    def only(self, wanted: NDArray[np.bool_] | slice) -> Rows:
        return Rows(self.data, *(column[wanted] for column in self[1:]))


def _open_rows(pieces: Sequence[OpenPiece], headers: Sequence[Header], rules: ForwardRules) -> Rows:
    joined = b"".join(piece.body for piece in pieces)
    counts = np.array([header.record_count for header in headers])
    fields, ends = (np.array(part, np.int64) for part in bodies.locate(joined, int(counts.sum())))
    borders = np.cumsum([len(piece.body) for piece in pieces])
    if (ends[np.cumsum(counts) - 1] != borders).any():
        raise BatchError("records reach over the end of their batch")
    columns = zip(*(_columns(piece.piece, rules) for piece in pieces), strict=True)
    bases, last_deltas, base_times, scales, wanted_from = (
        np.repeat(np.array(column, np.int64), counts) for column in columns
    )
    deltas, times, tails = read_fronts(np.frombuffer(joined, np.uint8), fields, ends)
    if (deltas < 0).any() or (deltas > last_deltas).any():
        raise BatchError("an offset delta lies outside its batch")
    offsets = bases + deltas
    rows = Rows(memoryview(joined), tails, ends, offsets, base_times + times * scales)
    rows = rows.only(offsets >= wanted_from)
    if (np.diff(rows.offsets) <= 0).any():
        raise BatchError("offset deltas are not in order")
    return rows


def _columns(piece: MergePiece, rules: ForwardRules) -> tuple[int, int, int, int, int]:
    """Return what all records of a piece share; scale 0 makes every timestamp the append time."""
    header = piece.header
    retime = header.has_append_time and rules.keep_append_time
    base_time = header.max_timestamp if retime else header.base_timestamp
    return header.base_offset, header.last_delta, base_time, int(not retime), piece.next_offset


def read_fronts(data: Bytes, fields: Ints, ends: Ints) -> tuple[Ints, Ints, Ints]:
    """Read offset and timestamp deltas, and find what comes after them."""
    times, at = read_varints(data, fields + 1, MAX_LONG_BYTES)
    deltas, tails = read_varints(data, at)
    if (tails > ends).any():
        raise BatchError("a record ends before its offset delta")
    return deltas, times, tails


def _fronts_apart(rows: Rows) -> list[memoryview]:
    """Write the new fronts of all records beside them; front and tail in turn."""
    count = len(rows.offsets)
    fronts = bytearray(count * FRONT_BYTES)
    ends = np.arange(1, count + 1) * FRONT_BYTES
    starts = write_fronts(
        np.frombuffer(fronts, np.uint8),
        ends,
        rows.ends - rows.tails,
        np.arange(count),
        rows.timestamps - rows.timestamps[0],
    )
    front_view, data = memoryview(fronts), rows.data
    parts: list[memoryview] = []
    for start, end, tail, after in zip(
        starts.tolist(), ends.tolist(), rows.tails.tolist(), rows.ends.tolist(), strict=True
    ):
        parts += (front_view[start:end], data[tail:after])
    return parts


def write_fronts(
    data: Bytes, ends: Ints, tail_lengths: Ints, deltas: Ints, time_deltas: Ints
) -> Ints:
    """Write the new front of every record so that it ends at its end: where each one starts."""
    at = write_varints_before(data, ends, deltas)
    at = write_varints_before(data, at, time_deltas) - 1
    data[at] = 0  # record attributes
    return write_varints_before(data, at, tail_lengths + (ends - at))


def finish(rows: Rows, batch: bytearray, codec: Codec, rules: ForwardRules) -> OutgoingBatch:
    """Write the header, for which there is room, before the joined records; compress them."""
    if codec is not Codec.NONE:
        body = codec.compress(memoryview(batch)[HEADER_BYTES:], rules.codec_level)
        batch = bytearray().join([bytes(HEADER_BYTES), body])
    base_time, max_time = int(rows.timestamps[0]), int(rows.timestamps.max())
    first, last, count = int(rows.offsets[0]), int(rows.offsets[-1]), len(rows.offsets)
    layout.write_header(
        batch, codec_id=codec, count=count, base_timestamp=base_time, max_timestamp=max_time
    )
    runs = None if last - first == count - 1 else bodies.runs_of(rows.offsets)
    return OutgoingBatch(batch, first, last, count, base_time, max_time, runs, len(batch))
