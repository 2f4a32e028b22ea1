"""The CRCs of very many batches that lie side by side, compared in one go. Runs on: executor.

A CRC-32C is the state of a register after the last byte. Four bytes that are equal to the register
make it 0, zeros leave it at 0, and there are four bytes that take it from 0 to where every CRC
begins. What lies between the checked bytes of two batches is 21 bytes (see header). So these are
written there, for a moment:

    checked bytes of a batch | its CRC, 13 zeros, START | checked bytes of the next | its CRC, ...
    register:      whatever  ^ 0                   begin^

As long as every batch is whole, the register is 0 after each of the CRCs, and at the end it is the
last CRC. A damaged batch leaves a difference behind that no later byte removes: each step of a
register is a one-to-one mapping. One call instead of one per batch, which costs ten times as much.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from sparkmirror.batches.header import ATTRIBUTES_AT
from sparkmirror.batches.pieces import put_pieces
from sparkmirror.batches.varints import Ints

_BEGIN = 0xFFFFFFFF
_POLYNOMIAL = 0x82F63B78

_BETWEEN = np.dtype([("crc", "<u4"), ("zeros", "V13"), ("start", "<u4")])


def _start() -> int:
    """The four bytes, as a number, that take the register from 0 to its start: 32 bits back."""
    register = _BEGIN
    for _ in range(32):
        register = (register ^ _POLYNOMIAL) << 1 | 1 if register >> 31 else register << 1
    return register


START = _start()


def are_whole(records: memoryview, starts: Ints, end: int, headers: NDArray[Any]) -> bool:
    """Whether all batches at `starts`, side by side up to `end`, fit their CRCs.

    `headers` are copies of theirs. The bytes are as they were afterwards.
    """
    crcs = headers["crc"]
    between = np.zeros(len(starts) - 1, _BETWEEN)
    between["crc"] = ~crcs[:-1].astype(np.uint32)
    between["start"] = START
    put_pieces(records, starts[1:], between)
    found: int = crc32c(records[int(starts[0]) + ATTRIBUTES_AT : end])
    put_pieces(records, starts, headers)
    return found == int(crcs[-1])
