"""Very many short pieces of bytes, copied by numpy without a Python object for each.

Runs on: executor. numpy copies items of one size: opaque ones, which may begin at any byte. Pieces
of different sizes are copied in two halves that overlap, in as many sizes as there are powers of 2:

    piece of 110    |-------- 64 ---------|
                             |-------- 64 --------|
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparkmirror.batches.varints import Bytes, Ints

AnyBuffer = memoryview | bytearray | Bytes
Pieces = NDArray[np.void]

# Where a float64 keeps its exponent: the position of the highest bit of a whole number.
_EXPONENT_AT = 52
_EXPONENT_BIAS = 1023
# Pieces so large on average are joined faster with an object for each, because it copies them once.
_LARGE_BYTES = 1500


def take_pieces(data: AnyBuffer, starts: Ints, size: int) -> Pieces:
    """Copy the `size` bytes at every start; all of them must be there."""
    return _at_every_byte(data, size)[starts]


def put_pieces(data: AnyBuffer, starts: Ints, pieces: NDArray[Any]) -> None:
    """Write every item of an array, whatever it is, at its start."""
    size = pieces.itemsize
    _at_every_byte(data, size)[starts] = pieces.view(np.dtype((np.void, size)))


def join_pieces(data: memoryview, starts: Ints, ends: Ints, front_bytes: int) -> bytearray:
    """Put the pieces, none of them empty, one behind the other, after so many bytes of zeros."""
    sizes = ends - starts
    to_ends = np.cumsum(sizes) + front_bytes
    if to_ends[-1] > len(sizes) * _LARGE_BYTES:
        bounds = zip(starts.tolist(), ends.tolist(), strict=True)
        return bytearray().join([bytes(front_bytes), *(data[start:end] for start, end in bounds)])
    out = bytearray(int(to_ends[-1]))
    powers = (sizes.astype(np.float64).view(np.int64) >> _EXPONENT_AT) - _EXPONENT_BIAS
    smallest, largest = int(powers.min()), int(powers.max())
    for power in range(smallest, largest + 1):
        those = slice(None) if smallest == largest else np.flatnonzero(powers == power)
        half = 1 << power
        first, last = starts[those], ends[those] - half
        put_pieces(out, to_ends[those] - sizes[those], take_pieces(data, first, half))
        put_pieces(out, to_ends[those] - half, take_pieces(data, last, half))
    return out


def _at_every_byte(data: AnyBuffer, size: int) -> Pieces:
    """Items of `size` bytes that begin at every byte. Indexed only: other ways copy all of them."""
    return np.ndarray(
        (max(0, len(data) - size + 1),), np.dtype((np.void, size)), data, strides=(1,)
    )
