"""One batch that cannot go as it is: its records are patched, cut, or recompressed.

For offset gaps left by compaction, a position inside a batch, append times, a codec the user wants,
and batches the target finds too large. Counts are the caller's: everything here is a function.

Kafka's cleaner keeps the last offset delta of a batch it thins out, and brokers reject a new batch
whose count is not the last delta + 1. So a count that fits the last delta means deltas 0 .. n-1,
and such a batch is forwarded unread. (Brokers do not check the inner deltas of an
uncompressed batch: writing deltas with gaps under a fitting header would shift offsets silently.)
"""

from __future__ import annotations

from sparkmirror.batches import body as bodies
from sparkmirror.batches import header as layout
from sparkmirror.batches.body import KeptRecords, Spans
from sparkmirror.batches.codecs import DEFAULT_LIMIT_BYTES, Codec
from sparkmirror.batches.header import HEADER_BYTES, Header
from sparkmirror.batches.outgoing import ForwardRules, OutgoingBatch, Runs
from sparkmirror.errors import BatchError


def rewrite(
    header: Header, batch: memoryview, next_offset: int, rules: ForwardRules
) -> OutgoingBatch | None:
    """Bring a batch into the form the target takes; None when all its records lie before."""
    try:
        return _rewrite(header, batch, next_offset, rules)
    except BatchError as error:
        raise BatchError(f"rewrite batch at offset {header.base_offset}: {error}") from error


def _rewrite(
    header: Header, batch: memoryview, next_offset: int, rules: ForwardRules
) -> OutgoingBatch | None:
    codec = Codec.of(header.codec_id)
    body = bytearray(codec.decompress(batch[HEADER_BYTES:], rules.limit_bytes))
    to_retime = header.has_append_time and rules.keep_append_time
    to_renumber = not header.is_contiguous or header.base_offset < next_offset
    spans = bodies.locate(body, header.record_count) if to_retime or to_renumber else Spans([], [])
    retimed = to_retime and bodies.zero_timestamps(body, spans)
    kept = KeptRecords(0, header.record_count, ((header.base_offset, header.record_count),))
    if to_renumber:
        kept = bodies.renumber(body, spans, header.offsets, next_offset)
    if not kept.left:
        return None
    times = _times(header, body, spans, kept, to_retime)
    target_codec = codec if rules.codec is None else rules.codec
    if not to_renumber and not retimed and target_codec is codec:
        return _same_body(header, batch, times)
    with memoryview(body) as view:
        payload = target_codec.compress(view[_start(spans, kept) :], rules.codec_level)
        return outgoing(target_codec, payload, kept.runs, kept.left, times)


def _start(spans: Spans, kept: KeptRecords) -> int:
    return spans.start(kept.first) if kept.first else 0


def _times(
    header: Header, body: bytearray, spans: Spans, kept: KeptRecords, retimed: bool
) -> tuple[int, int]:
    """Find base and max timestamp; records are read only if some were cut off."""
    if retimed:
        return header.max_timestamp, header.max_timestamp
    if not kept.first:
        return header.base_timestamp, header.max_timestamp
    indexes = range(kept.first, header.record_count)
    delta = bodies.largest_timestamp_delta(body, spans, indexes)
    return header.base_timestamp, header.base_timestamp + delta


def _same_body(header: Header, batch: memoryview, times: tuple[int, int]) -> OutgoingBatch:
    """Change header fields only: the records are good as they are."""
    layout.write_header(
        batch,
        codec_id=header.codec_id,
        count=header.record_count,
        base_timestamp=times[0],
        max_timestamp=times[1],
    )
    return OutgoingBatch(
        batch,
        header.base_offset,
        header.last_offset,
        header.record_count,
        *times,
        None,
        header.size,
    )


def outgoing(
    codec: Codec,
    payload: bytes | bytearray | memoryview,
    runs: Runs,
    count: int,
    times: tuple[int, int],
) -> OutgoingBatch:
    """Put a header before a payload whose inner deltas are 0 .. n-1."""
    batch = bytearray(HEADER_BYTES)
    batch += payload
    layout.write_header(
        batch, codec_id=codec, count=count, base_timestamp=times[0], max_timestamp=times[1]
    )
    first, last = runs[0][0], sum(runs[-1]) - 1
    return OutgoingBatch(
        batch, first, last, count, *times, runs if len(runs) > 1 else None, len(batch)
    )


def split(batch: OutgoingBatch, max_bytes: int, level: int | None = None) -> list[OutgoingBatch]:
    """Halve a batch until each part has at most `max_bytes`, or one record that cannot be split."""
    if batch.size <= max_bytes or batch.count == 1:
        return [batch]
    parts: list[OutgoingBatch] = []
    for half in _halve(batch, level):
        parts += split(half, max_bytes, level)
    return parts


def _halve(batch: OutgoingBatch, level: int | None) -> tuple[OutgoingBatch, OutgoingBatch]:
    view = memoryview(batch.view)
    header = layout.read_header(view)
    codec = Codec.of(header.codec_id)
    body = bytearray(codec.decompress(view[HEADER_BYTES:], DEFAULT_LIMIT_BYTES))
    spans = bodies.locate(body, batch.count)
    middle = batch.count // 2
    bodies.renumber(body, spans, header.offsets, middle)
    runs = batch.runs or ((batch.first_offset, batch.count),)
    left, right = _split_runs(runs, middle)
    cut = spans.start(middle)
    halves = (
        (range(middle), slice(0, cut), left),
        (range(middle, batch.count), slice(cut, None), right),
    )
    base = batch.base_timestamp
    with memoryview(body) as records:
        first, second = (
            outgoing(
                codec,
                codec.compress(records[part], level),
                half_runs,
                len(indexes),
                (base, base + bodies.largest_timestamp_delta(body, spans, indexes)),
            )
            for indexes, part, half_runs in halves
        )
    return first, second


def _split_runs(runs: Runs, count: int) -> tuple[Runs, Runs]:
    """Give the first `count` records to the left."""
    left: list[tuple[int, int]] = []
    right: list[tuple[int, int]] = []
    for first, length in runs:
        taken = min(count, length)
        count -= taken
        if taken:
            left.append((first, taken))
        if taken < length:
            right.append((first + taken, length - taken))
    return tuple(left), tuple(right)
