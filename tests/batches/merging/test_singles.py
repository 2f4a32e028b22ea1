"""Tiny batches by the thousand give the same records as merging them one by one."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.batches import bounds
from sparkmirror.batches.codecs import Codec
from sparkmirror.batches.forward import ForwardRules, Plan, Reason, plan, stamp
from sparkmirror.batches.merging import singles
from sparkmirror.batches.records import Record
from sparkmirror.errors import BatchError
from tests.batches.logs import PRODUCERS, Step, build, mirrored
from tests.batches.sources import SourceBatch
from tests.batches.test_forward_properties import PROPERTY

NEVER = 1 << 40
DAY_MS = 86_400_000


def tiny_steps() -> st.SearchStrategy[Step]:
    """Draw many batches of one record of one kind, or one of another kind among them."""
    kinds = st.sampled_from(("data", "data", "transactional"))
    flag = st.sampled_from((False, False, False, False, True))
    many = st.builds(
        Step,
        kind=kinds,
        repeat=st.sampled_from((1, 16, 40, 150)),
        gap=st.sampled_from((0, 0, 0, 2)),
        producer_id=st.sampled_from(PRODUCERS),
        compacted=flag,  # of one record: empty batches
        append_time=flag,
        delete_horizon=flag,
        value_bytes=st.sampled_from((0, 20, 60, 130, 9000)),
    )
    other = st.builds(
        Step,
        kind=kinds,
        count=st.sampled_from((1, 3, 70)),
        codec=st.sampled_from(Codec),
        producer_id=st.sampled_from(PRODUCERS),
        value_bytes=st.sampled_from((20, 20_000)),
    )
    end = st.builds(
        Step,
        kind=st.sampled_from(("commit", "abort")),
        producer_id=st.sampled_from(PRODUCERS),
        repeat=st.sampled_from((1, 20)),
    )
    return st.one_of(many, many, other, end)


def planned_by(
    data: bytearray, next_offset: int, aborted: list[tuple[int, int]], rules: ForwardRules
) -> tuple[Plan, Counter[Reason]]:
    slow: Counter[Reason] = Counter()
    planned = plan(memoryview(bytearray(data)), next_offset, aborted, rules, slow)
    for batch in planned.batches:
        stamp(batch.view, 1, 2, 3)
    return planned, slow


@settings(PROPERTY, max_examples=100)
@given(
    shape=st.lists(tiny_steps(), min_size=1, max_size=8),
    seed=st.integers(0, 1 << 16),
    rules=st.builds(
        ForwardRules,
        read_committed=st.booleans(),
        codec=st.sampled_from((None, None, Codec.LZ4)),
        merge_into_bytes=st.sampled_from((3000, 512 << 10)),
    ),
    resume=st.none() | st.integers(0, 1 << 16),
)
def test_numpy_and_one_by_one_give_the_same_records(
    shape: list[Step], seed: int, rules: ForwardRules, resume: int | None
) -> None:
    log = build(shape, seed)
    arguments = log.data, log.some_offset(resume), log.aborted, rules
    fast, fast_counts = planned_by(*arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(singles, "_SHORTEST_RUN", NEVER)
        patch.setattr(bounds, "_FIRST", NEVER)
        plain, plain_counts = planned_by(*arguments)
    assert mirrored(fast) == mirrored(plain)
    assert (fast.next_offset, fast.leader_epoch) == (plain.next_offset, plain.leader_epoch)
    assert fast.aborted_records == plain.aborted_records
    dropped = (Reason.CONTROL, Reason.ABORTED, Reason.EMPTY)
    assert [fast_counts[each] for each in dropped] == [plain_counts[each] for each in dropped]


def single(record: Record) -> SourceBatch:
    return SourceBatch((record,), base_offset=record.offset)


@pytest.mark.parametrize(
    "times",
    [
        [5] * 300,
        [1_700_000_000_000 + n for n in range(300)],
        [n * 400 * DAY_MS for n in range(300)],  # deltas of seven bytes
        [DAY_MS * (-1) ** n * n for n in range(300)],
        [-1, *range(299)],
    ],
    ids=["equal", "rising", "years apart", "back and forth", "without"],
)
def test_timestamps_of_all_distances_are_kept(times: list[int]) -> None:
    records = [Record(n, time, b"k", b"v" * (n % 90)) for n, time in enumerate(times)]
    data = bytearray().join(single(record).encode() for record in records)
    planned, slow = planned_by(data, 0, [], ForwardRules())
    assert mirrored(planned) == records
    assert slow == {Reason.MERGED: 300}
    assert len(planned.batches) == 1


@pytest.mark.parametrize("edge", [0, 50, 57, 58, 121, 8180, 8186, 16_000])
def test_lengths_around_the_widths_of_their_varints_are_kept(edge: int) -> None:
    values = [bytes(max(0, edge + n % 9 - 4)) for n in range(200)]
    records = [Record(n, 7, None, value) for n, value in enumerate(values)]
    data = bytearray().join(single(record).encode() for record in records)
    planned, _ = planned_by(data, 0, [], ForwardRules())
    assert mirrored(planned) == records


def test_the_damaged_one_of_very_many_is_named() -> None:
    rng = random.Random(4)
    batches = [single(Record(n, 7, None, rng.randbytes(50))).encode() for n in range(3000)]
    batches[1234][-3] ^= 4
    with pytest.raises(BatchError, match="offset 1234: CRC is"):
        planned_by(bytearray().join(batches), 0, [], ForwardRules())


def test_a_record_that_does_not_fill_its_batch_is_refused() -> None:
    batches = [single(Record(n, 7, None, b"v" * 50)).encode() for n in range(100)]
    batches[60][61] ^= 2  # the record's length
    rules = replace(ForwardRules(), check_crcs=False)
    with pytest.raises(BatchError, match="offset 60: its record does not fill it"):
        planned_by(bytearray().join(batches), 0, [], rules)
