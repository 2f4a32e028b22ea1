"""Uncompressed batches of one record by the thousand, as a producer without linger leaves them.

numpy reads all headers at once, and each record gets its new front written before its tail, in
the receive buffer, where the header that nobody needs any more leaves room.

    before   | header 61 | length 0 0-ts 0-delta | key, value, headers |
    after                 | length 0 ts delta    | key, value, headers |

Transaction markers and empty batches among them do not end a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from sparkmirror.batches.codecs import Codec
from sparkmirror.batches.header import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    LARGEST_OFFSET,
    LOG_APPEND_TIME,
    PREFIX_BYTES,
)
from sparkmirror.batches.merger import (
    FRONT_BYTES,
    Rows,
    finish,
    read_fronts,
    room_for_records,
    write_fronts,
)
from sparkmirror.batches.outgoing import ForwardRules, Outgoing
from sparkmirror.batches.varints import Ints, read_varints
from sparkmirror.errors import BatchError

_SHORTEST_RUN = 16  # batches from which numpy pays
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

_OPAQUE = np.dtype((np.void, HEADER_BYTES))

Flags = NDArray[np.bool_]


class Run(NamedTuple):
    """Many batches side by side, by index: of one uncompressed record each, or to be dropped."""

    first: int
    after: int
    starts: Ints
    headers: NDArray[Any]
    has_data: Flags
    is_marker: Flags


def find_runs(records: memoryview, bounds: list[int], rules: ForwardRules) -> list[Run]:
    """Find where tiny batches lie side by side in such numbers that they go through numpy."""
    count = len(bounds) - 1
    if count < _SHORTEST_RUN or bounds[-1] >= count * rules.merge_below_bytes:
        return []
    all_bounds = np.array(bounds, np.int64)
    starts = all_bounds[:-1]
    if int(np.diff(all_bounds).min()) < HEADER_BYTES:
        return []  # messages of the old formats are among them
    # Opaque items of 61 bytes at every position: copied whole, which fields would not be.
    anywhere = np.ndarray((bounds[-1] - HEADER_BYTES + 1,), _OPAQUE, records, strides=(1,))
    return _runs(starts, anywhere[starts].view(_HEADERS), rules.merge_below_bytes)


def _runs(starts: Ints, headers: NDArray[Any], below_bytes: int) -> list[Run]:
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
        Run(part.start, part.stop, starts[part], headers[part], single[part], marker[part])
        for part in _stretches(usable)
    ]


def _stretches(usable: Flags) -> list[slice[int, int, None]]:
    edges = np.flatnonzero(np.diff(usable, prepend=False, append=False)).tolist()
    return [
        slice(first, after)
        for first, after in zip(edges[::2], edges[1::2], strict=True)
        if after - first >= _SHORTEST_RUN
    ]


def find_damaged(records: memoryview, run: Run) -> int | None:
    """Compare all CRCs of a run: index of the first that is wrong."""
    lengths = run.headers["length"].astype(np.int64) + PREFIX_BYTES
    ends = (run.starts + lengths).tolist()
    starts = (run.starts + ATTRIBUTES_AT).tolist()
    found = [crc32c(records[start:end]) for start, end in zip(starts, ends, strict=True)]
    wrong = np.flatnonzero(run.headers["crc"] != np.array(found, np.uint32))
    return int(wrong[0]) if wrong.size else None


def merge_run(
    records: memoryview, run: Run, wanted: Flags, rules: ForwardRules
) -> Iterator[Outgoing]:
    """Make batches of the wanted records of a run."""
    rows = _run_rows(records, run, wanted, rules)
    bounds = _part_bounds(rows, room_for_records(rules))
    starts = _write_fronts(rows, bounds).tolist()
    ends = rows.ends.tolist()
    codec = Codec.NONE if rules.codec is None else rules.codec
    for first, after in pairwise(bounds):
        part = slice(first, after)
        views = [records[start:end] for start, end in zip(starts[part], ends[part], strict=True)]
        yield finish(rows.only(part), views, codec, rules)


def _run_rows(records: memoryview, run: Run, wanted: Flags, rules: ForwardRules) -> Rows:
    headers = run.headers[wanted]
    starts = run.starts[wanted]
    data = np.frombuffer(records, np.uint8)
    ends = starts + headers["length"].astype(np.int64) + PREFIX_BYTES
    lengths, fields = read_varints(data, starts + HEADER_BYTES)
    deltas, times, tails = read_fronts(data, fields, ends)
    offsets = headers["base_offset"].astype(np.int64)
    wrong = np.flatnonzero((fields + lengths != ends) | (deltas != 0))
    if wrong.size:
        raise BatchError(
            f"merge batch at offset {offsets[wrong[0]]}: its record does not fill it exactly"
        )
    base_times = headers["base_timestamp"].astype(np.int64) + times
    if rules.keep_append_time:
        append_time = headers["attributes"].astype(np.int64) & LOG_APPEND_TIME != 0
        base_times = np.where(append_time, headers["max_timestamp"], base_times)
    return Rows(records, tails, ends, offsets, base_times.astype(np.int64))


def _part_bounds(rows: Rows, room: int) -> list[int]:
    """Find where rows must be cut so that each part's records fit in a batch."""
    filled = np.cumsum(rows.ends - rows.tails + FRONT_BYTES)
    bounds = [0]
    while bounds[-1] < len(filled):
        first = bounds[-1]
        before = int(filled[first - 1]) if first else 0
        after = int(np.searchsorted(filled, before + room, side="right"))
        bounds.append(max(after, first + 1))
    return bounds


def _write_fronts(rows: Rows, bounds: list[int]) -> Ints:
    """Write the new front of every record right before its tail, over a header; all parts at once.

    Gives where each record starts.
    """
    firsts = np.repeat(np.array(bounds[:-1], np.int64), np.diff(bounds))
    return write_fronts(
        np.frombuffer(rows.data, np.uint8),
        rows.tails,
        rows.ends - rows.tails,
        np.arange(len(firsts)) - firsts,
        rows.timestamps - rows.timestamps[firsts],
    )
