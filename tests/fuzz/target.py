"""What a fuzz target is, and how it takes its decisions from bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Target:
    """One reader of foreign bytes.

    `run` lets through nothing but bugs: what the reader may raise is caught in it, and what must
    hold of its result is asserted. `seeds` are good inputs, for a fuzzer to start from.
    """

    name: str
    run: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]


class Choices:
    """Decisions from the front of fuzzed bytes; zeros once they are used up."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        """The next bytes, or as many as are left."""
        taken = self._data[self._at : self._at + size]
        self._at += len(taken)
        return taken

    def number(self, size: int = 1, *, signed: bool = False) -> int:
        """The next bytes as a number, big-endian."""
        return int.from_bytes(self.take(size).ljust(size, b"\0"), "big", signed=signed)

    def pick(self, options: Sequence[T]) -> T:
        return options[self.number() % len(options)]

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)
