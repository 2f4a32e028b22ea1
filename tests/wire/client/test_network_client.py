"""Connections to the brokers of a cluster: bootstrap, reconnects, and what listeners hear."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from sparkmirror.errors import TransportError
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.net.event_loop import EventLoop
from sparkmirror.wire.protocol.api_versions import FETCH
from tests.wire.client.listening import Listener, learn
from tests.wire.fake_broker import API_VERSIONS, Do, FakeCluster, once
from tests.wire.rigs import TP, WAIT_SECONDS, Rig, client_config


def ready(rig: Rig, node: int) -> None:
    rig.run_until(lambda: rig.cluster.connection(node) is not None, lambda: rig.cluster.last_error)


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


def test_an_unreachable_cluster_is_reported_with_its_name_and_address(
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


def test_bytes_and_connections_are_counted_also_of_those_that_are_gone(rig: Rig) -> None:
    learn(rig, "t")
    ready(rig, 1)
    before = rig.cluster.traffic
    assert before.connections >= 1
    assert min(before.received_bytes, before.sent_bytes) > 50
    rig.brokers.stop_node(1)
    rig.run_until(lambda: rig.cluster.connection(1) is None, lambda: "still connected")
    assert rig.cluster.traffic.received_bytes >= before.received_bytes
    rig.brokers.start_node(1)
    ready(rig, 1)
    after = rig.cluster.traffic
    assert after.received_bytes > before.received_bytes
    assert after.sent_bytes > before.sent_bytes


def test_a_handshake_that_cannot_be_read(rig: Rig) -> None:
    rig.brokers.intercept(API_VERSIONS, once(Do(garbage=b"\0")))
    learn(rig, "t")


def test_nothing_happens_after_close(rig: Rig) -> None:
    learn(rig, "t")
    ready(rig, 1)
    rig.cluster.close()
    seen = len(rig.brokers.requests)
    rig.metadata.refresh()
    assert rig.cluster.connection(1) is None
    rig.run_for(0.1)
    assert len(rig.brokers.requests) == seen


def test_an_advertised_address_that_was_never_reached_is_marked(
    brokers: FakeCluster,
) -> None:
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
    assert text.endswith("correct its advertised.listeners")
