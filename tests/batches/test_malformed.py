"""Bytes that are not what they claim: a BatchError, never another exception, never a hang."""

from __future__ import annotations

import random

import pytest
from crc32c import crc32c

from sparkmirror.batches.codecs import Codec
from sparkmirror.batches.forward import ForwardRules, plan, split, stamp
from sparkmirror.batches.header import WRITE_HEADER
from sparkmirror.batches.records import decode
from sparkmirror.errors import BatchError
from tests.batches.logs import Step, build

RULES = [
    ForwardRules(check_crcs=False, limit_bytes=1 << 22),
    ForwardRules(
        read_committed=True, codec=Codec.LZ4, max_batch_bytes=200, check_crcs=False,
        limit_bytes=1 << 22,
    ),
]  # fmt: skip

SHAPES = {
    "plain": [Step("data", 5), Step("data", 70)],
    "compacted": [Step("data", 9, compacted=True, gap=3), Step("data", 230, compacted=True)],
    "tiny": [Step("data", repeat=40), Step("abort")],
    "small": [Step("data", 3, repeat=10, codec=codec) for codec in Codec],
    "append-time": [Step("data", 30, append_time=True, codec=codec) for codec in Codec],
    "transactions": [Step("transactional", 2, repeat=3), Step("abort"), Step("commit")],
    "old": [Step("old", 3, codec=codec, compacted=n % 2 > 0) for n, codec in enumerate(Codec)],
}


def _accepts(data: bytearray, next_offset: int, rules: ForwardRules) -> bool:
    try:
        planned = plan(memoryview(data), next_offset, [(11, 0)], rules, {})
        for batch in planned.batches:
            stamp(batch.view, 1, 1, 1)
            split(batch, 50)
    except BatchError:
        return False
    return True


@pytest.mark.parametrize("rules", RULES, ids=["default", "everything"])
@pytest.mark.parametrize("name", SHAPES)
def test_changed_bytes_give_batches_or_a_batch_error(name: str, rules: ForwardRules) -> None:
    log = build(SHAPES[name], 1)
    rng = random.Random(2)
    accepted = refused = 0
    for _ in range(150):
        data = log.data
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        if _accepts(data, rng.choice((0, 1, 7)), rules):
            accepted += 1
        else:
            refused += 1
    assert accepted > 0
    assert refused > 0


def test_changed_bytes_inside_records_give_records_or_a_batch_error() -> None:
    rng = random.Random(4)
    refused = 0
    batch = build([Step("data", 6, value_bytes=5)], 3).data
    for _ in range(2000):
        data = bytearray(batch)
        data[rng.randrange(57, len(data))] = rng.choice((0, 1, 127, 128, 255))
        data[17:21] = crc32c(data[21:]).to_bytes(4, "big")
        try:
            decode(data)
        except BatchError:
            refused += 1
    assert 200 < refused < 1500


def test_noise_gives_a_batch_error_or_nothing() -> None:
    rng = random.Random(6)
    refused = 0
    for _ in range(2000):
        data = bytearray(rng.randbytes(rng.randint(0, 300)))
        data[8:11] = bytes(len(data[8:11]))  # a length that may fit
        if len(data) > 16:
            data[16] = rng.randrange(3)
        refused += not _accepts(data, 0, RULES[0])
    assert refused > 100


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("count", "problem"),
    [(4_000_000, "4000000 records cannot have only 4000000 bytes"), (5_000_000, "at most 4194304")],
)
def test_numbers_of_records_are_not_believed(count: int, problem: str) -> None:
    batch = bytearray(61) + Codec.ZSTD.compress(bytes(4_000_000))
    WRITE_HEADER.pack_into(
        batch, 0, 0, len(batch) - 12, 5, 2, 0, Codec.ZSTD, count + 1, 1, 1, -1, -1, -1, count
    )
    with pytest.raises(BatchError, match=problem):
        plan(memoryview(batch), 0, (), ForwardRules(check_crcs=False), {})
