"""Consumer groups find their place on the target: synced, checkpointed, after a restart, behind."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest

from sparkmirror.demo.reading import read_topics
from sparkmirror.types import TopicPartition
from tests.group_offsets import commit_offsets
from tests.mm2_suite.connect_mirror import ConnectMirror
from tests.mm2_suite.flows import Flow, unique_group
from tests.mm2_suite.groups import (
    Checkpoints,
    assert_few_redeliveries,
    assert_monotonic_checkpoints,
    consume_all,
    wait_for_checkpoints,
    wait_for_full_sync,
)
from tests.mm2_suite.topics import (
    PARTITIONS,
    RECORDS,
    create_topics,
    make_topics,
    topic_names,
    wait_copied,
    write,
)
from tests.mm2_suite.worlds import LAG_MAX, World

pytestmark = pytest.mark.kafka

ALL_PARTITIONS = range(PARTITIONS)
# 10,000 records in 10 partitions: enough for MirrorMaker 2's own translation to be coarse.
ROUNDS = 100


def test_one_way_replication_with_auto_offset_sync(world: World) -> None:
    _check_auto_offset_sync(world.synced, LAG_MAX)


def test_one_way_replication_with_frequent_offset_syncs(world: World) -> None:
    _check_auto_offset_sync(world.often, 0)


def _check_auto_offset_sync(flow: Flow, lag_max: int) -> None:
    group = unique_group()
    first = make_topics(flow)
    if not flow.keeps_names:
        # Nothing leads back: a topic of the target stays there.
        create_topics(flow.target, first)
    _fill_and_check_sync(flow, group, first, first, lag_max)
    second = make_topics(flow)
    _fill_and_check_sync(flow, group, second, [*first, *second], lag_max)
    assert_monotonic_checkpoints(flow, group)
    reverse = {f"{flow.target_alias}.{topic}" for topic in first}
    assert not reverse & topic_names(flow.source)


def _fill_and_check_sync(
    flow: Flow, group: str, topics: Sequence[str], consumed: Sequence[str], lag_max: int
) -> None:
    write(flow.source, topics)
    consume_all(flow.source, group, topics)
    wait_for_full_sync(flow, group, consumed, records=RECORDS, lag_max=lag_max)
    assert_few_redeliveries(flow, group, consumed, lag_max=lag_max)


def test_restart_replication(world: World) -> None:
    _check_restart(world.synced, world.restart)


def test_restart_replication_by_rest(connect_flow: Flow) -> None:
    """As in the original: connectors and tasks are restarted by requests, the worker runs on."""
    assert isinstance(connect_flow.mirror, ConnectMirror)
    _check_restart(connect_flow, connect_flow.mirror.restart_connectors)
    # A worker reports where partitions begin, too.
    report = r"\|worker\] rest->backup: \d+ partitions: 0 resume at their stored positions"
    assert re.search(report, connect_flow.mirror.log())


def _check_restart(flow: Flow, restart: Callable[[], None]) -> None:
    group = unique_group()
    topics = make_topics(flow)
    write(flow.source, topics)
    consume_all(flow.source, group, topics)
    wait_for_full_sync(flow, group, topics, records=RECORDS, lag_max=LAG_MAX)

    restart()
    assert_monotonic_checkpoints(flow, group)
    write(flow.source, topics)
    consume_all(flow.source, group, topics)

    wait_for_full_sync(flow, group, topics, records=2 * RECORDS, lag_max=LAG_MAX)
    wait_copied(flow, topics, dict.fromkeys(ALL_PARTITIONS, 2 * RECORDS))
    assert_monotonic_checkpoints(flow, group)


def test_no_checkpoints_if_no_records_are_mirrored(world: World) -> None:
    flow, group = world.forth, unique_group()
    topics, empty = make_topics(flow), make_topics(flow, partitions=1)
    write(flow.source, topics)
    consume_all(flow.source, group, [*topics, *empty])
    mirrored = {TopicPartition(flow.remote(topic), at) for topic in topics for at in ALL_PARTITIONS}
    found = wait_for_checkpoints(flow, group, lambda known: mirrored <= known.keys(), "of the full")
    assert found.keys() == mirrored

    write(flow.source, empty, [0])
    consume_all(flow.source, group, empty)
    now = {TopicPartition(flow.remote(topic), 0) for topic in empty}
    wait_for_checkpoints(flow, group, lambda known: mirrored | now == known.keys(), "of all")


def test_offset_translation_behind_replication_flow(world: World) -> None:
    flow, group = world.forth, unique_group()
    topics = make_topics(flow)
    write(flow.source, topics, rounds=ROUNDS)
    wait_copied(flow, topics, dict.fromkeys(ALL_PARTITIONS, ROUNDS * RECORDS))

    half = _commit_share(flow, group, topics, 0.5)
    most = _commit_share(flow, group, topics, 0.9)
    assert all(most[tp].downstream_offset > half[tp].downstream_offset for tp in half)
    assert_monotonic_checkpoints(flow, group)

    rewound = _commit_share(flow, group, topics, 0.1)
    assert all(rewound[tp].downstream_offset < half[tp].downstream_offset for tp in half)


def _commit_share(flow: Flow, group: str, topics: Sequence[str], share: float) -> Checkpoints:
    """Commit so far in every partition, and wait for checkpoints; where they lead is exact.

    MirrorMaker 2 may lead further back, but for offsets of its few syncs.
    """
    found = read_topics(flow.source.bootstrap_servers, topics, read_committed=True)
    committed: dict[TopicPartition, int] = {}
    exact: dict[TopicPartition, tuple[int, int]] = {}
    for topic in topics:
        for at, records in found[topic].items():
            below = int(len(records) * share)
            offset = records[below].offset
            committed[TopicPartition(topic, at)] = offset
            exact[TopicPartition(flow.remote(topic), at)] = (offset, below)
    commit_offsets(flow.source, group, committed)

    def are_exact(newest: Checkpoints) -> bool:
        pairs = {tp: (it.upstream_offset, it.downstream_offset) for tp, it in newest.items()}
        return pairs == exact

    return wait_for_checkpoints(flow, group, are_exact, f"at {exact}")
