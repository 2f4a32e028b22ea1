"""Which connection to a broker the next request takes, while some are still being opened."""

from __future__ import annotations

from typing import cast

import pytest

from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.fetch.ahead_broker import (
    BYTES_PER_CONNECTION,
    FEWEST_CONNECTIONS,
    MOST_CONNECTIONS,
    AheadBroker,
)
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.net.line_estimate import LineEstimate

NODE = 1
ASK = BYTES_PER_CONNECTION
SMALL_WINDOW = FEWEST_CONNECTIONS * BYTES_PER_CONNECTION
LARGE_WINDOW = MOST_CONNECTIONS * 4 * ASK


class Connections:
    """A cluster of which only the connections to one broker matter."""

    def __init__(self) -> None:
        self.ready: set[int] = set()
        self.refused: set[int] = set()
        self.wanted: set[int] = set()

    def connection(self, node: int, connection_index: int = 0) -> Connection | None:
        assert node == NODE
        self.wanted.add(connection_index)
        return (
            cast("Connection", f"connection {connection_index}")
            if connection_index in self.ready
            else None
        )

    def is_opening(self, node: int, connection_index: int) -> bool:
        return connection_index in self.wanted - self.ready - self.refused


@pytest.fixture
def connections() -> Connections:
    return Connections()


def ask_all(broker: AheadBroker, connections: Connections, window: int) -> list[int]:
    """Ask for as much as the window and the connections allow; which connection each took."""
    taken: list[int] = []
    while sum(broker.asked) + ASK <= window:
        chosen = broker.choose_connection(cast("NetworkClient", connections), window)
        if chosen is None:
            break
        taken.append(chosen[0])
        broker.asked[chosen[0]] += ASK
    return taken


def test_the_session_s_connection_takes_one_share_until_others_are_ready(
    connections: Connections,
) -> None:
    broker = AheadBroker(NODE, LineEstimate())
    connections.ready = {0}
    assert ask_all(broker, connections, LARGE_WINDOW) == [0] * 4
    assert connections.wanted == set(range(MOST_CONNECTIONS + 1))


def test_the_first_connection_that_is_ready_leaves_the_others_theirs(
    connections: Connections,
) -> None:
    broker = AheadBroker(NODE, LineEstimate())
    connections.ready = {0, 3}
    assert ask_all(broker, connections, LARGE_WINDOW) == [3] * 4
    connections.ready = set(range(MOST_CONNECTIONS + 1))
    ask_all(broker, connections, LARGE_WINDOW)
    assert broker.asked == [0] + [4 * ASK] * MOST_CONNECTIONS


@pytest.mark.parametrize("ready", [{0}, {0, 1, 2}])
def test_what_cannot_be_opened_is_not_waited_for(connections: Connections, ready: set[int]) -> None:
    broker = AheadBroker(NODE, LineEstimate())
    connections.ready = ready
    connections.refused = set(range(MOST_CONNECTIONS + 1)) - ready
    assert len(ask_all(broker, connections, LARGE_WINDOW)) == LARGE_WINDOW // ASK


def test_a_small_window_opens_few_connections(connections: Connections) -> None:
    broker = AheadBroker(NODE, LineEstimate())
    connections.ready = set(range(MOST_CONNECTIONS + 1))
    ask_all(broker, connections, SMALL_WINDOW)
    assert broker.asked == [0] + [ASK] * FEWEST_CONNECTIONS + [0] * (
        MOST_CONNECTIONS - FEWEST_CONNECTIONS
    )
