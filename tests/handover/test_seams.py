"""Counting at seams: what is allowed, and what is not."""

from __future__ import annotations

import pytest

from tests.handover.seams import repeated_at_seams


@pytest.mark.parametrize(
    ("numbers", "seams", "repeated"),
    [
        ([0, 1, 2, 3, 4], [2, 4], [0, 0]),
        ([0, 1, 2, 1, 2, 3, 4], [3, 6], [2, 0]),
        ([0, 1, 0, 1, 2, 2, 3], [2, 5], [2, 1]),
    ],
    ids=["none", "first", "both"],
)
def test_repeats_are_counted_at_their_seam(
    numbers: list[int], seams: list[int], repeated: list[int]
) -> None:
    assert repeated_at_seams(numbers, seams) == repeated


@pytest.mark.parametrize(
    ("numbers", "why"),
    [
        ([0, 1, 3, 4], "are missing"),
        ([0, 1, 2, 4], "follow each other"),
        ([0, 1, 2, 2], "follow each other"),
        ([0, 1, 3, 2], "follow each other|are missing"),
        ([0, 1, 0, 1], "nothing newer"),
        ([0, 1], "nothing was copied"),
        ([1, 2, 3, 4], "are missing"),
    ],
    ids=["lost", "lost within", "twice within", "order", "only repeats", "nothing", "first lost"],
)
def test_anything_else_fails(numbers: list[int], why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        repeated_at_seams(numbers, [2])
