"""Uncompressed batches of one record by the thousand, as a producer without linger leaves them.

numpy reads all headers at once, and each record gets its new front written before its tail, in
the receive buffer, where the header, no longer needed, leaves room. No Python object is
made for a batch: it costs some 0.1 us, less than one call of a function.

    before   | header 61 | length 0 0-ts 0-delta | key, value, headers |
    after                 | length 0 ts delta    | key, value, headers |

Transaction markers and empty batches among them do not end a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from sparkmirror.batches.bounds import Bounds
from sparkmirror.batches.codecs import Codec
from sparkmirror.batches.crc_chain import are_whole
from sparkmirror.batches.header import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    LARGEST_OFFSET,
    LOG_APPEND_TIME,
    PREFIX_BYTES,
)
from sparkmirror.batches.merging.merger import (
    FRONT_BYTES,
    Rows,
    finish,
    read_fronts,
    room_for_records,
    write_fronts,
)
from sparkmirror.batches.outgoing import ForwardRules, OutgoingBatch
from sparkmirror.batches.pieces import join_pieces, put_pieces, take_pieces
from sparkmirror.batches.varints import Ints, Words, encode_words, read_varints
from sparkmirror.errors import BatchError

_SHORTEST_RUN = 16  # batches from which numpy pays
# Attributes, timestamp delta and offset delta of a record that is the only one of its batch.
_ZEROS_BYTES = 3
# Larger deltas of timestamps (198 days) do not fit in a word together with those of offsets.
_WORD_BYTES = 8
_FAR_TIME = 1 << 34
# Offset deltas of as many records as a merged batch may have, unless its rules are unusual.
_DELTAS = encode_words(np.arange(1 << 15))
_FAR = LARGEST_OFFSET - (1 << 31)  # from here on a batch could lead behind the largest offset

# The layout of header.READ_HEADER.
_HEADERS = np.dtype(
    {
        "names": [
            "base_offset", "length", "magic", "crc", "attributes", "last_delta",
            "base_timestamp", "max_timestamp", "producer_id", "count",
        ],
        "formats": [">i8", ">i4", "u1", ">u4", ">i2", ">i4", ">i8", ">i8", ">i8", ">i4"],
        "offsets": [0, 8, 16, 17, 21, 23, 27, 35, 43, 57],
        "itemsize": HEADER_BYTES,
    }
)  # fmt: skip

Flags = NDArray[np.bool_]


class SingleRun(NamedTuple):
    """Many batches side by side, by index: of one uncompressed record each, or to be dropped."""

    first: int
    after: int
    starts: Ints
    headers: NDArray[Any]
    has_data: Flags
    is_marker: Flags


def find_runs(records: memoryview, bounds: Bounds, rules: ForwardRules) -> list[SingleRun]:
    """Find where tiny batches lie side by side in such numbers that they go through numpy."""
    count = len(bounds) - 1
    if count < _SHORTEST_RUN or bounds[-1] >= count * rules.merge_below_bytes:
        return []
    all_bounds = np.asarray(bounds, np.int64)
    starts = all_bounds[:-1]
    if int(np.diff(all_bounds).min()) < HEADER_BYTES:
        return []  # messages of the old formats are among them
    return _runs(starts, take_headers(records, starts), rules.merge_below_bytes)


def take_headers(records: memoryview, starts: Ints) -> NDArray[Any]:
    """Copy the headers of batches, and read their fields by the names in header.Header."""
    return take_pieces(records, starts, HEADER_BYTES).view(_HEADERS)


def _runs(starts: Ints, headers: NDArray[Any], below_bytes: int) -> list[SingleRun]:
    attributes, count, last_delta, base = (
        headers[name].astype(np.int64)
        for name in ("attributes", "count", "last_delta", "base_offset")
    )
    marker = attributes & CONTROL != 0
    small = headers["length"] < below_bytes - PREFIX_BYTES
    uncompressed = attributes & CODEC_MASK == 0
    single = ~marker & uncompressed & small & (count == 1) & (last_delta == 0)
    droppable = (marker | (count == 0)) & (last_delta >= 0)
    usable = (headers["magic"] == 2) & (base >= 0) & (base < _FAR) & (single | droppable)
    usable[1:] &= base[1:] > base[:-1] + last_delta[:-1]
    return [
        SingleRun(part.start, part.stop, starts[part], headers[part], single[part], marker[part])
        for part in _stretches(usable)
    ]


def _stretches(usable: Flags) -> list[slice[int, int, None]]:
    edges = np.flatnonzero(np.diff(usable, prepend=False, append=False)).tolist()
    return [
        slice(first, after)
        for first, after in zip(edges[::2], edges[1::2], strict=True)
        if after - first >= _SHORTEST_RUN
    ]


def find_damaged(records: memoryview, run: SingleRun) -> int | None:
    """Compare all CRCs of a run; return the index of the first that is wrong."""
    ends = _ends(run.starts, run.headers)
    if are_whole(records, run.starts, int(ends[-1]), run.headers):
        return None
    starts = (run.starts + ATTRIBUTES_AT).tolist()
    found = [crc32c(records[start:end]) for start, end in zip(starts, ends.tolist(), strict=True)]
    wrong = np.flatnonzero(run.headers["crc"] != np.array(found, np.uint32))
    return int(wrong[0])


def merge_run(
    records: memoryview, run: SingleRun, wanted: Flags, rules: ForwardRules
) -> Iterator[OutgoingBatch]:
    """Make batches of the wanted records of a run."""
    all_rows = _run_rows(records, run, wanted, rules)
    codec = Codec.NONE if rules.codec is None else rules.codec
    for part in _parts(all_rows, room_for_records(rules)):
        rows = all_rows.only(part)
        batch = join_pieces(records, _write_fronts(rows), rows.ends, HEADER_BYTES)
        yield finish(rows, batch, codec, rules)


def _ends(starts: Ints, headers: NDArray[Any]) -> Ints:
    return starts + headers["length"].astype(np.int64) + PREFIX_BYTES


def _run_rows(records: memoryview, run: SingleRun, wanted: Flags, rules: ForwardRules) -> Rows:
    headers, starts = run.headers, run.starts
    if not wanted.all():
        headers, starts = headers[wanted], starts[wanted]
    ends = _ends(starts, headers)
    offsets = headers["base_offset"].astype(np.int64)
    timestamps = headers["base_timestamp"].astype(np.int64)
    tails = _usual_tails(records, starts + HEADER_BYTES, ends)
    if tails is None:
        times, tails = _read_fronts(records, starts + HEADER_BYTES, ends, offsets)
        timestamps += times
    if rules.keep_append_time:
        append_time = headers["attributes"].astype(np.int64) & LOG_APPEND_TIME != 0
        if append_time.any():
            timestamps = np.where(
                append_time, headers["max_timestamp"].astype(np.int64), timestamps
            )
    return Rows(records, tails, ends, offsets, timestamps)


def _usual_tails(records: memoryview, fronts: Ints, ends: Ints) -> Ints | None:
    """Find where all tails begin, if every front is as producers write it: deltas of 0.

    Then the size of a batch determines the first eight bytes of its record.
    """
    if not fronts.size or int(fronts[-1]) + _WORD_BYTES > len(records):
        return None
    sizes = ends - fronts
    # The length does not count its own bytes: 1 up to 63, 2 up to 8191, 3 up to 1 MB.
    expected, widths = encode_words(sizes - (1 + (sizes > 1 + 63) + (sizes > 2 + 8191)))
    front_bytes = widths + _ZEROS_BYTES
    words = take_pieces(records, fronts, _WORD_BYTES).view("<u8")
    behind = (8 * (_WORD_BYTES - front_bytes)).view(np.uint64)
    is_usual = words << behind == expected << behind
    return fronts + front_bytes if is_usual.all() else None


def _read_fronts(records: memoryview, fronts: Ints, ends: Ints, offsets: Ints) -> tuple[Ints, Ints]:
    """Read all timestamp deltas, and find the tails, whatever the fronts look like."""
    data = np.frombuffer(records, np.uint8)
    lengths, fields = read_varints(data, fronts)
    deltas, times, tails = read_fronts(data, fields, ends)
    wrong = np.flatnonzero((fields + lengths != ends) | (deltas != 0))
    if wrong.size:
        raise BatchError(
            f"merge batch at offset {offsets[wrong[0]]}: its record does not fill it exactly"
        )
    return times, tails


def _parts(rows: Rows, room: int) -> Iterator[slice[int, int, None]]:
    """Cut rows so that each part's records fit in a batch."""
    filled = np.cumsum(rows.ends - rows.tails + FRONT_BYTES)
    first = before = 0
    while first < len(filled):
        after = max(int(np.searchsorted(filled, before + room, side="right")), first + 1)
        yield slice(first, after)
        first, before = after, int(filled[after - 1])


def _write_fronts(rows: Rows) -> Ints:
    """Write the new front of every record directly before its tail, over a header.

    Returns where each record starts.
    """
    times = rows.timestamps - rows.timestamps[0]
    if int(times.max()) < _FAR_TIME and int(times.min()) > -_FAR_TIME:
        return _write_words(rows, times)
    data, deltas = np.frombuffer(rows.data, np.uint8), np.arange(len(times))
    return write_fronts(data, rows.tails, rows.ends - rows.tails, deltas, times)


def _write_words(rows: Rows, times: Ints) -> Ints:
    """Write fronts in two words each, the later bytes first, over whose unused ones go the others.

    | length 0 |, then | ts delta, offset delta |, then the tail.
    """
    words, times_widths = encode_words(times)
    delta_words, delta_widths = _encode_deltas(len(times))
    words |= delta_words << (8 * times_widths).view(np.uint64)
    at = _put_words(rows.data, rows.tails, words, times_widths + delta_widths)
    words, widths = encode_words(rows.ends - at + 1)
    return _put_words(rows.data, at, words, widths + 1)  # with the record's attributes, 0


def _encode_deltas(count: int) -> tuple[Words, Ints]:
    if count > len(_DELTAS[0]):
        return encode_words(np.arange(count))
    words, widths = _DELTAS
    return words[:count], widths[:count]


def _put_words(data: memoryview, ends: Ints, words: Words, widths: Ints) -> Ints:
    """Write the lowest bytes of every word so that they end at its end: where they start."""
    words = words << (8 * (_WORD_BYTES - widths)).view(np.uint64)
    put_pieces(data, ends - _WORD_BYTES, words.astype("<u8", copy=False))
    return ends - widths
