"""A copy between two fake clusters, and both ends of a control link."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.spark.link.server import LinkServer
from tests.spark.copies import OFFSETS, Copy
from tests.spark.link_ends import Peer, Task
from tests.wire.fake_broker import FakeCluster


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Copy]:
    with FakeCluster() as source, FakeCluster() as target:
        source.create_topic("t", partitions=2)
        target.create_topic("a.t", partitions=2)
        target.create_topic(OFFSETS, partitions=5)
        copy = Copy(tmp_path, source, target)
        yield copy
        copy.close()


@pytest.fixture
def server() -> Iterator[LinkServer]:
    server = LinkServer("127.0.0.1")
    yield server
    server.close()


@pytest.fixture
def peer(server: LinkServer) -> Peer:
    peer = Peer()
    server.expect("t", peer)
    return peer


@pytest.fixture
def task(server: LinkServer, peer: Peer) -> Iterator[Task]:
    task = Task(server)
    yield task
    task.close()
