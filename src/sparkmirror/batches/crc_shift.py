"""The CRC of a batch whose header changed, without reading its records again. Runs on: executor.

CRC-32C is linear: for two headers A and B of the same length in front of the same `size` bytes,

    crc(A + bytes) xor crc(B + bytes) = shift(crc(A) xor crc(B), size)

where `shift` is what `size` zero bytes do to the CRC register, which depends on the size alone. So
a batch whose CRC was checked when it came gets its new one in some 4 us when it leaves; by then a
batch of 128 KB has left the processor's cache, and reading it again takes 12 us. And a batch that
is damaged in between keeps a CRC that does not fit: the target refuses it.

`shift` is a 32x32 matrix of bits. Those for 1 to 15 times every power of 16 are enough for all
sizes; each is kept as four tables of 256 numbers, one for every byte of the register.
"""

from __future__ import annotations

import functools
from array import array

from crc32c import crc32c

Matrix = list[int]
Tables = tuple["array[int]", "array[int]", "array[int]", "array[int]"]

IDENTITY: Matrix = [1 << bit for bit in range(32)]

# By 16 * place + digit. Arrays, not lists: a number takes 4 bytes of the cache instead of 40.
_known: dict[int, Tables] = {}


def shift(crc: int, size: int) -> int:
    """What `size` zero bytes make of the difference of two CRCs."""
    place = 0
    while size:
        digit = size & 15
        if digit:
            tables = _known.get(place + digit)
            if tables is None:
                tables = _known[place + digit] = _tables(place // 16, digit)
            first, second, third, fourth = tables
            crc = (
                first[crc & 255]
                ^ second[crc >> 8 & 255]
                ^ third[crc >> 16 & 255]
                ^ fourth[crc >> 24]
            )
        size >>= 4
        place += 16
    return crc


def _tables(place: int, digit: int) -> Tables:
    """The tables for digit * 16**place zero bytes."""
    matrix = IDENTITY
    for _ in range(digit):
        matrix = _times(_power(place), matrix)
    first, second, third, fourth = (_table(matrix[at : at + 8]) for at in (0, 8, 16, 24))
    return first, second, third, fourth


@functools.cache
def _power(place: int) -> Matrix:
    """The matrix of 16**place zero bytes."""
    if place == 0:
        # A zero byte after each register; the first crc32c takes away its inversions at both ends.
        return [crc32c(b"\0") ^ crc32c(b"\0", bit) for bit in IDENTITY]
    matrix = _power(place - 1)
    for _ in range(4):
        matrix = _times(matrix, matrix)
    return matrix


def _times(left: Matrix, right: Matrix) -> Matrix:
    return [_apply(left, column) for column in right]


def _apply(matrix: Matrix, vector: int) -> int:
    out = 0
    for bit in range(32):
        if vector >> bit & 1:
            out ^= matrix[bit]
    return out


def _table(columns: Matrix) -> array[int]:
    """The sum of the columns chosen by the bits of a byte, for all 256 bytes."""
    out = [0]
    for column in columns:
        out += [value ^ column for value in out]
    return array("I", out)
