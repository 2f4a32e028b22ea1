"""The topics that MirrorMaker 2 has in dedicated mode are created, and nothing depends on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.mm2 import load_mm2
from sparkmirror.connect.runtime import dedicated_topics
from sparkmirror.connect.runtime.dedicated_topics import NOT_NEEDED, DedicatedTopics
from sparkmirror.connect.runtime.mirror_maker import MirrorMaker
from sparkmirror.errors import TransportError
from sparkmirror.mirror.permissions import Operation, topic_permission
from sparkmirror.wire.access import response_error
from sparkmirror.wire.protocol.error_codes import TOPIC_AUTHORIZATION_FAILED
from tests.connect.fakes import FakeAdmin

FILE = """clusters=source,target
source.bootstrap.servers=s:1
target.bootstrap.servers=t:1
source->target.enabled=true
target.config.storage.replication.factor=2
target.status.storage.replication.factor=1
target.status.storage.partitions=7
"""


@pytest.fixture
def admins(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeAdmin]:
    """By the cluster's alias."""
    admins = {"source": FakeAdmin(), "target": FakeAdmin()}

    def open_admin(client: ClientConfig, _: int) -> FakeAdmin:
        return admins[client.alias]

    monkeypatch.setattr(dedicated_topics, "Admin", open_admin)
    return admins


@pytest.fixture
def topics(tmp_path: Path) -> DedicatedTopics:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    config = load_mm2(path)
    found = MirrorMaker(config).worker_connectors
    # One for each target: who stands by there creates nothing.
    assert sum(isinstance(each, DedicatedTopics) for each in found) == 2
    workers = [flow.worker for flow in config.flows]
    return DedicatedTopics(workers + [pair.worker for pair in config.heartbeat_pairs])


def test_both_are_created_on_the_cluster_of_each_worker(
    topics: DedicatedTopics, admins: dict[str, FakeAdmin]
) -> None:
    topics.create()
    topics.create()
    compact = {"cleanup.policy": "compact"}
    made = {
        alias: [(new.name, new.partitions, new.replication_factor) for new in admin.created]
        for alias, admin in admins.items()
    }
    assert made == {
        "target": [("mm2-configs.source.internal", 1, 2), ("mm2-status.source.internal", 7, 1)],
        # The pair that only has heartbeats has a worker in MirrorMaker 2, too.
        "source": [("mm2-configs.target.internal", 1, 3), ("mm2-status.target.internal", 5, 3)],
    }
    assert all(new.configs == compact for admin in admins.values() for new in admin.created)
    assert all(admin.closed for admin in admins.values())


def test_what_cannot_be_created_is_told_once_and_hinders_nothing(
    topics: DedicatedTopics, admins: dict[str, FakeAdmin], caplog: pytest.LogCaptureFixture
) -> None:
    name = "mm2-configs.target.internal"
    client = ClientConfig("source", ("s:1",))
    needed = topic_permission(Operation.CREATE, name)
    denied = response_error(client, f"create '{name}'", TOPIC_AUTHORIZATION_FAILED, needed)
    admins["source"].refuses[name] = denied
    for _ in range(2):
        topics.create()
    (warning,) = caplog.messages
    assert "lacks CREATE on topic 'mm2-configs.target.internal'" in warning
    assert warning.endswith(NOT_NEEDED)
    assert [new.name for new in admins["source"].created] == ["mm2-status.target.internal"]
    assert topics.last_error == ""


def test_a_cluster_that_cannot_be_reached_does_not_keep_the_others_waiting(
    topics: DedicatedTopics,
    admins: dict[str, FakeAdmin],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def open_admin(client: ClientConfig, _: int) -> FakeAdmin:
        if client.alias == "target":
            raise TransportError("cluster 'target' cannot be reached")
        return admins[client.alias]

    monkeypatch.setattr(dedicated_topics, "Admin", open_admin)
    topics.create()
    assert len(admins["source"].created) == 2
    assert "cluster 'target' cannot be reached" in caplog.text
