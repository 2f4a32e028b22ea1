"""Batches that are joined for a far target hold the same records, with the same offsets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.batches.codecs import Codec
from sparkmirror.batches.forward import ForwardRules, OutgoingBatch, plan, split, stamp
from sparkmirror.batches.merging import joining
from sparkmirror.batches.merging.joining import JOIN_INTO_BYTES, MOST_RECORDS, count_joinable, join
from sparkmirror.batches.records import Record, encode
from sparkmirror.errors import BatchError
from tests.batches.logs import Step, build, checked_records, shapes
from tests.batches.test_forward_properties import PROPERTY, rules_of_all_kinds


def join_all(batches: list[OutgoingBatch], rules: ForwardRules) -> list[OutgoingBatch]:
    """What is sent when everything waits: the first ones joined, again and again."""
    sent: list[OutgoingBatch] = []
    while batches:
        count = count_joinable(batches, rules)
        taken, batches = batches[:count], batches[count:]
        sent.append(taken[0] if count == 1 else join(taken, rules))
    return sent


@settings(PROPERTY, max_examples=100)
@given(shape=shapes(), seed=st.integers(0, 1 << 16), rules=rules_of_all_kinds)
def test_joined_batches_hold_what_a_consumer_of_the_source_sees(
    shape: list[Step], seed: int, rules: ForwardRules
) -> None:
    log = build(shape, seed)
    planned = plan(memoryview(bytearray(log.data)), 0, log.aborted, rules, {})
    sent = join_all(planned.batches, rules)
    for number, batch in enumerate(sent):
        stamp(batch.view, 1000 + number, number % 7, number)
    found = [record for batch in sent for record in checked_records(batch)]
    assert found == log.expected(0, rules)
    parts = [part for batch in sent for part in split(batch, 300)]
    for part in parts:
        stamp(part.view, 1, 2, 3)
    assert [record for part in parts for record in checked_records(part)] == found


def planned_batch(
    first_offset: int, count: int = 1, size: int = 10, codec: Codec = Codec.NONE
) -> OutgoingBatch:
    """A batch as it waits."""
    rows = [Record(at, 1_700_000_000_000, None, bytes(size)) for at in range(count)]
    data = encode(rows, codec=codec)
    data[:8] = first_offset.to_bytes(8, "big")  # not in the CRC
    (batch,) = plan(memoryview(data), 0, (), ForwardRules(), {}).batches
    return batch


def test_as_many_are_joined_as_the_target_takes() -> None:
    batches = [planned_batch(at * 10, 10, 10_000) for at in range(20)]
    rules = ForwardRules()
    count = count_joinable(batches, rules)
    joined = join(batches[:count], rules)
    assert joined.size <= JOIN_INTO_BYTES < joined.size + batches[count].size
    assert count_joinable(batches, ForwardRules(max_batch_bytes=250_000)) == 2
    assert count_joinable(batches, ForwardRules(max_batch_bytes=50_000)) == 1
    assert (joined.first_offset, joined.last_offset) == (0, count * 10 - 1)
    assert joined.runs is None


@pytest.mark.parametrize(
    "second",
    [
        planned_batch(5),  # the source was truncated
        planned_batch(10, codec=Codec.LZ4),
        planned_batch(10, MOST_RECORDS),
    ],
)
def test_what_does_not_follow_is_not_joined(second: OutgoingBatch) -> None:
    assert count_joinable([planned_batch(5), second, second], ForwardRules()) == 1


def test_gzip_is_left_as_it_is() -> None:
    batches = [planned_batch(at, codec=Codec.GZIP) for at in range(3)]
    assert count_joinable(batches, ForwardRules()) == 1


def test_a_gap_between_batches_is_kept() -> None:
    joined = join([planned_batch(5, 2), planned_batch(20, 3)], ForwardRules())
    assert joined.runs == ((5, 2), (20, 3))
    assert (joined.count, joined.last_offset) == (5, 22)


def test_a_batch_whose_records_do_not_fill_it_is_named() -> None:
    bad = planned_batch(7, 2)
    bad.count = 1
    with pytest.raises(BatchError, match="offsets 5 to 8"):
        join([planned_batch(5), bad], ForwardRules())


def test_of_what_opens_to_much_only_the_first_batches_are_joined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batches = [planned_batch(at * 10, 10, 1_000, Codec.ZSTD) for at in range(5)]
    monkeypatch.setattr(joining, "MOST_OPENED_BYTES", 35_000)
    joined = join(batches, ForwardRules())
    assert (joined.first_offset, joined.last_offset, joined.count) == (0, 29, 30)
    monkeypatch.setattr(joining, "MOST_OPENED_BYTES", 15_000)
    with pytest.raises(BatchError, match="more than the allowed"):
        join(batches, ForwardRules())
