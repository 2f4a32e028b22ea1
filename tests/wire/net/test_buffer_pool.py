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
    assert len(pool.lease(wanted).buffer) == given
    assert pool.leased_bytes == given


def test_a_buffer_is_used_again_for_an_answer_of_its_size() -> None:
    pool = BufferPool(1 << 20)
    lease = pool.lease(100)
    buffer = lease.buffer
    lease.release()
    assert pool.lease(SMALLEST * 4).buffer is not buffer
    assert pool.lease(200).buffer is buffer


def test_two_leases_never_share_a_buffer() -> None:
    pool = BufferPool(1 << 20)
    first = pool.lease(100)
    first.release()
    second, third = pool.lease(100), pool.lease(100)
    assert second.buffer is not third.buffer


def test_no_more_is_kept_than_allowed() -> None:
    pool = BufferPool(2 * SMALLEST)
    leases = [pool.lease(1) for _ in range(4)]
    kept = {id(lease.buffer) for lease in leases[2:]}
    for lease in leases:
        lease.release()
    again = [pool.lease(1) for _ in range(3)]
    assert {id(lease.buffer) for lease in again[:2]} == kept
    assert pool.leased_bytes == 3 * SMALLEST


def test_buffers_of_other_sizes_make_room() -> None:
    pool = BufferPool(4 * SMALLEST)
    for lease in [pool.lease(1) for _ in range(4)]:
        lease.release()
    large = pool.lease(3 * SMALLEST)
    assert (len(large.buffer), pool._free_bytes) == (4 * SMALLEST, 0)


def test_the_last_user_gives_it_back() -> None:
    pool = BufferPool(1 << 20)
    lease = pool.lease(1)
    lease.hold()
    lease.hold()
    for left in (True, True, False):
        lease.release()
        assert (pool.leased_bytes > 0) is left


def test_a_buffer_given_back_twice_is_a_bug() -> None:
    lease = BufferPool(1 << 20).lease(1)
    lease.release()
    with pytest.raises(AssertionError, match="released more often"):
        lease.release()


def test_memory_is_not_taken_before_bytes_come() -> None:
    pool = BufferPool(0)
    before = psutil.Process().memory_info().rss
    lease = pool.lease((1 << 31) - 1)
    view = memoryview(lease.buffer)
    view[:3] = b"abc"
    assert psutil.Process().memory_info().rss - before < 1 << 28
    assert bytes(view[:4]) == b"abc\0"
    view.release()
    lease.release()
    assert pool.leased_bytes == 0


def test_more_than_there_is_breaks_the_connection_not_the_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr("sparkmirror.wire.net.buffer_pool.mmap.mmap", refuse)
    with pytest.raises(TransportError, match="no memory for an answer of 2147483648 bytes"):
        BufferPool(0).lease((1 << 31) - 1)
