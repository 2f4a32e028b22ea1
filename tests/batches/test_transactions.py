"""Aborted transactions, by the rule of Java's consumer."""

from __future__ import annotations

import pytest

from sparkmirror.batches.header import read_header
from sparkmirror.batches.records import Record
from sparkmirror.batches.transactions import AbortedTransactions, is_abort_marker
from tests.batches.sources import SourceBatch, marker

ONE, TWO = 1, 2


def data(first: int, last: int, producer_id: int = ONE, transactional: bool = True) -> SourceBatch:
    records = tuple(Record(n, 0, None, b"") for n in range(first, last + 1))
    return SourceBatch(
        records, base_offset=first, producer_id=producer_id, transactional=transactional
    )


def abort(offset: int, producer_id: int = ONE) -> SourceBatch:
    return marker(offset, producer_id, commit=False)


def commit(offset: int, producer_id: int = ONE) -> SourceBatch:
    return marker(offset, producer_id, commit=True)


@pytest.mark.parametrize(
    ("aborted", "batches", "held"),
    [
        ([], [data(0, 1), commit(2)], []),
        ([(ONE, 0)], [data(0, 1), abort(2), data(3, 4), commit(5)], [0]),
        ([(ONE, 3)], [data(0, 1), commit(2), data(3, 4), abort(5)], [3]),
        ([(ONE, 0)], [data(0, 1), data(2, 3, TWO), data(4, 5), abort(6)], [0, 4]),
        ([(ONE, 0)], [data(0, 1), data(2, 3, ONE, transactional=False), abort(4)], [0]),
        ([(TWO, 2), (ONE, 0)], [data(0, 1), data(2, 3, TWO), abort(4), abort(5, TWO)], [0, 2]),
        ([(ONE, 0), (ONE, 3)], [data(0, 1), abort(2), data(3, 4), abort(5)], [0, 3]),
        ([(ONE, 1)], [data(0, 1), abort(2)], [0]),
        ([(ONE, 0)], [abort(2), data(3, 4)], []),
        ([(ONE, 0)], [data(0, 1), commit(2), data(3, 4)], [0, 3]),
    ],
    ids=[
        "none", "until-its-marker", "not-before-it", "interleaved", "not-transactional",
        "two-producers", "twice", "starts-inside", "marker-first", "commit-does-not-end-it",
    ],
)  # fmt: skip
def test_batches_of_aborted_transactions_are_found(
    aborted: list[tuple[int, int]], batches: list[SourceBatch], held: list[int]
) -> None:
    transactions = AbortedTransactions(aborted)
    found = []
    for batch in batches:
        view = memoryview(batch.encode())
        if transactions.holds(read_header(view), view):
            found.append(batch.base_offset)
    assert found == held


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"\x00\x00\x00\x00", True),
        (b"\x00\x00\x00\x01", False),
        (b"\x00\x00", False),
        (None, False),
    ],
    ids=["abort", "commit", "short", "null"],
)
def test_marker_shows_how_the_transaction_ended(key: bytes | None, expected: bool) -> None:
    batch = SourceBatch((Record(0, 0, key, b""),), control=True)
    assert is_abort_marker(memoryview(batch.encode())) is expected


def test_empty_control_batch_is_no_abort_marker() -> None:
    batch = SourceBatch((), last_offset=0, control=True)
    assert not is_abort_marker(memoryview(batch.encode()))
