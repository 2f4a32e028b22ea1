"""Consumer groups of a test: their members, their offsets, their checkpoints."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ClientPartition

from sparkmirror.demo.client import client_settings
from sparkmirror.demo.reading import partition_counts, read_topic
from sparkmirror.embedded import KafkaCluster
from sparkmirror.mirror.records import Checkpoint
from sparkmirror.types import TopicPartition
from tests.group_offsets import committed_offsets
from tests.mm2_suite.flows import WAIT_SECONDS, Flow
from tests.mm2_suite.topics import PARTITIONS, ends, wait_for_topics

Checkpoints = Mapping[TopicPartition, Checkpoint]

_END_OF_PARTITION = "_PARTITION_EOF"


def consume_all(
    cluster: KafkaCluster, group: str, topics: Iterable[str]
) -> Counter[TopicPartition]:
    """Join the group, read on to the end, commit, leave; how many records came.

    As Kafka's own consumer does, it commits where it stands in every partition, also in those that
    gave it no records.
    """
    names = list(topics)
    counts = partition_counts(cluster.bootstrap_servers, names)
    unfinished = {TopicPartition(name, at) for name in names for at in range(counts[name])}
    seen: Counter[TopicPartition] = Counter()
    positions: dict[TopicPartition, int] = {}
    settings = client_settings(
        cluster.bootstrap_servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        enable_partition_eof=True,
        fetch_wait_max_ms=10,
    )
    deadline = time.monotonic() + WAIT_SECONDS
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe(names)
        while unfinished:
            assert time.monotonic() < deadline, f"{group} has not read {unfinished} to the end"
            for message in consumer.consume(1000, timeout=0.1):
                where = TopicPartition(message.topic(), message.partition())
                if message.error() is None:
                    seen[where] += 1
                else:
                    assert message.error().name() == _END_OF_PARTITION, message.error()
                    positions[where] = message.offset()
                    unfinished.discard(where)
        rows = [ClientPartition(*where, offset) for where, offset in positions.items()]
        consumer.commit(offsets=rows, asynchronous=False)
    return seen


# -- group offset sync -----------------------------------------------------------------------------


def wait_for_full_sync(
    flow: Flow, group: str, topics: Iterable[str], *, records: int, lag_max: int
) -> None:
    """Wait until the group stands on the target within `lag_max` of every partition's end.

    Each partition has `records`; ahead of its end the group is never.
    """
    remotes = [flow.remote(topic) for topic in topics]
    # Offsets of topics that are not there yet are left out, and would be in sync with anything.
    wait_for_topics(flow, topics)

    def lags() -> dict[TopicPartition, int | None]:
        committed = committed_offsets(flow.target, group)
        end_offsets = ends(flow.target, remotes)
        assert all(end_offset <= records for end_offset in end_offsets.values()), end_offsets
        return {
            tp: end_offset - committed[tp] if tp in committed and end_offset == records else None
            for tp, end_offset in end_offsets.items()
        }

    def is_synced() -> bool:
        found = list(lags().values())
        ahead = [lag for lag in found if lag is not None and lag < 0]
        assert not ahead, f"{group} is ahead of the records: {lags()}"
        # As far behind the last record's offset as the bound allows, not one more.
        are_all_there = len(found) == PARTITIONS * len(remotes)
        return are_all_there and all(lag is not None and lag <= lag_max for lag in found)

    flow.wait_for(is_synced, lambda: f"{group} synced; its lags on the target are {lags()}")


def assert_few_redeliveries(flow: Flow, group: str, topics: Iterable[str], *, lag_max: int) -> None:
    """A member on the target gets less than `lag_max` records of a partition again."""
    again = consume_all(flow.target, group, [flow.remote(topic) for topic in topics])
    too_many = {tp: count for tp, count in again.items() if count >= max(1, lag_max)}
    assert not too_many, f"records that {group} got again: {too_many}"


# -- checkpoints -----------------------------------------------------------------------------------


def checkpoints_of(flow: Flow, group: str) -> list[Checkpoint]:
    """All checkpoints of a group, in the order in which they were written."""
    servers, topic = flow.target.bootstrap_servers, flow.checkpoints_topic
    if topic not in partition_counts(servers, [topic]):
        return []
    contents = [record.content for record in read_topic(servers, topic, read_committed=False)[0]]
    decoded = [Checkpoint.decode(found.key or b"", found.value or b"") for found in contents]
    return [checkpoint for checkpoint in decoded if checkpoint.group == group]


def last_checkpoints(flow: Flow, group: str) -> Checkpoints:
    """The newest checkpoint of each partition of the target."""
    found = checkpoints_of(flow, group)
    return {TopicPartition(each.topic, each.partition): each for each in found}


def wait_for_checkpoints(
    flow: Flow, group: str, reached: Callable[[Checkpoints], bool], describe: str
) -> Checkpoints:
    """Wait until the group's newest checkpoints are as they should be; them."""
    newest: list[Checkpoints] = [{}]

    def is_reached() -> bool:
        newest[0] = last_checkpoints(flow, group)
        return reached(newest[0])

    flow.wait_for(is_reached, lambda: f"checkpoints of {group} {describe}; found {newest[0]}")
    return newest[0]


def assert_monotonic_checkpoints(flow: Flow, *groups: str) -> None:
    """No checkpoint of a partition is behind an earlier one."""
    for group in groups:
        last: dict[TopicPartition, int] = {}
        found = checkpoints_of(flow, group)
        assert found, f"no checkpoints of {group}"
        for checkpoint in found:
            where = TopicPartition(checkpoint.topic, checkpoint.partition)
            assert checkpoint.downstream_offset >= last.get(where, 0), (where, found)
            last[where] = checkpoint.downstream_offset
