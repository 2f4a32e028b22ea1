"""Targets take their seeds, changed seeds, and everything that fuzzing has found before.

A case that was found becomes a file in found/<target>/, named after what it is about.
"""

from __future__ import annotations

import math
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.repeats import find_slow
from tests.fuzz.targets import TARGETS

FOUND = Path(__file__).with_name("found")
CASES = [path for path in sorted(FOUND.glob("*/*")) if path.is_file()]
MOST_MEMORY_BYTES = 64 << 20
CHANGED_SEEDS = 40
ODD = (b"", b"\0", b"\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff" * 10, b"${", b"\\", b'"')


@pytest.mark.timeout(20)
@pytest.mark.parametrize("case", CASES, ids=[f"{path.parent.name}-{path.name}" for path in CASES])
def test_found_case(case: Path) -> None:
    data = case.read_bytes()
    tracemalloc.start()
    try:
        TARGETS[case.parent.name].run(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MOST_MEMORY_BYTES


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", TARGETS)
def test_repeated_bytes_raise_nothing(name: str) -> None:
    assert [*find_slow(TARGETS[name], size=500, seconds=math.inf)] == []


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_changed_seeds(name: str) -> None:
    target = TARGETS[name]
    seeds = list(target.seeds())
    assert seeds
    rng = random.Random(name)
    for data in (b"", *seeds, *_changed(seeds, rng)):
        target.run(data)


def _changed(seeds: list[bytes], rng: random.Random) -> Iterator[bytes]:
    for _ in range(CHANGED_SEEDS):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(data) + 1)
            data[at : at + rng.randint(0, 4)] = rng.choice((*ODD, rng.randbytes(2)))
        yield bytes(data)
