"""Receive buffers that are used again, so that a gigabyte does not cost a gigabyte of page faults.

Runs on: executor. A response is received into a leased buffer; record batches are sent out of the
same bytes; the buffer goes back to the pool when the last batch in it was acknowledged.
"""

from __future__ import annotations

SMALLEST = 64 * 1024


class Lease:
    """One buffer in use. `hold` for every user, `release` once for each."""

    __slots__ = ("_pool", "_users", "buffer")

    def __init__(self, pool: BufferPool, buffer: bytearray) -> None:
        self._pool = pool
        self._users = 1
        self.buffer = buffer

    def hold(self) -> None:
        """One more user."""
        self._users += 1

    def release(self) -> None:
        """One user less; the last one gives the buffer back."""
        self._users -= 1
        if self._users == 0:
            self._pool.give_back(self.buffer)
        assert self._users >= 0, "a lease was released more often than it was held"


class BufferPool:
    """Buffers by size (powers of two), kept for the next response up to `keep_bytes` in all."""

    def __init__(self, keep_bytes: int) -> None:
        self._keep_bytes = keep_bytes
        self._free: dict[int, list[bytearray]] = {}
        self._free_bytes = 0
        self.leased_bytes = 0

    def lease(self, size: int) -> Lease:
        """A buffer of at least `size` bytes, with old bytes in it."""
        wanted = SMALLEST
        while wanted < size:
            wanted *= 2
        free = self._free.get(wanted)
        if free:
            buffer = free.pop()
            self._free_bytes -= wanted
        else:
            buffer = bytearray(wanted)
        self.leased_bytes += wanted
        return Lease(self, buffer)

    def give_back(self, buffer: bytearray) -> None:
        """Called by the lease's last user."""
        self.leased_bytes -= len(buffer)
        if self._free_bytes + len(buffer) <= self._keep_bytes:
            self._free.setdefault(len(buffer), []).append(buffer)
            self._free_bytes += len(buffer)
