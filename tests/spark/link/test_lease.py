"""Until when a task may write: the arithmetic, the question over a real link, and the fence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from sparkmirror.errors import LeaseError
from sparkmirror.spark.link.lease import LEASE, Lease, renewal_response
from sparkmirror.spark.link.server import ON_ITS_WAY_SECONDS, LinkServer
from sparkmirror.wire.net.event_loop import EventLoop
from tests.spark.copies import OFFSETS, T0, Copy
from tests.spark.link_ends import Peer, Task
from tests.wire.fake_broker import FakeCluster


class Clock:
    """Stands still until the test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lease(clock: Clock) -> Lease:
    return Lease(clock)


def test_nothing_may_be_written_before_the_first_response(lease: Lease) -> None:
    with pytest.raises(LeaseError, match="no valid lease from the worker"):
        lease.check()


def test_a_worker_without_others_lends_for_ever(lease: Lease, clock: Clock) -> None:
    lease.renew(renewal_response(lease.question(), None))
    clock.now += 1e9
    lease.check()
    assert not lease.is_ending


def test_the_end_counts_from_the_request_not_from_the_response(lease: Lease, clock: Clock) -> None:
    lease.renew(renewal_response(lease.question(), 9.0))
    question = lease.question()
    clock.now += 60  # frozen, with the response in a buffer
    assert lease.is_over
    lease.renew(renewal_response(question, 9.0))
    assert lease.is_over


@pytest.mark.parametrize(
    ("seconds", "passed", "expected"),
    [
        (9.0, 0.0, (False, False)),
        (9.0, 6.2, (False, False)),
        (9.0, 6.4, (True, False)),
        (9.0, 9.0, (True, True)),
        (5.0, 3.4, (False, False)),
        (5.0, 3.6, (True, False)),
        (60.0, 56.9, (False, False)),
        (60.0, 57.1, (True, False)),
        (0.0, 0.0, (False, True)),
    ],
)
def test_a_task_ends_a_little_before_its_lease(
    lease: Lease, clock: Clock, seconds: float, passed: float, expected: tuple[bool, bool]
) -> None:
    lease.renew(renewal_response(lease.question(), seconds))
    clock.now += passed
    assert (lease.is_ending, lease.is_over) == expected


def test_a_worker_that_lost_the_lead_takes_the_lease_back(lease: Lease) -> None:
    lease.renew(renewal_response(lease.question(), 9.0))
    lease.renew(renewal_response(lease.question(), 0.0))
    with pytest.raises(LeaseError):
        lease.check()


def test_the_worker_responds_over_the_link_and_keeps_other_messages() -> None:
    peer, server = Peer(), LinkServer("127.0.0.1", lend=lambda: lambda: 7.5)
    server.expect("t", peer)
    task = Task(server)
    task.link.wait_for_start()
    peer.links.get(timeout=10).send({"type": "assign"})
    response = task.link.ask({"type": "renew", "at": 12.5}, LEASE)
    assert response == {"type": LEASE, "at": 12.5, "seconds": 7.5}
    task.link.attach(task.loop, task.messages.append, task.lost.append)
    task.run_until(lambda: bool(task.messages))
    assert task.messages == [{"type": "assign"}]
    assert peer.messages.empty()
    task.close()
    server.close()


def test_the_server_remembers_until_when_a_task_may_write(clock: Clock) -> None:
    peer, lent = Peer(), [7.5]
    server = LinkServer("127.0.0.1", lend=lambda: lambda: lent[0], clock=clock)
    server.expect("t", peer)
    task = Task(server)
    task.link.wait_for_start()
    peer.links.get(timeout=10).send({"type": "assign"})
    assert server.released_at("t") == -math.inf
    task.link.ask({"type": "renew", "at": 12.5}, LEASE)
    end = clock.now + 7.5 + ON_ITS_WAY_SECONDS
    assert server.released_at("t") == end
    # A shorter lease does not take back the longer one: its response may be lost.
    lent[0], clock.now = 0.5, clock.now + 1
    task.link.ask({"type": "renew", "at": 13.5}, LEASE)
    lent[0] = 0.0
    task.link.ask({"type": "renew", "at": 14.5}, LEASE)
    assert server.released_at("t") == end
    task.close()
    server.forget("t")
    assert server.released_at("t") == end
    clock.now = end - 0.1
    server.expect("other", peer)
    assert server.released_at("t") == end
    assert not server.has_released("t")
    clock.now = end + 0.1
    assert server.has_released("t")
    server.expect("other", peer)
    assert server.released_at("t") == -math.inf
    server.close()


def test_a_task_that_was_lent_time_for_ever_is_never_released_by_its_lease(clock: Clock) -> None:
    peer, server = Peer(), LinkServer("127.0.0.1", clock=clock)
    server.expect("t", peer)
    task = Task(server)
    task.link.wait_for_start()
    peer.links.get(timeout=10).send({"type": "assign"})
    task.link.ask({"type": "renew", "at": 12.5}, LEASE)
    task.close()
    server.forget("t")
    assert server.released_at("t") == math.inf
    assert server.has_released("t")
    server.close()


class Target(NamedTuple):
    """Where the copies of a test go, and their positions."""

    source: FakeCluster
    target: FakeCluster
    own: FakeCluster


@pytest.fixture
def clusters() -> Iterator[Target]:
    with FakeCluster() as source, FakeCluster() as target, FakeCluster() as own:
        source.create_topic("t")
        target.create_topic("a.t")
        for cluster in (target, own):
            cluster.create_topic(OFFSETS, partitions=5)
        yield Target(source, target, own)


def start_copy(folder: Path, clusters: Target, lease: Lease) -> tuple[Copy, EventLoop]:
    """A copy with a lease of 9 s, and its first record on the target."""
    lease.renew(renewal_response(lease.question(), 9.0))
    loop = EventLoop()
    loop.before_write = lease.check
    copy = Copy(folder, clusters.source, clusters.target, loop)
    copy.start({T0: 0})
    clusters.source.write(T0, [b"one"])
    copy.wait_for(1)
    return copy, loop


def test_not_a_byte_leaves_when_the_lease_is_over(
    tmp_path: Path, clusters: Target, lease: Lease, clock: Clock
) -> None:
    copy, loop = start_copy(tmp_path, clusters, lease)
    clock.now += 60
    clusters.source.write(T0, [b"two"])
    written = len(clusters.target.requests)
    loop.call_later(0.5, lease.check)  # as the task does
    with pytest.raises(LeaseError):
        copy.copy.run()
    copy.close()
    assert len(clusters.target.requests) == written
    assert copy.copied(T0) == [b"one"]
    assert not copy.stored()


def test_a_copy_that_held_still_continues_when_the_worker_leads_after_all(
    tmp_path: Path, clusters: Target, lease: Lease, clock: Clock
) -> None:
    copy, loop = start_copy(tmp_path, clusters, lease)
    # There is nothing to store before the acknowledgement has come.
    copy.run_until(lambda: copy.copy.metrics.records == 1)
    clock.now += 7
    assert lease.is_ending
    copy.copy.hold(may_store=True)
    copy.run_until(lambda: copy.stored() == {T0: 0})
    clock.now += 60
    copy.copy.hold(may_store=False)
    clusters.source.write(T0, [b"two", b"three"])
    written, turns = len(clusters.target.requests), Turns(loop, 20)
    copy.run_until(turns.are_over)
    assert len(clusters.target.requests) == written
    lease.renew(renewal_response(lease.question(), 9.0))
    copy.copy.resume()
    assert copy.wait_for(3) == [b"one", b"two", b"three"]
    copy.stop()
    copy.close()
    assert copy.copied(T0) == [b"one", b"two", b"three"]


class Turns:
    """So many turns of a loop, of a few milliseconds each."""

    def __init__(self, loop: EventLoop, count: int) -> None:
        self._loop, self._left = loop, count
        self._count()

    def _count(self) -> None:
        self._left -= 1
        if self._left:
            self._loop.call_later(0.02, self._count)

    def are_over(self) -> bool:
        return self._left == 0


def test_a_silent_worker_differs_from_one_in_doubt(lease: Lease, clock: Clock) -> None:
    for _ in range(5):
        clock.now += 50
        lease.renew(renewal_response(lease.question(), 0.0))
        assert (lease.is_over, lease.is_silent) == (True, False)
    clock.now += 61
    assert lease.is_silent


def test_positions_go_to_the_workers_own_cluster(tmp_path: Path, clusters: Target) -> None:
    copy = Copy(tmp_path, clusters.source, clusters.own)
    servers = ",".join(clusters.target.bootstrap_servers)
    copy.start({T0: 0}, {"a->b.producer.override.bootstrap.servers": servers})
    clusters.source.write(T0, [b"one", b"two"])
    copy.run_until(lambda: len(clusters.target.log("a.t").values()) == 2)
    copy.stop()
    copy.close()
    assert copy.stored() == {T0: 1}
    assert not any(clusters.target.log(OFFSETS, at).values() for at in range(5))
