"""A checkpoint connector on the leader: its topic, and which task follows which groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from sparkmirror.connect.checkpoint import mirror_checkpoint_connector
from sparkmirror.connect.checkpoint.mirror_checkpoint_connector import MirrorCheckpointConnector
from sparkmirror.retry import wait_for
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.group_admin import GroupAdmin
from sparkmirror.wire.protocol.error_codes import broker_error
from tests.connect.group_fakes import FakeGroups
from tests.flows import make_flow

T0 = TopicPartition("t", 0)
TOPIC = "a.checkpoints.internal"
SECONDS = 20.0


class Leader:
    """A connector over fakes, and its context."""

    def __init__(self, folder: Path) -> None:
        self.source, self.target = FakeGroups(), FakeGroups()
        self.requests = 0
        flow = make_flow(folder, {"a->b.topics": "t", "a->b.tasks.max": "2"})
        self.connector = MirrorCheckpointConnector(flow.spec(flow.checkpoint))
        admins = (self.source, self.target)
        self.connector._admins = [cast("GroupAdmin", admin) for admin in admins]

    def request_task_reconfiguration(self) -> None:
        self.requests += 1

    def stored_tasks(self) -> tuple[dict[str, str], ...]:
        return ()

    def start(self) -> None:
        self.connector.start(self)
        wait_for(lambda: self.requests, within=SECONDS, describe="a look at the groups")


@pytest.fixture
def leader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Leader]:
    monkeypatch.setattr(mirror_checkpoint_connector, "PREPARE_SECONDS", 0.05)
    leader = Leader(tmp_path)
    yield leader
    leader.connector.stop()
    assert leader.connector.join(SECONDS)
    assert leader.source.closed
    assert leader.target.closed


def test_a_flow_without_groups_has_its_topic_and_no_tasks(leader: Leader) -> None:
    assert leader.connector.task_configs() is None
    leader.start()
    assert leader.connector.task_configs() == []
    wait_for(lambda: leader.target.created, within=SECONDS)
    assert [topic.name for topic in leader.target.created] == [TOPIC]


def test_a_topic_that_is_refused_is_created_later(leader: Leader) -> None:
    leader.target.refuses[TOPIC] = broker_error(f"create topic '{TOPIC}' on 'b'", 29)
    leader.start()
    wait_for(lambda: TOPIC in leader.connector.last_error, within=SECONDS)
    assert leader.connector.task_configs() == []
    del leader.target.refuses[TOPIC]
    wait_for(lambda: leader.target.created, within=SECONDS)
    wait_for(lambda: not leader.connector.last_error, within=SECONDS)


def test_a_new_group_goes_to_a_task_when_a_user_asks_for_a_look(leader: Leader) -> None:
    leader.source.set("g1", {T0: 1})
    leader.start()
    assert leader.connector.task_configs() == [{"task.index": "0", "task.assigned.groups": "g1"}]
    before = leader.requests
    leader.source.set("g0", {T0: 1})
    assert leader.connector.refresh() == ""
    assert leader.requests > before
    assert leader.connector.task_configs() == [
        {"task.index": "0", "task.assigned.groups": "g0"},
        {"task.index": "1", "task.assigned.groups": "g1"},
    ]
