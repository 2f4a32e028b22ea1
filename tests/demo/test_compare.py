"""A copy that is not exact is found and named, for every kind of difference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.demo.compare import TopicResult, compare_records
from sparkmirror.demo.reading import Partitions, ReadRecord, RecordContent, offset_gaps

HEADERS = (("a", b"1"), ("a", None), ("b", b""))


def topic() -> Partitions:
    """Two partitions of ten records, the offsets of the second with gaps."""
    return {
        number: [ReadRecord(index * (number + 1), _content(number, index)) for index in range(10)]
        for number in range(2)
    }


def _content(number: int, index: int) -> RecordContent:
    return RecordContent(b"k%d" % index, b"v%d-%d" % (number, index), HEADERS, 1000 + index)


def _replace(partitions: Partitions, index: int, **fields: Any) -> None:
    record = partitions[0][index]
    partitions[0][index] = record._replace(content=record.content._replace(**fields))


def _swap(partitions: Partitions) -> None:
    records = partitions[1]
    records[3], records[4] = records[4], records[3]


def _repeat_tail(partitions: Partitions) -> None:
    partitions[0] += partitions[0][7:]


def _move(partitions: Partitions) -> None:
    partitions[1].append(partitions[0].pop())


def compare(doctor: Callable[[Partitions], object]) -> TopicResult:
    """The result for a target that was changed by `doctor`."""
    target = topic()
    doctor(target)
    return compare_records("orders", topic(), "source.orders", target)


def test_exact_copy_is_the_same() -> None:
    result = compare(lambda _: None)
    assert result.same
    assert (result.records, result.partitions, result.first_difference) == (20, 2, "")
    assert result.size_bytes == 20 * (2 + 4 + 4)


def test_offsets_of_the_copy_may_differ() -> None:
    source = {0: [ReadRecord(offset, _content(0, offset)) for offset in (3, 8, 9)]}
    target = {0: [ReadRecord(at, _content(0, offset)) for at, offset in enumerate((3, 8, 9))]}
    assert compare_records("t", source, "source.t", target).same


@pytest.mark.parametrize(
    ("doctor", "counts", "order_kept", "says"),
    [
        (lambda t: _replace(t, 4, value=b"x"), (0, 1, 0), True, "offset 4, target offset 4: value"),
        (lambda t: _replace(t, 4, value=None), (0, 1, 0), True, "value b'v0-4' became None"),
        (lambda t: _replace(t, 4, key=b""), (0, 1, 0), True, "key b'k4' became b''"),
        (lambda t: _replace(t, 4, timestamp_ms=7), (0, 1, 0), True, "timestamp_ms 1004 became 7"),
        (lambda t: _replace(t, 4, headers=HEADERS[::-1]), (0, 1, 0), True, "headers"),
        (lambda t: _replace(t, 4, headers=()), (0, 1, 0), True, "headers"),
        (lambda t: t[0].pop(4), (1, 0, 0), True, "source offset 4"),
        (lambda t: t[0].pop(), (1, 0, 0), True, "the target ends before source offset 9"),
        (_swap, (0, 0, 0), False, "partition 1, source offset 6"),
        (_repeat_tail, (0, 0, 3), True, "the target has more records, from its offset 7"),
        (lambda t: t[0].insert(5, t[0][4]), (0, 0, 1), True, "source offset 5"),
        (_move, (1, 0, 1), True, "partition 0"),
        (lambda t: t.pop(1), (10, 0, 0), True, "2 partitions, source.orders has 1"),
        (lambda t: t.update({2: []}), (0, 0, 0), True, "source.orders has 3"),
        (lambda t: t.clear(), (20, 0, 0), True, "the target has no topic source.orders"),
    ],
    ids=[
        "changed value",
        "tombstone made",
        "changed key",
        "changed timestamp",
        "headers in another order",
        "headers lost",
        "one missing",
        "last one missing",
        "two swapped",
        "tail copied twice",
        "one doubled in place",
        "moved to another partition",
        "partition missing",
        "partition too many",
        "topic missing",
    ],
)
def test_doctored_copy_is_found(
    doctor: Callable[[Partitions], object],
    counts: tuple[int, int, int],
    order_kept: bool,
    says: str,
) -> None:
    result = compare(doctor)
    assert not result.same
    assert (result.missing, result.different, result.extra) == counts
    assert result.order_kept == order_kept
    assert says in result.first_difference


@given(st.lists(st.integers(0, 3), max_size=8), st.lists(st.integers(0, 3), max_size=8))
def test_only_equal_sequences_are_the_same(source: list[int], target: list[int]) -> None:
    result = compare_records("t", _partition(source), "source.t", _partition(target))
    assert result.same == (source == target)
    # What is missing or extra accounts for the difference in length.
    assert result.missing - result.extra == len(source) - len(target)


def _partition(values: list[int]) -> Partitions:
    return {0: [ReadRecord(at, _content(0, value)) for at, value in enumerate(values)]}


@pytest.mark.parametrize(
    ("offsets", "gaps"), [((), 0), ((7,), 0), ((0, 1, 2), 0), ((5, 8, 9), 2)], ids=str
)
def test_gaps_are_offsets_without_records(offsets: tuple[int, ...], gaps: int) -> None:
    records = [ReadRecord(offset, _content(0, offset)) for offset in offsets]
    assert offset_gaps(records) == gaps
