"""Where one mirror ended and the next began, as the numbers of a remote partition show it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def repeated_at_seams(numbers: Sequence[int], seams: Sequence[int]) -> list[int]:
    """How many records were copied once more at each seam.

    `numbers` are the records of the target in the order of their offsets: 0, 1, 2 ... as written
    to the source. `seams` are the end offsets that the mirrors left. Fails unless every run between
    two seams is whole and in order, begins where the one before ended or earlier, and gets further.
    """
    repeated: list[int] = []
    expected = 0
    for begin, end in pairwise([0, *seams, len(numbers)]):
        run = list(numbers[begin:end])
        assert run, f"nothing was copied between offsets {begin} and {end}"
        odd = [pair for pair in pairwise(run) if pair[1] != pair[0] + 1]
        assert not odd, f"within a run, offsets {begin} to {end}, these follow each other: {odd}"
        assert run[0] <= expected, f"{run[0]} at offset {begin}: {expected} and more are missing"
        assert run[-1] >= expected, f"offsets {begin} to {end} have nothing newer than {expected}"
        repeated.append(expected - run[0])
        expected = run[-1] + 1
    assert repeated[0] == 0
    return repeated[1:]


def last_offsets(numbers: Sequence[int]) -> dict[int, int]:
    """Offset of the last copy of each record."""
    return {number: offset for offset, number in enumerate(numbers)}
