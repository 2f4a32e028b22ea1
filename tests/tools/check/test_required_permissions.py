"""Permissions on the offsets topic that a connector really uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.mirror.permissions import ResourceKind
from sparkmirror.tools.check.required_permissions import (
    wanted_by_checkpoint,
    wanted_by_heartbeat,
    wanted_by_source,
)
from tests.flows import make_flow


@pytest.mark.parametrize(
    ("settings", "topic"),
    [({}, "mm2-offsets.a.internal"), ({"a->b.offsets.storage.topic": "mine"}, "mine")],
    ids=["worker", "own"],
)
def test_permissions_are_wanted_for_the_topic_that_holds_the_positions(
    tmp_path: Path, settings: dict[str, str], topic: str
) -> None:
    flow = make_flow(tmp_path, settings)
    wanted = [
        *wanted_by_source(flow.source, flow.worker, ["t"]),
        *wanted_by_checkpoint(flow.checkpoint, flow.worker, ["g"], ["t"]),
        *wanted_by_heartbeat(flow.heartbeat, flow.worker),
    ]
    assert {row.names for row in wanted if row.need.place is ResourceKind.OFFSETS} == {(topic,)}
