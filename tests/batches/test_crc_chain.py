"""One CRC over batches side by side shows whether each of them is whole."""

from __future__ import annotations

import random

import pytest
from crc32c import crc32c

from sparkmirror.batches.bounds import find_batches
from sparkmirror.batches.crc_chain import START, are_whole
from sparkmirror.batches.merging import singles
from sparkmirror.batches.outgoing import ForwardRules
from tests.batches.test_bounds import tiny

COUNT = 40


def run_of(data: bytearray) -> singles.SingleRun:
    view = memoryview(data)
    (run,) = singles.find_runs(view, find_batches(view)[0], ForwardRules())
    return run


def check(data: bytearray) -> bool:
    run = run_of(data)
    return are_whole(memoryview(data), run.starts, len(data), run.headers)


def test_start_takes_a_register_of_0_to_where_every_crc_begins() -> None:
    # A CRC is the inverted register: 0 after these bytes is a register of all ones.
    assert crc32c(START.to_bytes(4, "little"), 0xFFFFFFFF) == 0


def test_whole_batches_fit_and_stay_as_they_are() -> None:
    data = bytearray(b"".join(tiny(COUNT)))
    before = bytes(data)
    assert check(data)
    assert data == before


@pytest.mark.parametrize("index", [0, 1, COUNT // 2, COUNT - 1])
@pytest.mark.parametrize("at", [17, 20, 21, 22, 43, 56, 62, -1])
def test_every_damaged_bit_of_what_a_crc_covers_is_noticed(index: int, at: int) -> None:
    batches = [bytearray(batch) for batch in tiny(COUNT)]
    for bit in range(8):
        batches[index][at] ^= 1 << bit
        data = bytearray(b"".join(batches))
        before = bytes(data)
        view = memoryview(data)
        run = run_of(bytearray(b"".join(tiny(COUNT))))
        headers = singles.take_headers(view, run.starts)
        assert not are_whole(view, run.starts, len(data), headers)
        assert data == before
        batches[index][at] ^= 1 << bit


def test_two_damaged_batches_do_not_make_up_for_each_other() -> None:
    rng = random.Random(5)
    for _ in range(200):
        batches = [bytearray(batch) for batch in tiny(COUNT)]
        mask = rng.randrange(1, 256)
        for index in rng.sample(range(COUNT), 2):
            batches[index][-1] ^= mask
        assert not check(bytearray(b"".join(batches)))
