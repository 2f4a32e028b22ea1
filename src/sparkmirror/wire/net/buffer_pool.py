"""Receive buffers that are used again, so that a gigabyte does not cost a gigabyte of page faults.

Runs on: executor. A response is received into a buffer of the pool; record batches are sent out of
the same bytes; the buffer goes back to the pool when the last batch in it was acknowledged.
"""

from __future__ import annotations

import mmap

from sparkmirror.errors import TransportError

SMALLEST = 64 * 1024
# From here on memory is taken as bytes come, not as they are announced: eight bytes from
# something that is no broker could announce 2 GB.
ANNOUNCED = 64 << 20

Memory = bytearray | mmap.mmap


class PooledBuffer:
    """One buffer in use. `hold` for every user, `release` once for each."""

    __slots__ = ("_pool", "_users", "memory")

    def __init__(self, pool: BufferPool, memory: Memory) -> None:
        self._pool = pool
        self._users = 1
        self.memory = memory

    def hold(self) -> None:
        """One more user."""
        self._users += 1

    def release(self) -> None:
        """One user less; the last one returns the buffer."""
        self._users -= 1
        if self._users == 0:
            self._pool.give_back(self.memory)
        assert self._users >= 0, "a buffer was released more often than it was held"


class BufferPool:
    """Buffers by size (powers of two), kept for the next response.

    None is kept while those in use and those kept take more than `keep_bytes`.
    """

    def __init__(self, keep_bytes: int) -> None:
        self._keep_bytes = keep_bytes
        self._free: dict[int, list[Memory]] = {}
        self._free_bytes = 0
        self.used_bytes = 0

    def take(self, size: int) -> PooledBuffer:
        """A buffer of at least `size` bytes, with old bytes in it.

        Raises:
            TransportError: this machine lacks the memory.
        """
        wanted = buffer_size(size)
        free = self._free.get(wanted)
        if free:
            memory = free.pop()
            self._free_bytes -= wanted
        else:
            self._make_room(wanted)
            memory = _allocate(wanted)
        self.used_bytes += wanted
        return PooledBuffer(self, memory)

    def give_back(self, memory: Memory) -> None:
        """Called by the buffer's last user."""
        self.used_bytes -= len(memory)
        if self.used_bytes + self._free_bytes + len(memory) <= self._keep_bytes:
            self._free.setdefault(len(memory), []).append(memory)
            self._free_bytes += len(memory)

    def _make_room(self, wanted: int) -> None:
        """Free buffers of other sizes rather than keep both."""
        for size, free in self._free.items():
            while free and self.used_bytes + self._free_bytes + wanted > self._keep_bytes:
                free.pop()
                self._free_bytes -= size


def buffer_size(size: int) -> int:
    """How large the buffer for so many bytes is."""
    wanted = SMALLEST
    while wanted < size:
        wanted *= 2
    return wanted


def _allocate(size: int) -> Memory:
    try:
        return bytearray(size) if size <= ANNOUNCED else mmap.mmap(-1, size)
    except (OSError, MemoryError) as error:
        raise TransportError(f"no memory for a response of {size} bytes") from error
