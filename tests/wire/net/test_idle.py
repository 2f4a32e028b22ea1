"""Unused connections are closed after connections.max.idle.ms, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import KafkaError
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.net.idle import IdleConnections
from tests.wire.fake_broker import FakeCluster
from tests.wire.rigs import Rig


class FakeConnection:
    """Requests and responses that the test counts."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.responses = 1
        self.errors: list[KafkaError] = []

    def fail(self, error: KafkaError) -> None:
        self.errors.append(error)


class Looks:
    """Looks at one connection at times that the test chooses."""

    def __init__(self, idle_ms: int) -> None:
        config = ClientConfig("a", ("h:1",), connections_max_idle_ms=idle_ms)
        self.connection = FakeConnection()
        self._idle = IdleConnections(config)

    def at(self, now: float) -> bool:
        """Whether it is closed by then."""
        self._idle.close(now, [cast("Connection", self.connection), None])
        return bool(self.connection.errors)


def test_a_connection_is_closed_after_its_idle_time() -> None:
    looks = Looks(10_000)
    assert [looks.at(now) for now in (0.0, 5.0, 10.0)] == [False] * 3
    assert looks.at(10.5)
    assert "unused for 10 s (connections.max.idle.ms)" in str(looks.connection.errors[0])


def test_a_response_starts_the_idle_time_again() -> None:
    looks = Looks(10_000)
    looks.at(0.0)
    looks.connection.responses += 1
    assert [looks.at(now) for now in (9.0, 11.0, 19.0)] == [False] * 3
    assert looks.at(19.5)


def test_a_connection_that_waits_for_a_response_is_in_use() -> None:
    looks = Looks(10_000)
    looks.at(0.0)
    looks.connection.in_flight = 1
    assert not looks.at(50.0)
    looks.connection.in_flight = 0
    assert not looks.at(51.0)


def test_a_negative_time_keeps_connections_open() -> None:
    looks = Looks(-1)
    assert not any(looks.at(now) for now in (0.0, 1e6, 2e6))


@pytest.fixture
def brokers() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        cluster.create_topic("t")
        yield cluster


def test_a_cluster_opens_a_connection_again_when_it_needs_one(brokers: FakeCluster) -> None:
    with Rig(brokers, connections_max_idle_ms=1) as rig:
        opened = []

        def is_open() -> bool:
            connection = rig.cluster.connection(-1)
            if connection is not None and connection not in opened:
                opened.append(connection)
            return len(opened) > 1

        rig.run_until(is_open, lambda: opened)
        assert opened[0].closed
        assert rig.cluster.last_error is None
        assert not rig.cluster.is_failing(-1)
