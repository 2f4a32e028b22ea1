"""Pieces of all sizes arrive whole and in order."""

from __future__ import annotations

import random

import numpy as np
import pytest

from sparkmirror.batches.pieces import join_pieces, put_pieces, take_pieces


@pytest.mark.parametrize(
    "sizes",
    [
        [1],
        [7] * 20,
        [1, 2, 3, 4, 5],
        [64, 63, 65, 127, 128, 129],
        [16_384, 1, 9_000],
        [2000] * 9,
        None,
    ],
)
def test_joined_pieces_are_a_plain_join(sizes: list[int] | None) -> None:
    rng = random.Random(3)
    sizes = sizes or [rng.randint(1, 2500) for _ in range(500)]
    gaps = [rng.randint(0, 70) for _ in sizes]
    ends = np.cumsum(np.array(sizes, np.int64) + np.array(gaps, np.int64))
    starts = ends - np.array(sizes, np.int64)
    data = memoryview(rng.randbytes(int(ends[-1])))
    plain = b"".join(
        data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    )
    assert join_pieces(data, starts, ends, 61) == bytes(61) + plain
    assert join_pieces(data, starts, ends, 0) == plain


def test_put_writes_what_take_reads() -> None:
    data = bytearray(range(60))
    at = np.array([1, 50, 20])
    taken = take_pieces(data, at, 10)
    assert taken[1].tobytes() == bytes(range(50, 60))
    out = bytearray(60)
    put_pieces(out, at, taken)
    assert out == bytes(1) + data[1:11] + bytes(9) + data[20:30] + bytes(20) + data[50:]


def test_no_piece_reaches_over_the_end() -> None:
    with pytest.raises(IndexError):
        take_pieces(bytearray(60), np.array([51]), 10)
