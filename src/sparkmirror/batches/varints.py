"""Kafka's varints, zigzag and unsigned: one at a time in Python, and many at once with numpy.

A value is written seven bits a byte, lowest first, with the top bit set on all bytes but the last.
A signed one, as records have them, is zigzagged before (0, -1, 1, -2 become 0, 1, 2, 3); lengths in
requests with tagged fields (KIP-482) are not. Readers accept over-long forms, in which the last
bytes carry zero bits only: `81 00` is `01`. That lets a smaller value take the place of a larger
one without moving a byte.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparkmirror.errors import BatchError

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

MAX_INT_BYTES = 5
MAX_LONG_BYTES = 10
_UINT64 = (1 << 64) - 1


def encode_varint(value: int) -> bytes:
    """Encode one signed value in its shortest form."""
    return encode_unsigned(((value << 1) ^ (value >> 63)) & _UINT64)


def read_varint(
    data: bytes | bytearray, at: int, end: int, width: int = MAX_INT_BYTES
) -> tuple[int, int]:
    """Read one signed value that must finish before `end`: the value and where the next byte is."""
    bits = shift = 0
    stop = min(end, at + width)
    while at < stop:
        byte = data[at]
        at += 1
        bits |= (byte & 127) << shift
        if byte < 128:
            return (bits >> 1) ^ -(bits & 1), at
        shift += 7
    raise BatchError(f"read varint: not finished after {width} bytes or at the end of the record")


def encode_unsigned(value: int) -> bytes:
    """Encode one value >= 0 that is not zigzagged."""
    if value < 128:
        return bytes((value,))
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_unsigned(
    data: bytes | memoryview, at: int, width: int = MAX_INT_BYTES
) -> tuple[int, int]:
    """Read one value that is not zigzagged: the value and where the next byte is.

    Raises:
        ValueError: not finished after `width` bytes, or at the end of the data.
    """
    try:
        value = data[at]
        if value < 128:
            return value, at + 1
        value &= 127
        for n in range(1, width):
            byte = data[at + n]
            value |= (byte & 127) << 7 * n
            if byte < 128:
                return value, at + n + 1
    except IndexError:
        pass
    raise ValueError(f"the number at byte {at} does not end")


def read_varints(data: Bytes, at: Ints, width: int = MAX_INT_BYTES) -> tuple[Ints, Ints]:
    """Read one signed value at every position: the values and the positions after them.

    Positions may run past the end of `data` when it is malformed: the caller compares what comes
    back with the ends it knows.
    """
    byte = np.take(data, at, mode="clip")
    bits = (byte & 127).astype(np.uint64)
    after = at + 1
    more = np.flatnonzero(byte > 127)
    shift = 7
    while more.size:
        if shift >= 7 * width:
            raise BatchError(f"read varint: not finished after {width} bytes")
        byte = np.take(data, after[more], mode="clip")
        bits[more] |= (byte & 127).astype(np.uint64) << np.uint64(shift)
        after[more] += 1
        more = more[byte > 127]
        shift += 7
    half = (bits >> np.uint64(1)).astype(np.int64)
    return half ^ -(bits & np.uint64(1)).astype(np.int64), after


def skip_varints(data: Bytes, at: Ints) -> Ints:
    """Find the position after the varint at every position; ends are the caller's to compare."""
    after = at + 1
    more = np.flatnonzero(np.take(data, at, mode="clip") > 127)
    steps = 1
    while more.size:
        if steps >= MAX_LONG_BYTES:
            raise BatchError(f"read varint: not finished after {steps} bytes")
        byte = np.take(data, after[more], mode="clip")
        after[more] += 1
        more = more[byte > 127]
        steps += 1
    return after


def encode_words(values: Ints) -> tuple[Words, Ints]:
    """Encode every value in its shortest form, of at most 8 bytes, in a number.

    Gives the numbers, whose lowest byte is the first one, and how many bytes each takes.
    """
    bits = ((values << 1) ^ (values >> 63)).view(np.uint64)
    words = bits & np.uint64(127)
    widths = np.ones(len(values), np.int64)
    largest = int(bits.max(initial=0)) >> 7
    at = 0
    while largest:
        at += 8
        bits = bits >> np.uint64(7)
        more = bits > 0
        words |= (bits & np.uint64(127)) << np.uint64(at)
        words |= more.astype(np.uint64) << np.uint64(at - 1)  # the top bit of the byte before
        widths += more
        largest >>= 7
    return words, widths


_THRESHOLDS = np.array([1 << (7 * n) for n in range(1, 10)], dtype=np.uint64)


def write_varints_before(data: Bytes, ends: Ints, values: Ints) -> Ints:
    """Write every value in its shortest form to end at its end; return where each starts."""
    bits = ((values << 1) ^ (values >> 63)).view(np.uint64)
    if not bits.size:
        return ends
    largest = int(bits.max())
    if largest < 128:
        starts = ends - 1
        data[starts] = bits
        return starts
    widths = np.searchsorted(_THRESHOLDS, bits, side="right") + 1
    starts = ends - widths
    longest, shortest = int(widths.max()), int(widths.min())
    for n in range(longest):
        # All of them as long as all have this byte: a slice costs nothing.
        at = slice(None) if n < shortest else np.flatnonzero(widths > n)
        byte = (bits[at] >> np.uint64(7 * n)) & np.uint64(127)
        if n + 1 < shortest:
            byte |= np.uint64(128)
        else:
            byte |= (widths[at] > n + 1).astype(np.uint64) << np.uint64(7)
        data[starts[at] + n] = byte
    return starts


def write_varints_over(data: Bytes, starts: Ints, ends: Ints, values: Ints) -> None:
    """Write values >= 0 over existing varints in exactly their width, over-long where needed."""
    bits = values << 1
    widths = ends - starts
    for n in range(int(widths.max(initial=0))):
        at = np.flatnonzero(widths > n)
        byte = (bits[at] >> (7 * n)) & 127
        data[starts[at] + n] = byte | (widths[at] > n + 1).astype(np.int64) << 7
