"""Freed memory is taken again without page faults."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import resource, sys
from sparkmirror.spark.copy.heap import keep_freed_memory

assert len(sys.argv) == 1 or keep_freed_memory()
def churn():
    for size in (200_000, 500_000, 900_000):
        parts = [bytearray(size) for _ in range(4)]
churn()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    churn()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(*words: str) -> int:
    command = [sys.executable, "-c", PROGRAM, *words]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_freed_memory_is_kept() -> None:
    assert page_faults("keep") * 20 < page_faults()
