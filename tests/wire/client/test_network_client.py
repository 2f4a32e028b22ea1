"""What we know of a cluster: bootstrap, metadata, reconnects, and what listeners hear."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sparkmirror.errors import TransportError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.leaders import Leader
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.net.event_loop import EventLoop
from sparkmirror.wire.protocol.api_versions import FETCH
from tests.wire.fake_broker import API_VERSIONS, METADATA, Do, FakeCluster, once
from tests.wire.rigs import TP, WAIT_SECONDS, Rig, client_config


class Listener:
    """Notes what it hears."""

    def __init__(self) -> None:
        self.connected: list[int] = []
        self.metadata = 0

    def on_connected(self, node: int) -> None:
        self.connected.append(node)

    def on_metadata(self) -> None:
        self.metadata += 1


@pytest.fixture
def brokers() -> Iterator[FakeCluster]:
    with FakeCluster(nodes=2) as cluster:
        cluster.create_topic("t", partitions=2)
        cluster.create_topic("u", leader=2)
        yield cluster


@pytest.fixture
def rig(brokers: FakeCluster) -> Iterator[Rig]:
    with Rig(brokers) as rig:
        yield rig


@pytest.fixture
def listener(rig: Rig) -> Listener:
    listener = Listener()
    rig.cluster.listeners.append(listener)
    return listener


def learn(rig: Rig, *topics: str) -> None:
    rig.metadata.track(topics)
    rig.run_until(
        lambda: set(topics) <= {tp.topic for tp in rig.metadata.leaders},
        lambda: rig.metadata.leaders,
    )


def ready(rig: Rig, node: int) -> None:
    rig.run_until(lambda: rig.cluster.connection(node) is not None, lambda: rig.cluster.last_error)


def test_tracked_topics_get_leaders_and_ids(rig: Rig, listener: Listener) -> None:
    learn(rig, "t", "u")
    assert rig.metadata.leaders == {
        TopicPartition("t", 0): Leader(1, 0),
        TopicPartition("t", 1): Leader(1, 0),
        TopicPartition("u", 0): Leader(2, 0),
    }
    assert {name: len(value) for name, value in rig.metadata.topic_ids.items()} == {
        "t": 16,
        "u": 16,
    }
    assert listener.metadata >= 1


def test_nothing_is_asked_while_no_topic_is_tracked(rig: Rig) -> None:
    rig.run_for(0.1)
    assert rig.brokers.requests == []


def test_topics_that_are_no_longer_tracked_are_forgotten(rig: Rig) -> None:
    learn(rig, "t", "u")
    rig.metadata.untrack(["t"])
    assert set(rig.metadata.leaders) == {TopicPartition("u", 0)}
    before = len(rig.brokers.sent(METADATA))
    rig.metadata.refresh()
    rig.run_until(lambda: len(rig.brokers.sent(METADATA)) > before, lambda: "metadata")
    asked = rig.brokers.sent(METADATA)[-1].body
    assert [topic.name for topic in asked.topics] == ["u"]


def test_a_topic_that_is_not_there_is_asked_for_until_it_is(rig: Rig) -> None:
    rig.metadata.track(["later"])
    rig.run_until(
        lambda: "later" in rig.metadata.topic_errors,
        lambda: rig.metadata.topic_errors,
    )
    assert rig.metadata.topic_errors == {"later": 3}
    rig.brokers.create_topic("later")
    learn(rig, "later")
    assert rig.metadata.topic_errors == {}


def asked_topics(rig: Rig) -> list[list[str]]:
    return [[row.name for row in each.body.topics] for each in rig.brokers.sent(METADATA)]


def test_only_what_is_missing_is_asked_for_again(rig: Rig) -> None:
    """With thousands of topics the others would cost a tenth of a core as long as it lasts."""
    learn(rig, "t", "u")
    rig.metadata.track(["later"])
    before = len(asked_topics(rig))
    rig.run_until(lambda: len(asked_topics(rig)) >= before + 3, lambda: asked_topics(rig))
    assert asked_topics(rig)[before:] == [["later"]] * (len(asked_topics(rig)) - before)
    rig.brokers.create_topic("later")
    learn(rig, "later")
    assert len(rig.metadata.leaders) == 4
    assert rig.metadata.topic_errors == {}


def test_all_topics_are_asked_for_when_somebody_says_that_leaders_have_moved(rig: Rig) -> None:
    learn(rig, "t", "u")
    rig.metadata.track(["later"])
    rig.run_until(
        lambda: "later" in rig.metadata.topic_errors,
        lambda: rig.metadata.topic_errors,
    )
    rig.brokers.move_leader(TP, 2)
    rig.metadata.refresh()
    moved = Leader(2, 1)
    rig.run_until(lambda: rig.metadata.leaders[TP] == moved, lambda: rig.metadata.leaders)
    assert ["later", "t", "u"] in asked_topics(rig)
    assert rig.metadata.topic_errors == {"later": 3}


def test_thousands_who_miss_a_topic_make_one_request(rig: Rig) -> None:
    learn(rig, "t", "u")
    before = len(asked_topics(rig))
    for _ in range(1000):
        rig.metadata.mark_missed("u")
    rig.run_until(lambda: len(asked_topics(rig)) > before, lambda: asked_topics(rig))
    rig.run_for(0.3)
    assert asked_topics(rig)[before:] == [["u"]]


def test_versions_are_asked_for_first(rig: Rig, listener: Listener) -> None:
    learn(rig, "t")
    ready(rig, 1)
    assert rig.brokers.requests[0].api == API_VERSIONS
    connection = rig.cluster.connection(1)
    assert connection is not None
    assert connection.choose(FETCH) == (1, 13)
    assert rig.cluster.newest(FETCH) == 13
    assert 1 in listener.connected


def test_one_address_of_several_is_enough(brokers: FakeCluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        dead = f"127.0.0.1:{unused.getsockname()[1]}"
    servers = (dead, *brokers.bootstrap_servers)
    config = replace(client_config(brokers), bootstrap_servers=servers)
    loop = EventLoop()
    cluster = NetworkClient(loop, config, BufferPool(0))
    cluster.metadata.track(["t"])
    assert loop.run_until(lambda: TP in cluster.metadata.leaders, WAIT_SECONDS)
    cluster.close()
    loop.close()


def test_an_unreachable_cluster_is_told_with_its_name_and_address(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.brokers.stop_node(1)
    rig.brokers.stop_node(2)
    rig.metadata.track(["t"])
    rig.run_until(lambda: rig.cluster.last_error is not None, lambda: "no error")
    error = rig.cluster.last_error
    assert isinstance(error, TransportError)
    assert str(error).startswith("cluster 'fake', broker 127.0.0.1:")
    rig.run_for(0.2)
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == len(set(warnings)) <= 2  # once for each address, not for each attempt
    for node in (1, 2):
        rig.brokers.start_node(node)
    learn(rig, "t")


def test_a_broken_connection_is_opened_again_when_it_is_wanted(
    rig: Rig, listener: Listener
) -> None:
    learn(rig, "t")
    ready(rig, 1)
    rig.brokers.stop_node(1)
    rig.run_until(lambda: rig.cluster.connection(1) is None, lambda: "still connected")
    rig.brokers.start_node(1)
    ready(rig, 1)
    assert listener.connected.count(1) == 2


def test_metadata_answers_without_brokers_are_not_believed(rig: Rig) -> None:
    empty = bytes.fromhex("00000000 01 00 ffffffff 01 00")
    rig.brokers.intercept(METADATA, once(Do(garbage=b"\0" + empty)))
    learn(rig, "t")
    assert len(rig.brokers.sent(METADATA)) >= 2


def test_a_connection_that_is_dropped_during_metadata(rig: Rig) -> None:
    rig.brokers.intercept(METADATA, once(Do(drop=True)))
    learn(rig, "t")


def test_a_handshake_that_cannot_be_read(rig: Rig) -> None:
    rig.brokers.intercept(API_VERSIONS, once(Do(garbage=b"\0")))
    learn(rig, "t")


def test_asking_often_does_not_send_often(rig: Rig) -> None:
    learn(rig, "t")
    before = len(rig.brokers.sent(METADATA))
    for _ in range(100):
        rig.metadata.refresh()
    rig.run_until(lambda: len(rig.brokers.sent(METADATA)) > before, lambda: rig.brokers.requests)
    rig.run_for(0.1)
    assert 1 <= len(rig.brokers.sent(METADATA)) - before <= 30


def test_nothing_happens_after_close(rig: Rig) -> None:
    learn(rig, "t")
    ready(rig, 1)
    rig.cluster.close()
    seen = len(rig.brokers.requests)
    rig.metadata.refresh()
    assert rig.cluster.connection(1) is None
    rig.run_for(0.1)
    assert len(rig.brokers.requests) == seen


def test_an_advertised_address_that_was_never_reached_is_told_as_such(brokers: FakeCluster) -> None:
    brokers.advertise(2, "kafka2.invalid", 9092)
    with Rig(brokers) as rig:
        rig.metadata.track(["u"])
        rig.run_until(lambda: rig.metadata.leaders != {}, lambda: rig.cluster.last_error)
        rig.cluster.connection(2)
        text = str(rig.cluster.last_error)
    assert text.startswith(
        "cluster 'fake', broker kafka2.invalid:9092: connect to kafka2.invalid:9092: the name does "
        "not resolve ("
    )
    assert text.endswith("correct the address that it tells (advertised.listeners)")
