"""Record batches: the walker, its slow paths, the codecs.

What the plain reader (batches/records) accepts without an error, the fast paths must take as well,
and give the same records; whatever they take, their batches must be such as a broker takes.
"""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import lz4.frame
from crc32c import crc32c

from sparkmirror.batches.bounds import find_batches
from sparkmirror.batches.codecs import Codec
from sparkmirror.batches.forward import ForwardRules, plan, stamp
from sparkmirror.batches.header import CONTROL, HEADER_BYTES, MAGIC_AT, WRITE_HEADER, read_header
from sparkmirror.batches.merging.joining import count_joinable, join
from sparkmirror.batches.message_set import decode_message
from sparkmirror.batches.outgoing import OutgoingBatch, Plan
from sparkmirror.batches.records import Record, decode
from sparkmirror.batches.transactions import AbortedTransactions
from sparkmirror.errors import BatchError
from tests.batches.logs import Step, build, upstream_offsets
from tests.fuzz.target import Choices, Target

LIMIT_BYTES = 1 << 20
RULES = (
    ForwardRules(check_crcs=False, limit_bytes=LIMIT_BYTES),
    ForwardRules(check_crcs=False, limit_bytes=LIMIT_BYTES, merge_below_bytes=0),
    ForwardRules(check_crcs=False, limit_bytes=LIMIT_BYTES, max_batch_bytes=150),
    ForwardRules(check_crcs=False, limit_bytes=LIMIT_BYTES, read_committed=True),
    ForwardRules(
        check_crcs=False, limit_bytes=LIMIT_BYTES, read_committed=True, codec=Codec.LZ4,
        max_batch_bytes=200,
    ),
    ForwardRules(check_crcs=False, limit_bytes=LIMIT_BYTES, codec=Codec.NONE),
    ForwardRules(check_crcs=False, limit_bytes=LIMIT_BYTES, merge_into_bytes=300),
)  # fmt: skip
POSITIONS = (0, 1, 2, 7, 40, 1000)
ABORTED: tuple[tuple[tuple[int, int], ...], ...] = ((), ((11, 0),), ((11, 3), (12, 0)))
SEEDS = Path(__file__).with_name("seeds")
SHAPES = (
    [Step("data", 5), Step("data", 70)],
    [Step("data", 9, compacted=True, gap=3), Step("data", 230, compacted=True)],
    [Step("data", 460, compacted=True, value_bytes=2)],
    [Step("data", repeat=40), Step("abort")],
    [Step("data", 3, repeat=2, codec=codec) for codec in Codec],
    [Step("data", 30, append_time=True, codec=codec) for codec in Codec],
    [Step("transactional", 2, repeat=3), Step("abort"), Step("commit"), Step("data", 2)],
    [Step("old", 3, codec=codec, compacted=n % 2 > 0) for n, codec in enumerate(Codec)],
    [Step("old", 2), Step("data", 4, delete_horizon=True), Step("old", 3, compacted=True)],
)
_LARGEST = (1 << 63) - 1


# -- the walker -----------------------------------------------------------------------------------


def run_walk(data: bytes) -> None:
    """Bytes as a fetch brings them."""
    choices = Choices(data)
    rules, position = choices.pick(RULES), choices.pick(POSITIONS)
    aborted = choices.pick(ABORTED)
    check_forwarding(choices.rest(), position, aborted, rules)


def walk_seeds() -> Iterator[bytes]:
    for path in sorted(SEEDS.glob("*.log")):
        yield from (bytes((rule, 0, 0)) + path.read_bytes() for rule in (0, 4))
    for number, shape in enumerate(SHAPES):
        log = bytes(build(shape, number).data)
        yield from (bytes((rule, number % 3, number % 3)) + log for rule in (0, 2, 4))


def check_forwarding(
    fetched: bytes, position: int, aborted: Sequence[tuple[int, int]], rules: ForwardRules
) -> None:
    """Forward, and compare with what a plain reader sees."""
    expected = _plain_reading(fetched, position, aborted, rules)
    try:
        planned = plan(memoryview(bytearray(fetched)), position, aborted, rules, {})
    except BatchError:
        if expected is not None:
            raise AssertionError("good batches were refused") from None
        return
    joined = replace(planned, batches=list(_joined(planned.batches, rules)))
    for each in (planned, joined):
        for at, batch in enumerate(each.batches):
            stamp(batch.view, 5, 6, at)
        check_plan(each, position)
        if expected is not None:
            assert [_comparable(r) for r in _mirrored(each)] == [_comparable(r) for r in expected]


def _joined(batches: list[OutgoingBatch], rules: ForwardRules) -> Iterator[OutgoingBatch]:
    """Joined for a far target, as far as they can be."""
    while batches:
        count = count_joinable(batches, rules)
        taken, batches = batches[:count], batches[count:]
        try:
            yield from taken if count == 1 else [join(taken, rules)]
        except BatchError:
            yield from taken


def check_plan(planned: Plan, position: int) -> None:
    """What the target, and all who keep count of offsets, rely on."""
    expected = position
    for batch in planned.batches:
        header = read_header(batch.view)
        assert header.crc == crc32c(bytes(batch.view)[21:])
        assert header.attributes == header.attributes & 7
        assert header.record_count == header.last_delta + 1 == batch.count > 0
        assert header.size == len(batch.view) == batch.size
        expected = _check_offsets(batch, expected)
    assert planned.next_offset >= expected
    assert planned.next_offset <= _LARGEST


def _check_offsets(batch: OutgoingBatch, expected: int) -> int:
    runs = batch.runs or ((batch.first_offset, batch.count),)
    assert runs[0][0] == batch.first_offset
    assert sum(runs[-1]) == batch.last_offset + 1
    assert sum(count for _, count in runs) == batch.count
    for first, count in runs:
        assert first >= expected, f"offset {first} comes after {expected - 1}"
        assert count > 0
        expected = first + count
    return expected


def _mirrored(planned: Plan) -> Iterator[Record]:
    for batch in planned.batches:
        for record, offset in zip(decode(batch.view), upstream_offsets(batch), strict=True):
            yield record._replace(offset=offset)


def _comparable(record: Record) -> Record:
    return record._replace(headers=tuple(record.headers))


def _plain_reading(
    fetched: bytes, position: int, aborted: Sequence[tuple[int, int]], rules: ForwardRules
) -> list[Record] | None:
    """The records that a mirror must hold; None if the log is not one that brokers write."""
    try:
        bounds, _ = find_batches(memoryview(fetched))
        filter_ = AbortedTransactions(aborted if rules.read_committed else ())
        rows = [_read_batch(fetched[a:b], filter_, rules) for a, b in pairwise(bounds)]
    except BatchError:
        return None
    end = 0
    records: list[Record] = []
    for first, last, found, is_wanted in rows:
        offsets = [record.offset for record in found]
        if not _is_sound(found) or first < end or offsets != sorted({*offsets}):
            return None
        if offsets and not first <= offsets[0] <= offsets[-1] <= last:
            return None
        end = last + 1
        records += [record for record in found if is_wanted and record.offset >= position]
    return records if end <= _LARGEST else None


def _read_batch(
    batch: bytes, aborted: AbortedTransactions, rules: ForwardRules
) -> tuple[int, int, list[Record], bool]:
    """First and last offset, the records, and whether they are to be copied."""
    if batch[MAGIC_AT] < 2:
        records, _ = decode_message(memoryview(batch), rules)
        offset = int.from_bytes(batch[:8], "big", signed=True)
        last = max([offset, *(record.offset for record in records)])
        return min([last, *(record.offset for record in records)]), last, records, True
    header = read_header(batch)
    records = decode(batch, check_crcs=False, limit_bytes=rules.limit_bytes)
    is_wanted = not aborted.holds(header, memoryview(batch)) and not header.attributes & CONTROL
    return header.base_offset, header.last_offset, records, is_wanted


def _is_sound(records: Sequence[Record]) -> bool:
    """Timestamps whose differences are numbers that Kafka can write."""
    half = 1 << 62
    return all(-half < record.timestamp < half for record in records)


# -- records inside batches -----------------------------------------------------------------------


def run_records(data: bytes) -> None:
    """Batches with good headers around any records, compressed so that they are read."""
    choices = Choices(data)
    rules, position = choices.pick(RULES), choices.pick(POSITIONS)
    aborted = choices.pick(ABORTED)
    offset = choices.number(2)
    fetched = bytearray()
    for _ in range(1 + choices.number() % 20):
        batch, offset = _make_batch(choices, offset)
        fetched += batch
    check_forwarding(bytes(fetched), position, aborted, rules)


def _make_batch(choices: Choices, offset: int) -> tuple[bytes, int]:
    codec = choices.pick(tuple(Codec))
    flags = choices.number() & 0x78
    count, gap = choices.number(2) & 1023, choices.number(2) & 1023
    base_time, max_time = choices.number(8, signed=True), choices.number(8, signed=True)
    body = choices.take(choices.number(2))
    batch = bytearray(HEADER_BYTES) + bytes(codec.compress(body))
    last_delta = max(count - 1, 0) + gap
    producer = 11 if flags & 0x10 else -1
    WRITE_HEADER.pack_into(
        batch, 0, offset, len(batch) - 12, 5, 2, 0, codec | flags, last_delta, base_time, max_time,
        producer, 3, 17, count,
    )  # fmt: skip
    return bytes(batch), offset + last_delta + 1


def records_seeds() -> Iterator[bytes]:
    """The same logs as for the walker, taken apart."""
    for number, shape in enumerate(SHAPES):
        log = bytes(build(shape, number).data)
        bounds, _ = find_batches(memoryview(log))
        batches = [log[a:b] for a, b in pairwise(bounds) if log[a + MAGIC_AT] == 2][:20]
        parts = [_taken_apart(batch) for batch in batches]
        if parts:
            yield bytes((number, 0, number, 0, 0, len(parts) - 1)) + b"".join(parts)


def _taken_apart(batch: bytes) -> bytes:
    header = read_header(batch)
    body = bytes(Codec.of(header.codec_id).decompress(batch[HEADER_BYTES:])) if batch[61:] else b""
    gap = header.last_delta + 1 - header.record_count
    times = batch[27:43]
    numbers = (header.record_count, gap, len(body))
    count, compacted, size = (number.to_bytes(2, "big") for number in numbers)
    return (
        bytes((header.codec_id, header.attributes & 0x78)) + count + compacted + times + size + body
    )


# -- codecs ---------------------------------------------------------------------------------------


def run_codecs(data: bytes) -> None:
    """Compressed bytes: what comes out is no more than allowed, and what a library makes of it."""
    choices = Choices(data)
    codec = choices.pick([codec for codec in Codec if codec])
    packed = choices.rest()
    expected = _unpacked_by_library(codec, packed)
    try:
        content = codec.decompress(packed, LIMIT_BYTES)
    except BatchError:
        if expected is not None:
            raise AssertionError("good data was refused") from None
        return
    assert len(content) <= LIMIT_BYTES
    assert expected is None or bytes(content) == expected
    again = codec.decompress(codec.compress(content), LIMIT_BYTES)
    assert bytes(again) == bytes(content)


def _unpacked_by_library(codec: Codec, packed: bytes) -> bytes | None:
    """None where the library says no, or is known to see it otherwise."""
    content = None
    try:
        if codec is Codec.LZ4:
            frame = lz4.frame.LZ4FrameDecompressor()
            content = frame.decompress(packed, max_length=LIMIT_BYTES + 1)
            # Frames that may be skipped are of no use to Kafka.
            if not frame.eof or frame.unused_data or packed[:4] != b"\x04\x22\x4d\x18":
                return None
        elif codec is Codec.GZIP and packed.rstrip(b"\0") == packed:
            content = gzip.GzipFile(fileobj=io.BytesIO(packed)).read(LIMIT_BYTES + 1)
    except (RuntimeError, OSError, EOFError, zlib.error, struct.error):
        return None
    return content if content is None or len(content) <= LIMIT_BYTES else None


def codecs_seeds() -> Iterator[bytes]:
    for number, codec in enumerate(codec for codec in Codec if codec):
        for content in (b"", b"some records " * 40, bytes(range(256)) * 300):
            yield bytes((number,)) + bytes(codec.compress(content))


TARGETS = (
    Target("batches", run_walk, walk_seeds),
    Target("records", run_records, records_seeds),
    Target("codecs", run_codecs, codecs_seeds),
)
