"""Measures how fast fetched bytes become batches for the target: one core, no I/O, CPU time.

    python -m bench.batches [words of the cases to run]

Every case prepares the bytes of one fetch of one partition and measures plan and stamp on them, the
best of several rounds. MB and records are those of the source's batches.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from sparkmirror.batches.codecs import Codec
from sparkmirror.batches.forward import ForwardRules, Reason, plan, stamp
from sparkmirror.batches.header import (
    ATTRIBUTES,
    ATTRIBUTES_AT,
    CONTROL,
    LOG_APPEND_TIME,
    write_crc,
)
from sparkmirror.batches.records import Record, encode
from sparkmirror.spark.copy.heap import keep_freed_memory
from tests.batches.sources import SourceBatch

ROUNDS = 9
SECONDS = 0.3
NOW_MS = 1_700_000_000_000
RULES = ForwardRules()


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of fetched bytes and the rules for it."""

    name: str
    make: Callable[[], bytearray]
    rules: ForwardRules = RULES
    next_offset: int = 0


@dataclass(slots=True)
class Log:
    """Batches one after another, as in a broker's log."""

    data: bytearray = field(default_factory=bytearray)
    next_offset: int = 0

    def add(self, count: int, size: int, codec: Codec = Codec.NONE, attributes: int = 0) -> None:
        """Append a batch of records of `size` bytes of words."""
        records = [
            Record(0, NOW_MS + self.next_offset // 100 + n, None, words(size)) for n in range(count)
        ]
        self.append(encode(records, codec), count, attributes)

    def append(self, batch: bytearray, offsets: int, attributes: int = 0) -> None:
        """Append an encoded batch that takes `offsets` offsets."""
        batch[0:8] = self.next_offset.to_bytes(8, "big")
        if attributes:
            ATTRIBUTES.pack_into(batch, ATTRIBUTES_AT, batch[ATTRIBUTES_AT + 1] | attributes)
            write_crc(batch)
        self.data += batch
        self.next_offset += offsets


_random = random.Random(7)
_VOCABULARY = [
    bytes(_random.choices(b"abcdefghijklmnop0123456789", k=_random.randint(3, 12)))
    for _ in range(4000)
]


def words(size: int) -> bytes:
    """Make a value that compresses about as well as text."""
    value = b" ".join(_random.choices(_VOCABULARY, k=size // 7 + 1))
    return value[:size].ljust(size, b".")


def plain(
    batches: int, count: int, size: int, codec: Codec = Codec.NONE, bits: int = 0
) -> bytearray:
    log = Log()
    for _ in range(batches):
        log.add(count, size, codec, bits)
    return log.data


def transactions(batches: int, size: int) -> bytearray:
    """Make transactions of one record, each followed by its marker."""
    log = Log()
    marker = [Record(0, NOW_MS, b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x00")]
    for _ in range(batches):
        log.add(1, size)
        log.append(encode(marker), 1, CONTROL)
    return log.data


def compacted(batches: int, count: int, size: int, codec: Codec) -> bytearray:
    """Make batches that the log cleaner removed every other record from."""
    log = Log()
    for _ in range(batches):
        records = tuple(Record(n, NOW_MS, None, words(size)) for n in range(0, count, 2))
        log.append(SourceBatch(records, last_offset=count - 1, codec=codec).encode(), count)
    return log.data


def cases() -> Iterator[Case]:
    """List all cases."""
    yield from forwarding()
    yield from merging()
    yield from rewriting()


def forwarding() -> Iterator[Case]:
    unchecked = ForwardRules(check_crcs=False)
    yield Case("in place, 128 KB of 1 KB, none", partial(plain, 64, 128, 1000))
    yield Case("in place, no CRC check", partial(plain, 64, 128, 1000), unchecked)
    yield Case(
        "in place, 100 B: cost without CRC",
        partial(plain, 64, 1, 100),
        ForwardRules(check_crcs=False, merge_below_bytes=0),
    )
    yield Case("in place, lz4 of 1000 x 100 B", partial(plain, 64, 1000, 100, Codec.LZ4))
    yield Case("in place, one 4 KB batch", partial(plain, 1, 4, 1000))


def merging() -> Iterator[Case]:
    unchecked = ForwardRules(check_crcs=False)
    yield Case("merge 1 record of 100 B, none", partial(plain, 4000, 1, 100))
    yield Case("merge 1 record of 1000 B, none", partial(plain, 4000, 1, 1000))
    yield Case("merge 1 record of 100 B, no CRC check", partial(plain, 4000, 1, 100), unchecked)
    yield Case("merge transactions of 1 x 100 B", partial(transactions, 4000, 100))
    yield Case("merge 5 records of 100 B, none", partial(plain, 2000, 5, 100))
    yield Case("merge 50 records of 100 B, none", partial(plain, 400, 50, 100))
    yield Case("merge 1 record of 100 B, lz4", partial(plain, 2000, 1, 100, Codec.LZ4))
    yield Case("merge 10 records of 100 B, lz4", partial(plain, 800, 10, 100, Codec.LZ4))


def rewriting() -> Iterator[Case]:
    for codec in Codec:
        name = codec.name.lower()
        yield Case(f"gaps, 500 of 100 B, {name}", partial(compacted, 8, 1000, 100, codec))
        yield Case(f"gaps, 63 of 1 KB, {name}", partial(compacted, 16, 126, 1000, codec))
        stamped = partial(plain, 8, 1000, 100, codec, LOG_APPEND_TIME)
        yield Case(f"append time, 1000 of 100 B, {name}", stamped)
    to_lz4 = ForwardRules(codec=Codec.LZ4)
    yield Case("recode none to lz4, 1000 of 100 B", partial(plain, 8, 1000, 100), to_lz4)


def measure(case: Case) -> str:
    """Run one case; returns a line of figures."""
    source = case.make()
    buffer = memoryview(bytearray(source))
    best = float("inf")
    slow: dict[Reason, int] = {}
    spent = rounds = 0.0
    while spent < SECONDS or rounds < ROUNDS:
        buffer[:] = source
        slow.clear()
        began = time.process_time()
        planned = plan(buffer, case.next_offset, (), case.rules, slow)
        for batch in planned.batches:
            stamp(batch.view, 4711, 0, 0)
        took = time.process_time() - began
        best = min(best, took)
        spent += took
        rounds += 1
    records = sum(batch.count for batch in planned.batches)
    sources = max(sum(slow.values()), len(planned.batches))
    return (
        f"{case.name:40} {len(source) / best / 1e6:9.0f} MB/s"
        f" {records / best / 1e6:8.2f} M records/s {sources / best / 1e6:8.3f} M batches/s"
        f" {best / sources * 1e6:9.2f} us a batch"
    )


def main() -> None:
    """Run the cases whose names contain all given words."""
    keep_freed_memory()  # as a copy task does
    for case in cases():
        if all(word in case.name for word in sys.argv[1:]):
            sys.stdout.write(measure(case) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
