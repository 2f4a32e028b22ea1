"""Configs of topics follow the source, but for those that are excluded."""

from __future__ import annotations

import pytest

from tests.clusters import unique_name
from tests.mm2_suite.flows import Flow
from tests.mm2_suite.topics import (
    alter_configs,
    configs,
    create_topics,
    own_configs,
    wait_for_topics,
)
from tests.mm2_suite.worlds import World

pytestmark = pytest.mark.kafka

EXCLUDED = "delete.retention.ms"
SYNCED = "retention.bytes"
UNLIMITED = "-1"


def test_sync_topic_configs(world: World) -> None:
    flow = world.forth
    remote = flow.remote(_make_topic(flow, {EXCLUDED: "1000", SYNCED: "1000"}))
    _override(flow, remote)
    _wait_for_config(flow, remote, "1000")
    assert configs(flow.target, remote)[EXCLUDED] == "2000"


def test_replicate_source_default(world: World) -> None:
    flow = world.often
    remote = flow.remote(_make_topic(flow, {}))
    _override(flow, remote)
    _wait_for_config(flow, remote, UNLIMITED)
    assert configs(flow.target, remote)[EXCLUDED] == "2000"
    # Not only no longer overridden, which would let the target's own default hold.
    assert own_configs(flow.target, remote)[SYNCED] == UNLIMITED


def test_replicate_target_default(world: World) -> None:
    flow = world.forth
    topic = _make_topic(flow, {SYNCED: "1000"})
    remote = flow.remote(topic)
    _wait_for_config(flow, remote, "1000")
    alter_configs(flow.source, topic, {SYNCED: None})
    _wait_for_config(flow, remote, UNLIMITED)
    assert SYNCED not in own_configs(flow.target, remote)


def _make_topic(flow: Flow, config: dict[str, str]) -> str:
    """A topic on the source, once its copy is there."""
    topic = unique_name(flow.prefix)
    create_topics(flow.source, [topic], partitions=1, config=config)
    wait_for_topics(flow, [topic], partitions=1)
    return topic


def _override(flow: Flow, remote: str) -> None:
    """Set both on the target; the one that nobody sets back shows when that has happened."""
    alter_configs(flow.target, remote, {EXCLUDED: "2000", SYNCED: "2000"})
    flow.wait_for(
        lambda: configs(flow.target, remote)[EXCLUDED] == "2000",
        lambda: f"{EXCLUDED} of {remote} set on the target",
    )


def _wait_for_config(flow: Flow, remote: str, value: str) -> None:
    def found() -> str:
        return configs(flow.target, remote)[SYNCED]

    flow.wait_for(lambda: found() == value, lambda: f"{SYNCED}={value} on {remote}: {found()}")
