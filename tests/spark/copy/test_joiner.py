"""Which batches are joined for a far target, and how much time that may take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from sparkmirror.batches.forward import ForwardRules, OutgoingBatch, Reason
from sparkmirror.batches.merging import joining
from sparkmirror.batches.records import Record, encode
from sparkmirror.spark.copy import joiner
from sparkmirror.spark.copy.copy_partition import CopyPartition
from sparkmirror.spark.copy.joiner import Joiner
from sparkmirror.types import TopicPartition
from sparkmirror.wire.produce.record_accumulator import ProducerBatch
from tests.wire.completions import unsent

TP = TopicPartition("a.t", 0)


class Clock:
    """Stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def waiting(count: int, first_offset: int = 0) -> list[ProducerBatch[Any]]:
    """Batches of one record each."""
    batches = []
    for offset in range(first_offset, first_offset + count):
        view = encode([Record(0, 1_700_000_000_000 + offset, None, b"%d" % offset)])
        batch = OutgoingBatch(
            view, offset, offset, 1, 1_700_000_000_000 + offset, 0, None, len(view)
        )
        batches.append(unsent(view, 1, batch))
    return batches


def partition_of(rules: ForwardRules | None = None) -> CopyPartition:
    return CopyPartition(TopicPartition("t", 0), TP, rules or ForwardRules())


def test_what_waits_becomes_one_batch_with_all_its_offsets() -> None:
    slow: Counter[Reason] = Counter()
    joined = Joiner({TP: partition_of()}, Clock(), slow)(TP, waiting(5, first_offset=7))
    assert joined is not None
    count, made = joined
    assert (count, made.count, slow) == (5, 5, {Reason.JOINED: 5})
    batch = made.payload
    assert isinstance(batch, OutgoingBatch)
    assert (batch.first_offset, batch.last_offset, batch.runs) == (7, 11, None)
    assert batch.view is made.view


def test_bytes_that_moved_out_of_the_receive_buffer_are_the_ones_that_are_joined() -> None:
    batches = waiting(2)
    batches[1].view = bytearray(batches[1].view)
    batch = batches[1].payload
    assert isinstance(batch, OutgoingBatch)
    batch.view = bytearray(len(batches[1].view))  # used again for something else
    assert Joiner({TP: partition_of()}, Clock(), Counter())(TP, batches) is not None


def test_positions_and_unknown_partitions_go_as_they_are() -> None:
    join = Joiner({TP: partition_of()}, Clock(), Counter())
    assert join(TopicPartition("offsets", 3), waiting(2)) is None
    commit = unsent(bytearray(100), 1, object())
    assert join(TP, [commit, *waiting(2)]) is None
    found = join(TP, [*waiting(2), commit])
    assert found is not None
    assert found[0] == 2


def test_records_of_a_log_that_is_gone_are_not_joined_with_later_ones() -> None:
    partition = partition_of()
    partition.pending_records = 2
    partition.disown_pending()
    assert Joiner({TP: partition}, Clock(), Counter())(TP, waiting(4)) is None


def test_batches_that_cannot_be_joined_are_not_tried_again() -> None:
    batches = waiting(3)
    bad = batches[1].payload
    assert isinstance(bad, OutgoingBatch)
    bad.count = 2
    assert Joiner({TP: partition_of()}, Clock(), Counter())(TP, batches) is None
    assert all(each.is_alone for each in batches)


def test_joining_gets_its_share_of_the_time_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, at_work = Clock(), joining.join

    def join_slowly(batches: Sequence[OutgoingBatch], rules: ForwardRules) -> OutgoingBatch:
        clock.now += 10 * joiner.MOST_SECONDS
        return at_work(batches, rules)

    monkeypatch.setattr(joiner, "join", join_slowly)
    join = Joiner({TP: partition_of()}, clock, Counter())
    assert join(TP, waiting(2)) is not None
    assert join(TP, waiting(2)) is None
    clock.now += 10 * joiner.MOST_SECONDS / joiner.SHARE
    assert join(TP, waiting(2)) is not None


@pytest.mark.parametrize("most", [150, 10_000])
def test_no_batch_becomes_larger_than_the_target_takes(most: int) -> None:
    join = Joiner({TP: partition_of(ForwardRules(max_batch_bytes=most))}, Clock(), Counter())
    joined = join(TP, waiting(50))
    assert joined is not None
    count, made = joined
    assert len(made.view) <= most
    assert (count == 50) is (most == 10_000)
