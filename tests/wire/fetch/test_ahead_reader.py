"""Backlogs read ahead from fake brokers: all of it, once and in order, whatever fails."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest

from sparkmirror.types import TopicPartition
from tests.wire.fake_broker import FETCH, Do, FakeCluster, Request, once
from tests.wire.long_lines import make_asks_small, take_all_lines_for_long
from tests.wire.rigs import LIMITS, TP, FetcherRig

OTHER = TopicPartition("t", 1)
# So little per response that it takes many.
SMALL = LIMITS._replace(partition_max_bytes=2000, max_bytes=2000)
VALUES = [b"%05d" % at + b"." * (at * 7919 % 200) for at in range(1200)]


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCluster]:
    take_all_lines_for_long(monkeypatch)
    make_asks_small(monkeypatch)
    with FakeCluster(nodes=2) as brokers:
        brokers.create_topic("t", partitions=2)
        yield brokers


@pytest.fixture
def rig(brokers: FakeCluster) -> Iterator[FetcherRig]:
    with FetcherRig(brokers, SMALL) as rig:
        yield rig


def write(brokers: FakeCluster, tp: TopicPartition = TP) -> None:
    """Batches of one to six records."""
    at, dice = 0, random.Random(tp.partition)
    while at < len(VALUES):
        count = dice.randrange(1, 7)
        brokers.write(tp, VALUES[at : at + count])
        at += count


def asked_ahead(brokers: FakeCluster) -> list[Request]:
    """Requests outside of sessions."""
    return [request for request in brokers.sent(FETCH) if request.body.session_epoch == -1]


def is_ahead(request: Request) -> bool:
    return bool(request.body.session_epoch == -1)


def test_a_backlog_comes_once_and_in_order(rig: FetcherRig) -> None:
    for tp in (TP, OTHER):
        write(rig.brokers, tp)
        rig.fetcher.add(tp, 0)
    for tp in (TP, OTHER):
        rig.wait_for(VALUES, tp)
    assert len(asked_ahead(rig.brokers)) > 10


def test_the_first_response_of_a_long_line_has_something_of_every_partition(
    brokers: FakeCluster,
) -> None:
    """A partition that has to wait for the next one loses a round trip."""
    brokers.create_topic("many", partitions=20)
    limits = LIMITS._replace(partition_max_bytes=1 << 20, max_bytes=50 << 20)
    with FetcherRig(brokers, limits) as rig:
        for at in range(20):
            brokers.write(TopicPartition("many", at), [b"x"])
            rig.fetcher.add(TopicPartition("many", at), 0)
        rig.run_until(lambda: len(rig.fetched(TopicPartition("many", 19))) == 1, rig.fetched)
    sent = [request.body for request in brokers.sent(FETCH) if request.body.topics]
    sizes = {
        each.partition_max_bytes for body in sent for t in body.topics for each in t.partitions
    }
    assert min(sizes) <= (4 << 20) // 10  # half of them at each of two brokers
    assert max(body.max_bytes for body in sent) <= 4 << 20


def test_what_is_written_later_comes_over_the_session(rig: FetcherRig) -> None:
    write(rig.brokers)
    rig.fetcher.add(TP, 0)
    rig.wait_for(VALUES)
    before = len(asked_ahead(rig.brokers))
    rig.brokers.write(TP, [b"later"])
    rig.wait_for([*VALUES, b"later"])
    assert len(asked_ahead(rig.brokers)) == before


def test_a_short_line_is_read_by_the_session_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    make_asks_small(monkeypatch)
    monkeypatch.setattr("sparkmirror.wire.net.connection.LONG_SECONDS", 1e9)
    with FakeCluster() as brokers, FetcherRig(brokers, SMALL) as rig:
        brokers.create_topic("t")
        write(brokers)
        rig.fetcher.add(TP, 0)
        rig.wait_for(VALUES)
        assert not asked_ahead(brokers)


def test_responses_that_come_early_are_kept(rig: FetcherRig) -> None:
    """One request is held back until others have their responses."""
    write(rig.brokers)
    held, others = threading.Event(), threading.Event()

    def hold(request: Request) -> None:
        if is_ahead(request) and len(asked_ahead(rig.brokers)) > 15 and not held.is_set():
            held.set()
            others.wait(10.0)

    rig.brokers.intercept(FETCH, hold)
    rig.fetcher.add(TP, 0)
    rig.run_until(lambda: rig.pool.used_bytes >= 3 << 16, lambda: rig.pool.used_bytes)
    handed = len(rig.fetched())
    others.set()
    rig.wait_for(VALUES)
    assert handed < len(VALUES)


@pytest.mark.parametrize(
    "failure",
    [
        *(Do(code=code) for code in (1, 3, 6, 29, 56, 70, 74, 75, 76, 78, 100)),
        Do(drop=True),
        Do(garbage=b"\0"),
        Do(garbage=bytes(100)),
        Do(diverging=(0, 5)),
    ],
    ids=str,
)
def test_a_request_that_fails_takes_the_partition_back_to_where_it_was(
    rig: FetcherRig, failure: Do
) -> None:
    write(rig.brokers)
    interceptor = once(failure, is_ahead)
    rig.brokers.intercept(FETCH, interceptor)
    rig.fetcher.add(TP, 0)
    rig.wait_for(VALUES)
    assert interceptor.happened
    assert not rig.truncated
    assert not rig.out_of_range


def test_a_leader_that_moves_is_followed(rig: FetcherRig) -> None:
    write(rig.brokers)
    moved = threading.Event()

    def move(request: Request) -> None:
        if is_ahead(request) and len(asked_ahead(rig.brokers)) > 5 and not moved.is_set():
            moved.set()
            rig.brokers.move_leader(TP, 2)

    rig.brokers.intercept(FETCH, move)
    rig.fetcher.add(TP, 0)
    rig.wait_for(VALUES)
    assert moved.is_set()
    assert {request.node for request in rig.brokers.sent(FETCH)} == {1, 2}


def test_a_log_that_lost_records_is_read_from_where_it_differs(rig: FetcherRig) -> None:
    """An unclean election while much is kept: it is of the lost log."""
    write(rig.brokers)
    rig.fetcher.add(TP, 0)
    stop_midway(rig)
    rig.brokers.elect_unclean(TP, whole(rig.brokers, 60), [b"other"] * 30, node=2)
    allow_more(rig)
    rig.run_until(lambda: bool(rig.truncated), lambda: rig.fetched()[-3:])
    position, kept = rig.truncated[0]
    rig.wait_for([*VALUES[:position], *[b"other"] * 30])
    assert kept == rig.brokers.log("t").end_offset - 30


def stop_midway(rig: FetcherRig) -> None:
    """Let the consumer take no more, while responses are kept."""
    rig.run_until(lambda: len(rig.fetched()) > 100, rig.fetched)
    rig.allowed = False
    rig.run_until(lambda: rig.pool.used_bytes >= 1 << 16, lambda: rig.pool.used_bytes)
    assert len(rig.fetched()) < len(VALUES) - 50


def allow_more(rig: FetcherRig) -> None:
    rig.allowed = True
    rig.fetcher.send_ready()


def whole(brokers: FakeCluster, offset: int) -> int:
    """The end of the batch that holds an offset."""
    return next(each.end_offset for each in brokers.log("t").batches if each.end_offset > offset)


def test_nothing_is_handed_on_while_the_consumer_is_busy(rig: FetcherRig) -> None:
    write(rig.brokers)
    rig.fetcher.add(TP, 0)
    stop_midway(rig)
    before = len(rig.fetched())
    rig.run_for(0.3)
    assert len(rig.fetched()) == before
    allow_more(rig)
    rig.wait_for(VALUES)


@pytest.mark.parametrize("is_paused", [True, False], ids=["paused", "removed"])
def test_what_is_kept_of_a_partition_that_leaves_is_given_back(
    rig: FetcherRig, is_paused: bool
) -> None:
    write(rig.brokers)
    partition = rig.fetcher.add(TP, 0)
    stop_midway(rig)
    position = partition.next_offset
    if is_paused:
        rig.fetcher.pause(TP)
    else:
        rig.fetcher.remove(TP)
    rig.run_until(lambda: rig.pool.used_bytes == 0, lambda: rig.pool.used_bytes)
    rig.allowed = True
    if is_paused:
        rig.fetcher.resume(TP)
    else:
        rig.fetcher.add(TP, position)
    rig.wait_for(VALUES)


def test_a_topic_created_again_is_read_from_its_start(rig: FetcherRig) -> None:
    write(rig.brokers)
    rig.fetcher.add(TP, 0)
    stop_midway(rig)
    rig.brokers.create_topic("t", partitions=2)
    rig.brokers.write(TP, [b"new"])
    allow_more(rig)
    rig.run_until(lambda: b"new" in rig.fetched(), lambda: rig.fetched()[-3:])
    assert rig.recreated
    before = rig.fetched()[:-1]
    assert before == VALUES[: len(before)]


def test_retention_that_overtakes_us_is_reported(rig: FetcherRig) -> None:
    write(rig.brokers)
    rig.fetcher.add(TP, 0)
    stop_midway(rig)
    rig.brokers.log("t").delete_before(whole(rig.brokers, 1180))
    allow_more(rig)
    rig.run_until(lambda: VALUES[-1] in rig.fetched(), lambda: rig.fetched()[-3:])
    assert len(rig.out_of_range) == 1
    position, start, _ = rig.out_of_range[0]
    assert position is not None
    assert rig.fetched() == VALUES[:position] + VALUES[start:]


@pytest.mark.parametrize("newest", [10, 11, 12])
def test_old_brokers_are_read_ahead_too(monkeypatch: pytest.MonkeyPatch, newest: int) -> None:
    take_all_lines_for_long(monkeypatch)
    make_asks_small(monkeypatch)
    with FakeCluster(newest_fetch=newest) as brokers, FetcherRig(brokers, SMALL) as rig:
        brokers.create_topic("t")
        write(brokers)
        rig.fetcher.add(TP, 0)
        rig.wait_for(VALUES)
        assert asked_ahead(brokers)


@pytest.mark.parametrize("seed", range(10))
def test_everything_fails_at_random(rig: FetcherRig, seed: int) -> None:
    dice = random.Random(seed)
    failures = [Do(drop=True), Do(garbage=b"\0"), *(Do(code=c) for c in (1, 3, 6, 70, 71, 78))]
    lock = threading.Lock()

    def trouble(_: Request) -> Do | None:
        with lock:
            return dice.choice(failures) if dice.random() < 0.1 else None

    rig.brokers.intercept(FETCH, trouble)
    for tp in (TP, OTHER):
        write(rig.brokers, tp)
        rig.fetcher.add(tp, 0)
    for tp in (TP, OTHER):
        rig.wait_for(VALUES, tp)


def test_connections_that_fall_silent_are_given_up(
    rig: FetcherRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that were open; later ones work."""
    monkeypatch.setattr("sparkmirror.wire.fetch.ahead_reader.SILENT_SECONDS", 0.2)
    write(rig.brokers)
    silent, over = threading.Event(), threading.Event()
    rig.brokers.intercept(FETCH, lambda request: hold(silent, over) if is_ahead(request) else None)
    rig.fetcher.add(TP, 0)
    rig.run_until(silent.is_set, rig.fetched)

    def has_come() -> bool:
        rig.fetcher.note_silence()
        return len(rig.fetched()) >= len(VALUES)

    rig.run_until(has_come, lambda: len(rig.fetched()))
    over.set()
    rig.wait_for(VALUES)


def hold(silent: threading.Event, over: threading.Event) -> None:
    if not silent.is_set():
        silent.set()
        over.wait(30.0)


def test_batches_larger_than_a_request_asks_for_are_counted_with_their_size(
    rig: FetcherRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers give the first batch whole, so a request may bring far more than it asks for."""
    monkeypatch.setattr("sparkmirror.wire.fetch.ahead_reader.MOST_BYTES", 6 << 16)
    large = [bytes([at]) * 60_000 for at in range(20)]
    for value in large:
        rig.brokers.write(TP, [value])
    rig.fetcher.add(TP, 0)
    rig.run_until(lambda: len(asked_ahead(rig.brokers)) > 1, rig.fetched)
    rig.allowed = False
    rig.run_for(0.5)
    assert 0 < rig.pool.used_bytes <= 6 << 16
    allow_more(rig)
    rig.wait_for(large)
