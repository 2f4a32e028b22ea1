"""The errors of clusters that cannot be reached, or only in part."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.embedded.ports import ReservedPort
from sparkmirror.errors import TransportError
from sparkmirror.wire.client.reachability import AdvertisedError, check_reachable
from tests.wire.fake_broker import FakeCluster
from tests.wire.rigs import client_config

NOWHERE = "kafka1.invalid"


@pytest.fixture
def closed_port() -> Iterator[int]:
    port = ReservedPort(None)
    yield port.number
    port.close()


def test_no_advertised_address_can_be_reached(closed_port: int) -> None:
    with FakeCluster(nodes=2) as brokers:
        config = client_config(brokers, servers_key="a.bootstrap.servers")
        brokers.advertise(1, NOWHERE, 9092)
        brokers.advertise(2, "127.0.0.1", closed_port)
        with pytest.raises(AdvertisedError) as caught:
            check_reachable(config)
    text = str(caught.value)
    assert text.startswith(
        f"cluster 'fake': {config.bootstrap_servers[0]} responds, but the advertised addresses "
        f"{NOWHERE}:9092 of broker 1 (the name does not resolve ("
    )
    assert text.endswith(
        f")), 127.0.0.1:{closed_port} of broker 2 (Connection refused) cannot be reached from "
        "here; set advertised.listeners of the brokers to addresses that this machine can reach "
        "and resolve"
    )


def test_one_advertised_address_of_two_suffices_to_start(closed_port: int) -> None:
    with FakeCluster(nodes=2) as brokers:
        brokers.advertise(2, "127.0.0.1", closed_port)
        check_reachable(client_config(brokers))


def test_bootstrap_servers_that_cannot_be_reached(closed_port: int) -> None:
    servers = (f"{NOWHERE}:9092", f"127.0.0.1:{closed_port}")
    config = ClientConfig("fake", servers, servers_key="source.cluster.bootstrap.servers")
    with pytest.raises(TransportError) as caught:
        check_reachable(config)
    text = str(caught.value)
    assert text.startswith(
        f"cluster 'fake' cannot be reached ({NOWHERE}:9092: the name does not resolve ("
    )
    assert text.endswith(
        f"127.0.0.1:{closed_port}: Connection refused); check source.cluster.bootstrap.servers and "
        "that its brokers are up"
    )


@pytest.mark.parametrize(("timeout_ms", "seconds"), [(10_000, 5.0), (30_000, 30.0), (700, 0.7)])
def test_the_trial_has_the_time_that_the_user_gives_connections(
    monkeypatch: pytest.MonkeyPatch, timeout_ms: int, seconds: float
) -> None:
    asked: list[float] = []

    def connect(_: object, timeout: float) -> None:
        asked.append(timeout)
        raise TimeoutError

    monkeypatch.setattr("socket.create_connection", connect)
    config = ClientConfig("a", ("h:1",), socket_connection_setup_timeout_ms=timeout_ms)
    with pytest.raises(TransportError):
        check_reachable(config)
    assert asked == [seconds]
