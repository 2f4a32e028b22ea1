"""Reading ahead in a log of random batches: every batch once, in order, whatever comes when."""

from __future__ import annotations

import itertools
import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.wire.fetch.read_ahead import (
    AheadRequest,
    ReadAhead,
    Response,
    ResponseContent,
    measure,
    skip_old,
)
from sparkmirror.wire.net.buffer_pool import BufferPool

Batch = tuple[int, int, bytes]
"""Base offset, offset behind the last one, bytes."""


def batch(base: int, count: int, size: int, magic: int = 2) -> bytes:
    """What can be seen of a batch without reading its records."""
    head = struct.pack(">qiibihi", base, size - 12, 0, magic, 0, 0, count - 1)
    return head + bytes(size - len(head))


def make_log(dice: random.Random, batches: int) -> list[Batch]:
    """Batches of any size, with gaps between them as compaction leaves them."""
    log, base = [], dice.randrange(3)
    for _ in range(batches):
        count = dice.choice((1, 2, 10, 10, 10, 100))
        log.append((base, base + count, batch(base, count, 61 + dice.randrange(20) * count)))
        base += count + dice.choice((0, 0, 0, 0, 1, 500))
    return log


def read(log: list[Batch], offset: int, most_bytes: int) -> bytes:
    """As a broker does: the first batch whole, the last one cut anywhere (KIP-74)."""
    found = [data for _, end, data in log if end > offset]
    return b"".join(found)[: max(most_bytes, len(found[0]))]


def respond(log: list[Batch], ask: AheadRequest, pool: BufferPool) -> Response:
    data = bytearray(read(log, ask.offset, ask.most_bytes))
    content = measure(memoryview(data))
    assert content is not None
    return Response(memoryview(data), pool.take(len(data)), (), log[-1][1], content)


def take(view: memoryview) -> list[int]:
    """The base offsets of the whole batches."""
    bases, at = [], 0
    while at + 12 <= len(view):
        base, length = struct.unpack_from(">qi", view, at)
        at += 12 + length
        if at <= len(view):
            bases.append(base)
    return bases


def send(ahead: ReadAhead, log_end: int, most_bytes: int, depth: int) -> list[AheadRequest]:
    """What may leave while `depth` requests at most are asked for or kept."""
    asks = []
    while (gap := ahead.next_gap()) is not None:
        asks.append(gap)
    while len(ahead._asks) < depth and (ask := ahead.next_ask(log_end, most_bytes)) is not None:
        asks.append(ask)
    return asks


@settings(max_examples=300)
@given(st.integers(0, 1 << 32), st.integers(2, 300), st.integers(1, 12), st.integers(50, 5000))
def test_every_batch_comes_once_and_in_order(
    seed: int, batches: int, depth: int, most_bytes: int
) -> None:
    dice, pool = random.Random(seed), BufferPool(1 << 20)
    log = make_log(dice, batches)
    first = measure(memoryview(log[0][2]))
    assert first is not None
    ahead, end = ReadAhead(log[0][1], first), log[-1][1]
    handed, under_way = [log[0][0]], send(ahead, end, most_bytes, depth)
    while under_way:
        ask = under_way.pop(dice.randrange(len(under_way)))
        ahead.keep(ask, respond(log, ask, pool))
        while ahead.is_ready:
            response = ahead.take()
            new = response.view[skip_old(response.view, ahead.next_offset) :]
            handed += take(new)
            content = measure(new)
            ahead.move(ahead.next_offset if content is None else content.end_offset)
            response.buffer.release()
        under_way += send(ahead, end, most_bytes, depth)
    assert handed == [base for base, _, _ in log]
    assert (ahead.is_idle, ahead.bytes, ahead.next_offset) == (True, 0, end)
    assert pool.used_bytes == 0


def uniform_log(batches: int, count: int, size: int) -> list[Batch]:
    return [(at * count, (at + 1) * count, batch(at * count, count, size)) for at in range(batches)]


def test_uniform_batches_are_asked_for_at_their_borders() -> None:
    pool, log = BufferPool(1 << 20), uniform_log(100, 127, 1000)
    ahead = ReadAhead(127, ResponseContent(0, 127, 1, 1000, 1000))
    asks = [ahead.next_ask(log[-1][1], 10_500) for _ in range(4)]
    offsets = [ask.offset for ask in asks if ask is not None]
    assert offsets == [127 * at for at in (1, 11, 21, 31)]
    for ask in asks:
        assert ask is not None
        ahead.keep(ask, respond(log, ask, pool))
        assert ahead.next_gap() is None


def test_what_lies_between_two_responses_is_asked_for_before_the_first_is_handed_on() -> None:
    pool, log = BufferPool(1 << 20), uniform_log(50, 10, 1000)
    ahead = ReadAhead(0, ResponseContent(0, 20, 1, 1000, 1000))  # guesses twice as far as it should
    first, second = ahead.next_ask(500, 4000), ahead.next_ask(500, 4000)
    assert first is not None
    assert second is not None
    assert (first.offset, second.offset) == (0, 80)
    ahead.keep(first, respond(log, first, pool))
    gap = ahead.next_gap()
    assert gap is not None
    assert gap.offset == 40
    assert ahead.next_gap() is None


def test_what_is_kept_is_given_back_when_it_is_dropped() -> None:
    pool, log = BufferPool(1 << 20), uniform_log(50, 10, 1000)
    ahead = ReadAhead(0, ResponseContent(0, 10, 1, 1000, 1000))
    first, second = ahead.next_ask(500, 4000), ahead.next_ask(500, 4000)
    assert first is not None
    assert second is not None
    ahead.keep(second, respond(log, second, pool))
    assert not ahead.is_ready
    for response in ahead.drop():
        response.buffer.release()
    assert (pool.used_bytes, ahead.bytes, ahead.is_idle) == (0, 0, True)


def joined(*rows: tuple[int, int]) -> memoryview:
    return memoryview(b"".join(batch(base, count, 100) for base, count in rows))


@pytest.mark.parametrize(
    ("next_offset", "skipped"),
    [(0, 0), (9, 0), (10, 1), (15, 1), (20, 2), (25, 2), (26, 3)],
)
def test_whole_batches_are_skipped_up_to_the_one_that_holds_the_offset(
    next_offset: int, skipped: int
) -> None:
    assert skip_old(joined((0, 10), (10, 10), (23, 3)), next_offset) == 100 * skipped


def test_a_batch_whose_offset_is_lower_than_the_one_before_is_not_skipped() -> None:
    view = joined((10, 10), (4, 10), (30, 10))
    assert skip_old(view, 30) == 100
    assert measure(view) is None


@pytest.mark.parametrize("data", [b"", bytes(11), batch(5, 1, 100)[:99], bytes(100)])
def test_a_response_without_a_whole_batch_has_no_content(data: bytes) -> None:
    assert measure(memoryview(data)) is None


def test_messages_of_old_formats_have_the_offset_of_their_last_record() -> None:
    view = memoryview(b"".join(batch(at, 50, 60, magic=1) for at in (3, 7)))
    assert measure(view) == ResponseContent(3, 8, 2, 120, 60)
    assert [skip_old(view, at) for at in (3, 4, 8)] == [0, 60, 120]


def test_pairs_of_requests_never_leave_a_gap_open() -> None:
    """With one batch per request, as when each is larger than what is asked for."""
    pool, log = BufferPool(1 << 20), uniform_log(20, 10, 5000)
    ahead, handed = ReadAhead(0, ResponseContent(0, 10, 1, 5000, 5000)), []
    for _ in itertools.count():
        asks = send(ahead, 200, 1000, 3)
        if not asks:
            break
        for ask in reversed(asks):
            ahead.keep(ask, respond(log, ask, pool))
        while ahead.is_ready:
            response = ahead.take()
            handed += take(response.view[skip_old(response.view, ahead.next_offset) :])
            ahead.move(max(ahead.next_offset, response.content.end_offset))
    assert handed == [base for base, _, _ in log]
