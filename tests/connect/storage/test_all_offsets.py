"""Offsets of a connector with a topic of its own, as the REST API lists and changes them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sparkmirror.config.connector_spec import AnySpec, parse_connector
from sparkmirror.config.worker.worker_file import WorkerFile
from sparkmirror.connect.entities import Json
from sparkmirror.connect.storage import all_offsets, storage_topics
from sparkmirror.connect.storage.all_offsets import AllOffsets
from sparkmirror.connect.storage.stored_offsets import ConnectorOffsets
from tests.config.worker_files import worker_with
from tests.connect.fakes import FakeAdmin
from tests.wire.fake_broker import FakeCluster

SHARED, OWN = "connect-offsets", "mine"
P0, P1, P2 = ({"cluster": "a", "partition": at, "topic": "t"} for at in range(3))
CONNECTOR = {
    "name": "c",
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "a",
    "source.cluster.bootstrap.servers": "h:1",
}


class World:
    """A cluster with the worker's offsets topic, and connectors `c` (own topic) and `other`."""

    def __init__(self, cluster: FakeCluster) -> None:
        servers = ",".join(cluster.bootstrap_servers)
        props = {"bootstrap.servers": servers, "offset.storage.partitions": "3"}
        self.file: WorkerFile = worker_with(props)
        self.admin = FakeAdmin()
        self.admin.add(SHARED, 2)
        self.shared = ConnectorOffsets(self.file.worker.client, SHARED, 2)
        self.own = ConnectorOffsets(self.file.worker.client, OWN, 3)
        self.offsets = AllOffsets(self.file.worker, self._parse)

    def _parse(self, name: str) -> AnySpec | None:
        if name == "gone":
            return None
        servers = ",".join(self.file.worker.bootstrap_servers)
        props: dict[str, str | None] = {
            **CONNECTOR,
            "target.cluster.bootstrap.servers": servers,
            **({"offsets.storage.topic": OWN} if name == "c" else {}),
        }
        return parse_connector(props, self.file)

    def listed(self, name: str = "c") -> dict[int, int]:
        return {row["partition"]: offset["offset"] for row, offset in self.offsets.list(name)}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with FakeCluster() as cluster:
        cluster.create_topic(SHARED, partitions=2)
        cluster.create_topic(OWN, partitions=3)
        world = World(cluster)
        for module in (all_offsets, storage_topics):
            monkeypatch.setattr(module, "Admin", lambda *_: world.admin)
        yield world


def at(offset: int) -> Json:
    return {"offset": offset}


def test_a_connector_without_a_topic_of_its_own_has_the_workers(world: World) -> None:
    world.offsets.write("other", [(P0, at(5))])
    assert world.listed("other") == {0: 5}
    assert world.listed("gone") == {}
    assert world.own.list("other") == []


def test_the_own_topic_counts_before_the_workers(world: World) -> None:
    world.admin.add(OWN, 3)
    world.shared.write("c", [(P0, at(1)), (P1, at(1))])
    world.own.write("c", [(P1, at(7)), (P2, at(9))])
    assert world.listed() == {0: 1, 1: 7, 2: 9}
    world.own.write("c", [(P0, None)])
    assert world.listed() == {1: 7, 2: 9}


def test_what_is_written_goes_to_the_own_topic(world: World) -> None:
    world.admin.add(OWN, 3)
    world.shared.write("c", [(P0, at(1))])
    world.offsets.write("c", [(P0, at(4))])
    assert world.listed() == {0: 4}
    assert world.shared.list("c") == [(P0, at(1))]


def test_what_is_deleted_does_not_come_back_from_the_workers_topic(world: World) -> None:
    world.admin.add(OWN, 3)
    world.shared.write("c", [(P0, at(1)), (P1, at(1))])
    world.own.write("c", [(P0, at(4))])
    world.offsets.write("c", [(partition, None) for partition, _ in world.offsets.list("c")])
    assert world.listed() == {}
    assert world.shared.list("c") == world.own.list("c") == []


def test_a_topic_that_is_missing_is_created_for_writing_only(world: World) -> None:
    world.shared.write("c", [(P0, at(1))])
    assert world.listed() == {0: 1}
    assert world.admin.created == []
    world.offsets.write("c", [(P1, at(2))])
    assert [topic.name for topic in world.admin.created] == [OWN]
