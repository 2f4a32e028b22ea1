"""Java's murmur2, with the vectors of Kafka's UtilsTest."""

from __future__ import annotations

import pytest

from sparkmirror.mirror.positions.partitioner import murmur2, partition_for_key

VECTORS = [
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (b"abc", 479470107),
]


@pytest.mark.parametrize(("data", "expected"), VECTORS)
def test_murmur2_equals_javas(data: bytes, expected: int) -> None:
    assert murmur2(data) == expected


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        (b"21", 15),
        (b"foobar", 16),
        (b"a-little-bit-long-string", 12),
        (b"abc", 7),
    ],
)
def test_partition_of_25_masks_the_sign_bit_as_java_does(key: bytes, partition: int) -> None:
    assert partition_for_key(key, 25) == partition
    assert partition_for_key(key, 1) == 0


def test_murmur2_of_nothing_is_the_mixed_seed() -> None:
    assert murmur2(b"") == 275646681
