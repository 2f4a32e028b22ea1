"""Brokers of other releases: each connection speaks what its broker does."""

from __future__ import annotations

import logging
import threading

import pytest

from sparkmirror.errors import UnsupportedVersionError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client import deleted_topics
from tests.wire.fake_broker import (
    API_VERSIONS,
    FETCH,
    METADATA,
    PRODUCE,
    Do,
    FakeCluster,
)
from tests.wire.rigs import LIMITS, TP, FetcherRig, ProducerRig, Rig, flat, numbered

RELEASES = [(2, 1), (2, 2), (2, 3), (2, 4), (2, 6), (2, 7), (2, 8), (3, 1), (4, 3)]
# The newest versions of Fetch and Produce that each of them shares with us.
FETCHES: dict[tuple[int, ...], int] = {
    (2, 1): 10,
    (2, 2): 10,
    (2, 3): 11,
    (2, 4): 11,
    (2, 6): 11,
    (2, 7): 12,
    (2, 8): 12,
}
UNKNOWN_TOPIC = 3
OLD_PRODUCE = [(2, 1), (2, 2), (2, 3)]


@pytest.mark.parametrize("release", RELEASES)
def test_records_are_fetched(release: tuple[int, ...]) -> None:
    with FakeCluster(release=release) as brokers, FetcherRig(brokers) as rig:
        brokers.create_topic("t")
        values = numbered(3)
        for each in values:
            brokers.write(TP, each)
        rig.fetcher.add(TP, 0)
        rig.wait_for(flat(values))
        brokers.write(TP, [b"later"])
        rig.wait_for([*flat(values), b"later"])
        assert {each.version for each in brokers.sent(FETCH)} == {FETCHES.get(release, 13)}


@pytest.mark.parametrize("release", RELEASES)
def test_records_are_produced(release: tuple[int, ...]) -> None:
    with FakeCluster(release=release) as brokers, ProducerRig(brokers) as rig:
        brokers.create_topic("t")
        values = numbered(20)
        rig.append(*values)
        rig.finish()
        assert brokers.log("t").values() == flat(values)
        expected = 7 if release in OLD_PRODUCE else 8
        assert {each.version for each in brokers.sent(PRODUCE)} == {expected}


@pytest.mark.parametrize(("old", "new"), [((2, 1), (2, 8)), ((2, 8), (3, 1)), ((3, 1), (2, 4))])
def test_a_broker_that_comes_back_with_another_release(
    old: tuple[int, ...], new: tuple[int, ...]
) -> None:
    with FakeCluster(release=old) as brokers, FetcherRig(brokers) as rig:
        brokers.create_topic("t")
        brokers.write(TP, [b"before"])
        rig.fetcher.add(TP, 0)
        rig.wait_for([b"before"])
        brokers.upgrade(1, new)
        brokers.write(TP, [b"after"])
        rig.wait_for([b"before", b"after"])
        # In any order: the last request to the old broker may be written down late.
        assert FETCHES.get(new, 13) in {each.version for each in brokers.sent(FETCH)}
        assert not rig.recreated


def test_a_cluster_in_the_middle_of_an_upgrade() -> None:
    second = TopicPartition("u", 0)
    with FakeCluster(nodes=2, release=(2, 4)) as brokers, FetcherRig(brokers) as rig:
        brokers.create_topic("t", leader=1)
        brokers.create_topic("u", leader=2)
        for tp in (TP, second):
            brokers.write(tp, [b"before"])
            rig.fetcher.add(tp, 0)
        rig.wait_for([b"before"])
        rig.wait_for([b"before"], second)
        brokers.upgrade(2, (3, 1))
        for tp in (TP, second):
            brokers.write(tp, [b"after"])
        rig.wait_for([b"before", b"after"])
        rig.wait_for([b"before", b"after"], second)
        last = {each.node: each.version for each in brokers.sent(FETCH)}
        assert last in ({1: 11, 2: 12}, {1: 11, 2: 13})


def test_a_broker_that_is_too_old_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    with FakeCluster(release=(1, 1)) as brokers, Rig(brokers) as rig:
        with caplog.at_level(logging.WARNING):
            rig.metadata.track(["t"])
            rig.run_until(
                lambda: len(brokers.sent(API_VERSIONS)) > 1, lambda: rig.cluster.last_error
            )
        assert isinstance(rig.cluster.last_error, UnsupportedVersionError)
        lines = [each.getMessage() for each in caplog.records]
        assert len(lines) == 1
        assert "this is Kafka 1.1 or behaves like it" in lines[0]
        assert "the oldest supported release is 2.1" in lines[0]
        assert "login" not in lines[0]
        assert not brokers.sent(METADATA)


def test_a_broker_that_hangs_up_at_the_first_request_is_left_alone_for_longer_and_longer() -> None:
    with (
        FakeCluster() as brokers,
        Rig(brokers, reconnect_backoff_ms=20, reconnect_backoff_max_ms=10_000) as rig,
    ):
        brokers.create_topic("t")
        brokers.intercept(METADATA, lambda _: Do(drop=True))
        rig.metadata.track(["t"])
        rig.run_for(2.0)
        # 20, 40, 80 ms and so on: a reset after each handshake would make it a hundred.
        assert 3 <= len(brokers.sent(API_VERSIONS)) <= 9
        assert "perhaps it wants a login" in str(rig.cluster.last_error)


def test_a_login_is_not_suspected_after_a_response() -> None:
    with FakeCluster() as brokers, Rig(brokers) as rig:
        brokers.create_topic("t")
        rig.metadata.track(["t"])
        rig.run_until(lambda: bool(rig.metadata.leaders), lambda: rig.cluster.last_error)
        brokers.intercept(METADATA, lambda _: Do(drop=True))
        rig.metadata.refresh()
        rig.run_until(lambda: rig.cluster.last_error is not None, lambda: brokers.requests)
        assert "login" not in str(rig.cluster.last_error)


@pytest.mark.parametrize("release", [(2, 1), (2, 7)])
def test_a_restarted_broker_that_knows_no_topics_yet_is_not_believed(
    release: tuple[int, ...],
) -> None:
    with FakeCluster(release=release) as brokers, FetcherRig(brokers) as rig:
        brokers.create_topic("t")
        brokers.write(TP, [b"before"])
        rig.fetcher.add(TP, 0)
        rig.wait_for([b"before"])
        is_new = threading.Event()
        is_new.set()
        brokers.intercept(FETCH, lambda _: Do(code=UNKNOWN_TOPIC) if is_new.is_set() else None)
        brokers.forget_topics(1)
        brokers.stop_node(1)
        brokers.start_node(1)
        asked = len(brokers.sent(METADATA))
        rig.run_until(lambda: len(brokers.sent(METADATA)) > asked + 2, lambda: rig.errors)
        assert rig.metadata.leaders
        is_new.clear()
        brokers.thaw_metadata(1)
        brokers.write(TP, [b"after"])
        rig.wait_for([b"before", b"after"])
        assert rig.recreated == []


def test_a_broker_that_stays_without_the_topic_is_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deleted_topics, "BELIEVE_SECONDS", 0.2)
    with FakeCluster(release=(2, 4)) as brokers, FetcherRig(brokers) as rig:
        brokers.create_topic("t")
        rig.fetcher.add(TP, 0)
        rig.run_until(lambda: bool(brokers.sent(FETCH)), lambda: rig.errors)
        brokers.forget_topics(1)
        brokers.stop_node(1)
        brokers.start_node(1)
        rig.run_until(lambda: not rig.metadata.leaders, lambda: rig.metadata.leaders)


@pytest.mark.parametrize("release", [(2, 1), (2, 6)])
def test_a_topic_without_an_id_that_was_deleted_is_another_one_when_it_returns(
    release: tuple[int, ...],
) -> None:
    with FakeCluster(release=release) as brokers, FetcherRig(brokers, LIMITS) as rig:
        brokers.create_topic("t")
        brokers.write(TP, [b"old"])
        rig.fetcher.add(TP, 0)
        rig.wait_for([b"old"])
        brokers.delete_topic("t")
        rig.metadata.refresh()
        rig.run_until(lambda: "t" in rig.metadata.topic_errors, lambda: rig.metadata.leaders)
        brokers.create_topic("t")
        for value in (b"new", b"newer"):
            brokers.write(TP, [value])
        rig.wait_for([b"old", b"new", b"newer"])
        assert rig.recreated == [1]
