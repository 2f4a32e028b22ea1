"""The CRC of a batch whose header changed, without reading its records again. Runs on: executor.

CRC-32C is linear: for two fields A and B of the same length in front of the same `size` bytes,

    crc(A + bytes) xor crc(B + bytes) = crc(A + zeros) xor crc(B + zeros)

with `size` zeros, and what comes before the field does not matter either. So a batch whose CRC was
checked when it came gets its new one in 2 us when it leaves; by then a batch of 128 KB has left the
processor's cache, and reading it again takes 12 us. And a batch that is damaged in between keeps a
CRC that does not fit: the target rejects it.

Up to 4,095 zeros are really there, behind the field: the processor has an instruction for that.
What 4,096 and multiples of it do is a 32x32 matrix of bits, kept as four tables of 256 numbers, one
for every byte of the CRC. Batches up to 1 MB need one of them, larger ones one for each further 8
bits of their size.
"""

from __future__ import annotations

import functools
from array import array

from crc32c import crc32c

from sparkmirror.batches.header import Buffer

Matrix = list[int]
Tables = tuple["array[int]", "array[int]", "array[int]", "array[int]"]

STEP_BITS = 12
ZEROS = memoryview(bytes(1 << STEP_BITS))
DIGIT_BITS = 8
DIGITS = 1 << DIGIT_BITS
IDENTITY: Matrix = [1 << bit for bit in range(32)]

# By DIGITS * place + digit. Arrays, not lists: a number takes 4 bytes of the cache instead of 40.
_known: dict[int, Tables] = {}


def difference(old: Buffer, new: Buffer, size: int) -> int:
    """Between the CRCs of a batch with the one or the other field, and `size` bytes behind it."""
    zeros = ZEROS[: size % len(ZEROS)]
    crcs = crc32c(zeros, crc32c(old)) ^ crc32c(zeros, crc32c(new))
    return _shift(crcs, size >> STEP_BITS)


def _shift(crc: int, steps: int) -> int:
    """What so many times 4,096 zeros make of the difference of two CRCs."""
    place = 0
    while steps:
        digit = steps % DIGITS
        if digit:
            tables = _known.get(place + digit)
            if tables is None:
                tables = _known[place + digit] = _tables(place // DIGITS, digit)
            first, second, third, fourth = tables
            crc = (
                first[crc & 255]
                ^ second[crc >> 8 & 255]
                ^ third[crc >> 16 & 255]
                ^ fourth[crc >> 24]
            )
        steps >>= DIGIT_BITS
        place += DIGITS
    return crc


def _tables(place: int, digit: int) -> Tables:
    """The tables for digit * 256**place steps."""
    matrix = IDENTITY
    for bit in range(DIGIT_BITS):
        if digit >> bit & 1:
            matrix = _times(_power(STEP_BITS + DIGIT_BITS * place + bit), matrix)
    first, second, third, fourth = (_table(matrix[at : at + 8]) for at in (0, 8, 16, 24))
    return first, second, third, fourth


@functools.cache
def _power(exponent: int) -> Matrix:
    """The matrix of 2**exponent zeros."""
    if exponent == 0:
        # A zero byte after each register; the first crc32c removes its inversions at both ends.
        return [crc32c(b"\0") ^ crc32c(b"\0", bit) for bit in IDENTITY]
    matrix = _power(exponent - 1)
    return _times(matrix, matrix)


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
