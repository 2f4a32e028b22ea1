"""The CRC of a changed header equals the one that is computed from all bytes."""

from __future__ import annotations

import os

import pytest
from crc32c import crc32c

from sparkmirror.batches.crc_shift import difference
from sparkmirror.batches.forward import DERIVE_FROM_BYTES, stamp
from sparkmirror.batches.header import ATTRIBUTES_AT, CRC, CRC_AT
from sparkmirror.batches.records import Record, encode

SIZES = [
    *(0, 1, 15, 16, 17, 255, 256, 4095, 4096, 4097, 65_536, 131_011),
    *(1_048_575, 1_048_576, 1_048_588, 3_000_001),
]


def batch_of(size: int) -> bytearray:
    return encode([Record(0, 1_700_000_000_000, None, os.urandom(size))])


def fits(batch: bytearray) -> bool:
    """Whether the CRC is the one of the bytes."""
    return bool(CRC.unpack_from(batch, CRC_AT) == (crc32c(memoryview(batch)[ATTRIBUTES_AT:]),))


@pytest.mark.parametrize("size", SIZES)
def test_what_a_change_does_to_the_crc_depends_on_the_bytes_behind_it(size: int) -> None:
    old, new, rest = os.urandom(14), os.urandom(14), os.urandom(size)
    assert difference(old, new, size) == crc32c(old + rest) ^ crc32c(new + rest)


def test_the_bytes_before_a_change_do_not_matter() -> None:
    old, new = os.urandom(14), os.urandom(14)
    front, rest = os.urandom(22), os.urandom(100_000)
    expected = crc32c(front + old + rest) ^ crc32c(front + new + rest)
    assert difference(old, new, len(rest)) == expected


@pytest.mark.parametrize("size", [10, 1_000, DERIVE_FROM_BYTES + 1, 131_000, 900_000])
@pytest.mark.parametrize("knows_crc", [True, False])
def test_a_batch_can_be_stamped_again_and_again(size: int, knows_crc: bool) -> None:
    batch = batch_of(size)
    if not knows_crc:
        CRC.pack_into(batch, CRC_AT, 0)
    for number in range(3):
        stamp(batch, 4711 + number, number, 5 * number)
        assert fits(batch)


def test_a_batch_that_is_damaged_in_our_memory_is_not_made_to_look_right() -> None:
    batch = batch_of(2 * DERIVE_FROM_BYTES)
    stamp(batch, 1, 0, 0)
    batch[5_000] ^= 1
    stamp(batch, 2, 0, 7)
    assert not fits(batch)
