"""Buffers: used again, bounded, given back by their last user."""

from __future__ import annotations

import errno

import psutil
import pytest

from sparkmirror.errors import TransportError
from sparkmirror.wire.net.buffer_pool import SMALLEST, BufferPool


@pytest.mark.parametrize(
    ("wanted", "given"),
    [(0, SMALLEST), (1, SMALLEST), (SMALLEST, SMALLEST), (SMALLEST + 1, 2 * SMALLEST)],
)
def test_sizes_are_powers_of_two(wanted: int, given: int) -> None:
    pool = BufferPool(0)
    assert len(pool.take(wanted).memory) == given
    assert pool.used_bytes == given


def test_a_buffer_is_used_again_for_a_response_of_its_size() -> None:
    pool = BufferPool(1 << 20)
    buffer = pool.take(100)
    memory = buffer.memory
    buffer.release()
    assert pool.take(SMALLEST * 4).memory is not memory
    assert pool.take(200).memory is memory


def test_two_leases_never_share_a_buffer() -> None:
    pool = BufferPool(1 << 20)
    first = pool.take(100)
    first.release()
    second, third = pool.take(100), pool.take(100)
    assert second.memory is not third.memory


def test_no_more_is_kept_than_allowed() -> None:
    pool = BufferPool(2 * SMALLEST)
    buffers = [pool.take(1) for _ in range(4)]
    kept = {id(buffer.memory) for buffer in buffers[2:]}
    for buffer in buffers:
        buffer.release()
    again = [pool.take(1) for _ in range(3)]
    assert {id(buffer.memory) for buffer in again[:2]} == kept
    assert pool.used_bytes == 3 * SMALLEST


def test_buffers_of_other_sizes_make_room() -> None:
    pool = BufferPool(4 * SMALLEST)
    for buffer in [pool.take(1) for _ in range(4)]:
        buffer.release()
    large = pool.take(3 * SMALLEST)
    assert (len(large.memory), pool._free_bytes) == (4 * SMALLEST, 0)


def test_the_last_user_gives_it_back() -> None:
    pool = BufferPool(1 << 20)
    buffer = pool.take(1)
    buffer.hold()
    buffer.hold()
    for left in (True, True, False):
        buffer.release()
        assert (pool.used_bytes > 0) is left


def test_a_buffer_given_back_twice_is_a_bug() -> None:
    buffer = BufferPool(1 << 20).take(1)
    buffer.release()
    with pytest.raises(AssertionError, match="released more often"):
        buffer.release()


def test_memory_is_not_taken_before_bytes_come() -> None:
    pool = BufferPool(0)
    before = psutil.Process().memory_info().rss
    buffer = pool.take((1 << 31) - 1)
    view = memoryview(buffer.memory)
    view[:3] = b"abc"
    assert psutil.Process().memory_info().rss - before < 1 << 28
    assert bytes(view[:4]) == b"abc\0"
    view.release()
    buffer.release()
    assert pool.used_bytes == 0


def test_more_than_there_is_breaks_the_connection_not_the_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr("sparkmirror.wire.net.buffer_pool.mmap.mmap", refuse)
    with pytest.raises(TransportError, match="no memory for a response of 2147483648 bytes"):
        BufferPool(0).take((1 << 31) - 1)
