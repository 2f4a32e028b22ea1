"""Two brokers with two topics, a client of theirs, and a listener that notes what it hears."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.wire.client.listening import Listener
from tests.wire.fake_broker import FakeCluster
from tests.wire.rigs import Rig


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
