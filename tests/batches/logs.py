"""Random pieces of a partition's log, and what a mirror of them must hold.

The shape (kinds of batches, transactions, compaction) is drawn by hypothesis, so that it shrinks;
the records' contents come from a seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain

from hypothesis import strategies as st

from sparkmirror.batches.codecs import Codec
from sparkmirror.batches.header import read_header
from sparkmirror.batches.outgoing import ForwardRules, OutgoingBatch, Plan
from sparkmirror.batches.records import Record, decode
from tests.batches.sources import SourceBatch, marker, message, wrapper

PRODUCERS = (11, 12, 13)
NOW_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Step:
    """What comes next in the log."""

    kind: str
    count: int = 1
    repeat: int = 1
    codec: Codec = Codec.NONE
    producer_id: int = PRODUCERS[0]
    compacted: bool = False
    gap: int = 0
    append_time: bool = False
    delete_horizon: bool = False
    value_bytes: int = 20


@dataclass(slots=True)
class Entry:
    """The bytes of one batch and what a consumer sees of it."""

    data: bytes
    records: list[Record]
    end_offset: int
    transaction: tuple[int, int] | None = None  # producer id, first offset


@dataclass(slots=True)
class SourceLog:
    """A piece of a partition, filled step by step."""

    random: random.Random
    entries: list[Entry] = field(default_factory=list)
    next_offset: int = 0
    aborted: list[tuple[int, int]] = field(default_factory=list)
    open: dict[int, int] = field(default_factory=dict)

    @property
    def data(self) -> bytearray:
        return bytearray(b"".join(entry.data for entry in self.entries))

    def add(self, step: Step) -> None:
        """Append one step, `repeat` times."""
        for _ in range(step.repeat):
            self.next_offset += step.gap
            getattr(self, f"_add_{step.kind}")(step)

    def _record(self, offset: int, step: Step) -> Record:
        rng = self.random
        time = rng.choice((NOW_MS, NOW_MS - 5, NOW_MS + rng.randint(0, 1 << 20), -1, 0, 1 << 40))
        key = rng.choice((None, b"", b"key", rng.randbytes(rng.randint(1, 70))))
        value = rng.choice((None, b"", rng.randbytes(rng.randint(0, step.value_bytes))))
        headers = rng.choice((
            (), (), (("h", b"x"),), (("h", None), ("h", b""), ("\u00fcber", rng.randbytes(3))),
        ))  # fmt: skip
        return Record(offset, time, key, value, headers)

    def _batch(self, step: Step, producer_id: int = -1) -> SourceBatch:
        base = self.next_offset
        records = [self._record(base + n, step) for n in range(step.count)]
        if step.compacted:
            records = [record for record in records if self.random.random() < 0.5]
        return SourceBatch(
            tuple(records),
            base_offset=base,
            last_offset=base + step.count - 1,
            codec=step.codec,
            append_time=self.random.choice((NOW_MS, NOW_MS + 7)) if step.append_time else None,
            base_timestamp=NOW_MS + 99 if step.delete_horizon else None,
            delete_horizon=step.delete_horizon,
            producer_id=producer_id,
            transactional=producer_id >= 0,
        )

    def _append(self, batch: SourceBatch, transaction: tuple[int, int] | None = None) -> None:
        seen = [] if batch.control else batch.visible()
        self.entries.append(Entry(bytes(batch.encode()), seen, batch.end_offset, transaction))
        self.next_offset = batch.end_offset

    def _add_data(self, step: Step) -> None:
        self._append(self._batch(step))

    def _add_transactional(self, step: Step) -> None:
        first = self.open.setdefault(step.producer_id, self.next_offset)
        self._append(self._batch(step, step.producer_id), (step.producer_id, first))

    def _add_commit(self, step: Step) -> None:
        self.open.pop(step.producer_id, None)
        self._append(marker(self.next_offset, step.producer_id, commit=True))

    def _add_abort(self, step: Step) -> None:
        if step.producer_id in self.open:
            self.aborted.append((step.producer_id, self.open.pop(step.producer_id)))
        self._append(marker(self.next_offset, step.producer_id, commit=False))

    def _add_old(self, step: Step) -> None:
        magic = int(step.compacted)
        records = [
            self._record(self.next_offset + n, step)._replace(headers=()) for n in range(step.count)
        ]
        seen = records if magic else [record._replace(timestamp=-1) for record in records]
        if step.codec is Codec.NONE:
            for record, visible in zip(records, seen, strict=True):
                self.entries.append(Entry(message(record, magic), [visible], record.offset + 1))
        else:
            append_time = NOW_MS + 3 if magic and step.append_time else None
            if append_time is not None:
                seen = [record._replace(timestamp=append_time) for record in records]
            data = wrapper(records, magic, step.codec, append_time)
            self.entries.append(Entry(data, seen, records[-1].offset + 1))
        self.next_offset += step.count

    def some_offset(self, choice: int | None) -> int:
        """Choose a position: the start, or at a record, or directly after one."""
        if choice is None:
            return 0
        offsets = [record.offset for entry in self.entries for record in entry.records]
        positions = [*offsets, *(offset + 1 for offset in offsets), self.next_offset + 10]
        return positions[choice % len(positions)]

    def expected(self, next_offset: int, rules: ForwardRules) -> list[Record]:
        """Apply the rules record by record."""
        dropped = set(self.aborted) if rules.read_committed else set()
        return [
            record
            for entry in self.entries
            if entry.transaction not in dropped
            for record in entry.records
            if record.offset >= next_offset
        ]


def upstream_offsets(batch: OutgoingBatch) -> list[int]:
    """List the upstream offset of every record of a batch."""
    if batch.runs is None:
        return list(range(batch.first_offset, batch.last_offset + 1))
    return [first + n for first, count in batch.runs for n in range(count)]


def mirrored(plan: Plan) -> list[Record]:
    """Decode what would be produced, with upstream offsets; checks each batch on the way."""
    return [record for batch in plan.batches for record in checked_records(batch)]


def checked_records(batch: OutgoingBatch) -> list[Record]:
    """Decode one stamped batch after checking everything that the target relies on."""
    header = read_header(batch.view)
    assert (header.base_offset, bytes(batch.view[12:16])) == (0, b"\xff\xff\xff\xff")
    assert header.attributes == header.attributes & 7
    assert header.record_count == header.last_delta + 1 == batch.count > 0
    assert header.size == len(batch.view) == batch.size
    records = decode(batch.view)
    assert [record.offset for record in records] == list(range(batch.count))
    assert header.max_timestamp == batch.max_timestamp == max(r.timestamp for r in records)
    assert header.base_timestamp == batch.base_timestamp
    offsets = upstream_offsets(batch)
    assert (offsets[0], offsets[-1], len(offsets)) == (
        batch.first_offset, batch.last_offset, batch.count,
    )  # fmt: skip
    if batch.runs is not None:
        assert all(sum(a) < b[0] for a, b in zip(batch.runs, batch.runs[1:], strict=False))
        assert len(batch.runs) > 1
    return [record._replace(offset=offset) for record, offset in zip(records, offsets, strict=True)]


_codecs = st.sampled_from(Codec)
_producers = st.sampled_from(PRODUCERS)
_counts = st.sampled_from((1, 1, 2, 3, 8, 70, 230))
_flag = st.sampled_from((False, False, False, True))


def steps() -> st.SearchStrategy[Step]:
    """Draw one step of any kind."""
    data = st.builds(
        Step,
        kind=st.sampled_from(("data", "transactional")),
        count=_counts,
        repeat=st.sampled_from((1, 1, 2, 5)),
        codec=_codecs,
        producer_id=_producers,
        compacted=_flag,
        gap=st.sampled_from((0, 0, 0, 1, 1000)),
        append_time=_flag,
        delete_horizon=_flag,
        value_bytes=st.sampled_from((0, 20, 2000)),
    )
    tiny = st.builds(
        Step,
        kind=st.sampled_from(("data", "transactional")),
        repeat=st.integers(1, 60),
        gap=st.sampled_from((0, 0, 3)),
        producer_id=_producers,
        append_time=_flag,
    )
    end = st.builds(Step, kind=st.sampled_from(("commit", "abort")), producer_id=_producers)
    empty = st.builds(Step, kind=st.just("data"), count=st.just(1), compacted=st.just(True))
    old = st.builds(
        Step,
        kind=st.just("old"),
        count=st.integers(1, 5),
        codec=_codecs,
        compacted=st.booleans(),  # which of the two formats
        append_time=_flag,
    )
    return st.one_of(data, tiny, end, empty, old)


def transactions() -> st.SearchStrategy[list[Step]]:
    """Draw one transaction, with something else in the middle of it."""
    return st.builds(
        lambda data, other, kind, producer_id: [
            replace(data, kind="transactional", producer_id=producer_id),
            *other,
            Step(kind, producer_id=producer_id),
        ],
        steps(),
        st.lists(steps(), max_size=2),
        st.sampled_from(("commit", "abort")),
        _producers,
    )


def shapes() -> st.SearchStrategy[list[Step]]:
    """Draw the shape of a piece of log."""
    parts = st.one_of(steps().map(lambda step: [step]), transactions())
    return st.lists(parts, min_size=1, max_size=8).map(
        lambda lists: list(chain.from_iterable(lists))
    )


def build(shape: Iterable[Step], seed: int) -> SourceLog:
    """Make the log that a shape and a seed describe."""
    log = SourceLog(random.Random(seed))
    for step in shape:
        log.add(step)
    return log
