"""Bounds of tiny batches found by numpy are those found by following the lengths one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from sparkmirror.batches import bounds
from sparkmirror.batches.bounds import find_batches, find_tiny_batches
from sparkmirror.batches.records import Record
from sparkmirror.errors import BatchError
from tests.batches.sources import SourceBatch

EPOCH = (5).to_bytes(4, "big")  # which SourceBatch writes
LIKE_A_HEADER = (200).to_bytes(4, "big") + EPOCH + b"\x02"


def single(offset: int, value: bytes) -> bytes:
    return bytes(SourceBatch((Record(offset, 1000, None, value),), base_offset=offset).encode())


def tiny(count: int, *, seed: int = 1, within: bytes = b"") -> list[bytes]:
    rng = random.Random(seed)
    return [single(n, rng.randbytes(rng.randint(0, 90)) + within) for n in range(count)]


def assert_same(data: bytes) -> None:
    found, cut_bytes = find_tiny_batches(memoryview(data))
    assert (list(found), cut_bytes) == find_batches(memoryview(data))


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 64, 5000])
def test_tiny_batches_are_found(count: int) -> None:
    assert_same(b"".join(tiny(count)))


@pytest.mark.parametrize("other", [0, 1, 700, 1999])
def test_batches_of_equal_size_with_one_that_differs(other: int) -> None:
    batches = [single(n, bytes(40)) for n in range(2000)]
    batches[other] = single(other, bytes(41))
    assert_same(b"".join(batches))
    assert_same(b"".join(batches)[:-1])


def test_the_bounds_of_many_are_an_array() -> None:
    found, _ = find_tiny_batches(memoryview(b"".join(tiny(100))))
    assert isinstance(found, np.ndarray)


@pytest.mark.parametrize("size", [1, 11, 16, 17, 60, 61, 70])
def test_a_cut_batch_is_not_counted(size: int) -> None:
    assert_same(b"".join(tiny(500)) + single(500, b"v" * 40)[:size])


@pytest.mark.parametrize(
    "within",
    [
        LIKE_A_HEADER,
        LIKE_A_HEADER * 3,
        EPOCH + b"\x02",
        b"\x00\x00\x00\x0c" + EPOCH + b"\x02",  # shorter than a header
        b"\xff\xff\xff\xff" + EPOCH + b"\x02",  # a negative length
        b"\x7f\xff\xff\xff" + EPOCH + b"\x02",
        b"\x02" * 30,
    ],
)
def test_values_that_look_like_headers_are_not_taken_for_them(within: bytes) -> None:
    assert_same(b"".join(tiny(3000, within=within)))


def test_whole_batches_inside_values_are_values() -> None:
    inner = b"".join(tiny(3))
    assert_same(b"".join(tiny(1000, within=inner)))


def test_another_leader_epoch_does_not_end_the_bounds() -> None:
    batches = tiny(3000)
    for at in range(1500, 3000):
        changed = bytearray(batches[at])
        changed[12:16] = (6).to_bytes(4, "big")
        batches[at] = bytes(changed)
    assert_same(b"".join(batches))


@pytest.mark.parametrize("first", [0x02_00_00, 0x02_00, 0x02_00_00_00, 0xFF_00])
def test_offsets_that_look_like_an_epoch_and_a_magic_byte(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(2)
    batches = []
    for n in range(3000):
        batch = bytearray(single(first + n, rng.randbytes(rng.randint(20, 90))))
        batch[12:16] = bytes(4)
        batches.append(bytes(batch))
    data = b"".join(batches)
    assert_same(data)
    # All by numpy: only the first ones and the last ones are followed.
    followed = 0

    def follow(records: memoryview, found: list[int], most: int) -> int:
        nonlocal followed
        before = len(found)
        cut_bytes = plain_follow(records, found, most)
        followed += len(found) - before
        return cut_bytes

    plain_follow = bounds._follow
    monkeypatch.setattr(bounds, "_follow", follow)
    find_tiny_batches(memoryview(data))
    assert followed < 200


def test_large_batches_after_tiny_ones() -> None:
    large = [single(n, bytes(300_000)) for n in range(400, 403)]
    assert_same(b"".join([*tiny(400), *large, *tiny(400, seed=2)]))


def test_a_length_too_short_for_a_batch_is_refused_after_many_good_ones() -> None:
    broken = bytearray(single(700, b"v"))
    broken[8:12] = (20).to_bytes(4, "big")
    data = b"".join([*tiny(700), bytes(broken), *tiny(100)])
    with pytest.raises(BatchError, match="offset 700: magic 2 with length 20"):
        find_tiny_batches(memoryview(data))
