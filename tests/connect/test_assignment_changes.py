"""Assignments survive topics that vanish, come back under another id, and positions that fail."""

from __future__ import annotations

import pytest

from sparkmirror.connect.storage.offset_backing_store import StoredPosition
from sparkmirror.errors import TransportError
from sparkmirror.mirror.positions.provenance import Provenance
from sparkmirror.types import TopicPartition
from tests.connect.fakes import Connector
from tests.connect.source.test_mirror_source_connector import T0, assigned

NEW_ID = bytes(range(16))


def test_a_topic_created_anew_is_copied_anew_only_once(connector: Connector) -> None:
    connector.source.add("t")
    connector.store.positions = {T0: 41}
    connector.refresh()
    connector.source.add("t", topic_id=b"another")
    connector.refresh()
    assert connector.orders(0)["assigned"] == [["t", "a.t", 0, None]]
    connector.store.positions = {T0: 7}  # of the new topic, stored by the task
    assert connector.orders(0)["assigned"] == [["t", "a.t", 0, 8]]


def test_a_position_that_names_its_topic_is_left_to_the_task(connector: Connector) -> None:
    """The task may notice a new topic first: what it stored since must not look like the old."""
    connector.source.add("t")
    connector.store.positions = {T0: 41}
    connector.refresh()
    connector.source.add("t", topic_id=NEW_ID)
    connector.store.positions = {T0: StoredPosition(8, Provenance(NEW_ID, ((2, 0),), 50))}
    connector.refresh()
    ((*_, next_offset, topic_id, epochs, target_offset),) = connector.orders(0)["assigned"]
    assert next_offset == 8
    assert (topic_id, epochs, target_offset) == (NEW_ID.hex(), ((2, 0),), 50)


def test_positions_that_cannot_be_read_delay_an_assignment_and_do_not_lose_it(
    connector: Connector,
) -> None:
    connector.source.add("t", 2)
    connector.refresh()
    connector.source.add("tt")
    # For the report of where partitions begin, and for their orders.
    connector.store.failures += [TransportError("time-out"), TransportError("time-out")]
    with pytest.raises(TransportError):
        connector.refresh()
    connector.refresh()
    assert [m for task in connector.fake_tasks for m in task.sent] == [
        {"type": "assign", "assigned": [["tt", "a.tt", 0, None]]}
    ]


def test_the_last_task_is_told_that_all_its_partitions_are_gone(connector: Connector) -> None:
    connector.source.add("t")
    connector.source.add("tt")
    connector.refresh()
    del connector.source.topics["tt"]
    connector.refresh()
    sent = [task.sent for task in connector.fake_tasks]
    assert sent == [[], [{"type": "revoke", "partitions": [["tt", 0]]}]]


def test_a_task_that_had_nothing_left_gets_partitions_again(connector: Connector) -> None:
    connector.source.add("t")
    connector.source.add("tt")
    connector.refresh()
    del connector.source.topics["tt"]
    connector.refresh()
    connector.source.add("ttt")
    connector.refresh()
    assert assigned(connector) == [[T0], [TopicPartition("ttt", 0)]]


def test_a_task_that_has_nothing_left_may_be_started_again(connector: Connector) -> None:
    connector.source.add("t")
    connector.source.add("tt")
    connector.refresh()
    del connector.source.topics["tt"]
    connector.refresh()
    assert connector.orders(1)["assigned"] == []
