"""Records, heartbeats and checkpoints arrive, both ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sparkmirror.demo.reading import partition_counts
from sparkmirror.types import TopicPartition
from tests.group_offsets import committed_offsets
from tests.mirror_client.answers import ask_mirror_client
from tests.mm2_suite.flows import Flow, unique_group
from tests.mm2_suite.groups import (
    assert_monotonic_checkpoints,
    consume_all,
    wait_for_checkpoints,
)
from tests.mm2_suite.heartbeats import wait_for_heartbeat
from tests.mm2_suite.topics import (
    PARTITIONS,
    RECORDS,
    configs,
    ends,
    make_topics,
    topic_names,
    wait_copied,
    wait_for_topics,
    write,
)
from tests.mm2_suite.worlds import World

pytestmark = pytest.mark.kafka

FULL = dict.fromkeys(range(PARTITIONS), RECORDS)
COMPACT = {"cleanup.policy": "compact"}
# The name of the first is in config.properties.exclude.
SOME_CONFIGS = {"delete.retention.ms": "1000", "retention.bytes": "1000"}


def test_replication(world: World) -> None:
    flows = world.mutual
    group = unique_group()
    topics = {flow: make_topics(flow, config=COMPACT) for flow in flows}
    configured = {flow: make_topics(flow, config=SOME_CONFIGS, partitions=1) for flow in flows}
    for flow in flows:
        write(flow.source, topics[flow])
        consume_all(flow.source, group, topics[flow])

    for flow in flows:
        wait_copied(flow, topics[flow], FULL)
        for topic in topics[flow]:
            assert configs(flow.target, flow.remote(topic))["cleanup.policy"] == "compact"
        _check_configs(flow, configured[flow])
        assert f"mm2-offset-syncs.{flow.target_alias}.internal" in topic_names(flow.source)
    _check_heartbeats(world)
    for flow in flows:
        _check_failover(flow, group, topics[flow])

    more = {flow: [make_topics(flow), make_topics(flow)] for flow in flows}
    for flow in flows:
        for pair in more[flow]:
            _check_one_partition(flow, pair)
        assert_monotonic_checkpoints(flow, group)


def _check_configs(flow: Flow, topics: Sequence[str]) -> None:
    wait_for_topics(flow, topics, partitions=1)
    for topic in topics:
        found = configs(flow.target, flow.remote(topic))
        assert found["retention.bytes"] == "1000"
        assert found["delete.retention.ms"] != "1000"


def _check_failover(flow: Flow, group: str, topics: Sequence[str]) -> None:
    """A consumer that moves to the target finds its place there, as Kafka's client tells it."""
    wanted = {TopicPartition(flow.remote(topic), at) for topic in topics for at in FULL}
    wait_for_checkpoints(flow, group, lambda found: wanted <= found.keys(), f"for {wanted}")
    answers = _ask(flow, group)
    offsets = answers["remoteConsumerOffsets"][group]
    assert offsets.keys() == {str(tp) for tp in wanted}
    assert all(0 < offset <= RECORDS for offset, _ in offsets.values()), offsets
    assert_monotonic_checkpoints(flow, group)


def _ask(flow: Flow, group: str) -> dict[str, Any]:
    servers, alias = flow.target.bootstrap_servers, flow.source_alias
    answers = ask_mirror_client(
        servers, [alias], policy=flow.policy_class, source=alias, groups=[group]
    )
    assert alias in answers["upstreamClusters"]
    assert answers["replicationHops"] == {alias: 1}
    return answers


def _check_heartbeats(world: World) -> None:
    forth, back = world.forth, world.back
    there, home = ("primary", "backup"), ("backup", "primary")
    wait_for_heartbeat(forth, forth.target, "heartbeats", there)
    wait_for_heartbeat(forth, forth.source, "heartbeats", home)
    wait_for_heartbeat(forth, forth.target, "primary.heartbeats", home)
    if back is not None:
        wait_for_heartbeat(back, back.target, "backup.heartbeats", there)


def _check_one_partition(flow: Flow, topics: Sequence[str]) -> None:
    """A topic is found after the start; only its first partition gets records."""
    wait_for_topics(flow, topics)
    write(flow.source, topics, [0])
    wait_copied(flow, topics, {0: RECORDS})
    assert sum(ends(flow.target, map(flow.remote, topics)).values()) == RECORDS * len(topics)


def test_replication_with_empty_partition(world: World) -> None:
    flow, group = world.forth, unique_group()
    last = PARTITIONS - 1
    filled = dict.fromkeys(range(last), RECORDS)
    topics = make_topics(flow)
    write(flow.source, topics, range(last))
    consume_all(flow.source, group, topics)
    wait_copied(flow, topics, filled)

    remotes = [flow.remote(topic) for topic in topics]
    seen = consume_all(flow.target, group, remotes)

    assert seen == {TopicPartition(remote, at): RECORDS for remote in remotes for at in filled}
    committed = committed_offsets(flow.target, group)
    assert {committed.get(TopicPartition(remote, last)) for remote in remotes} == {0}
    assert set(partition_counts(flow.target.bootstrap_servers, remotes).values()) == {PARTITIONS}
