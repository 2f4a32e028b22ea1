"""Gives every target one thing again and again: `python -m tests.fuzz.repeats [TARGET ...]`.

A fuzzer seldom makes inputs of many kilobytes. What takes a time that grows with the square of its
input, or recurses, is found by these: everything above a second of CPU time is printed.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Iterator
from typing import NamedTuple

from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS

SIZE = 40_000
SLOW_SECONDS = 1.0
MOST_FRONTS = 6
SINGLE = b"a1e.,:;=-/\\\"'[{(|*#@< \t\n\0\1\2\x7f\x80\xe4\xff"
TOKENS = (
    *(bytes((number,)) for number in SINGLE),
    b"\r\n", b"a,", b"a.", b"a ", b"a:", b"a=", b" a=", b"a=b\n", b"a\\\n", b"a='", b'a="', b"/*",
    b"a b=c;", b"//", b"&&", b"%41", b"${", b"(?i)", b"[a", b'","', b'\\"', b"[],", b'"a":', b"1,",
    b'{"a":', b"\\u0041", b"\\x", b"-----BEGIN A-----", b"\x30\x80", b"\xfe\xed\xfe\xed",
)  # fmt: skip


class Slow(NamedTuple):
    """An input that took long, or that made an exception."""

    front: bytes
    token: bytes
    seconds: float
    error: str

    def __str__(self) -> str:
        return f"{self.front!r} and then {self.token!r}: {self.seconds:.1f} s {self.error}"


def find_slow(target: Target, size: int = SIZE, seconds: float = SLOW_SECONDS) -> Iterator[Slow]:
    """Repeat every token after the fronts of some seeds, and after all first choices."""
    seeds = sorted(set(target.seeds()), key=len)
    step = max(1, len(seeds) // MOST_FRONTS)
    fronts = {seed[: len(seed) // 2] for seed in seeds[::step]} | {bytes((n,)) for n in range(8)}
    for front in sorted(fronts):
        for token in TOKENS:
            found = _run(target, front, token, size)
            if found.seconds > seconds or found.error:
                yield found


def _run(target: Target, front: bytes, token: bytes, size: int) -> Slow:
    data = front + token * (size // len(token))
    error = ""
    start = time.process_time()
    try:
        target.run(data)
    except Exception:  # noqa: BLE001  whatever it is, it is what we look for
        error = traceback.format_exc()
    return Slow(front, token, time.process_time() - start, error)


def main() -> int:
    """Exit code: 1 when something was found."""
    code = 0
    for name in sys.argv[1:] or TARGETS:
        for found in find_slow(TARGETS[name]):
            print(name, found, flush=True)  # noqa: T201
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
