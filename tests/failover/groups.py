"""Fifty consumer groups: where they stand on the source, and what a move would cost each of them.

A group stands anywhere: at the head, a little or far behind, on records, in the gaps that
compaction leaves, on aborted records and on markers. It must go on at the target with the record
that it would have read next on the source:

    source    r0  r1   .   .  r4   m  r6         group at 2, 3 or 4: reads r4 next
    target    r0  r1  r4  r6                     2 is exact; 1 reads r1 again; 3 misses r4
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass

from confluent_kafka import Consumer

from sparkmirror.demo.client import client_settings
from sparkmirror.demo.reading import EndOffsets, Partitions, RecordContent, partition_counts
from sparkmirror.embedded import KafkaCluster
from sparkmirror.types import TopicPartition
from tests.clusters import wait_for
from tests.group_offsets import commit_offsets, committed_offsets

SEED = 20261115
HEAD = "head"
_READ_SECONDS = 30.0
_END_OF_PARTITION = "_PARTITION_EOF"

# How far a group of each kind has read a partition that ends there.
Draw = Callable[[random.Random, int], int]
KINDS: dict[str, tuple[int, Draw]] = {
    HEAD: (10, lambda _, end: end),
    "near": (10, lambda rng, end: max(0, end - rng.randint(1, 50))),
    "anywhere": (20, lambda rng, end: rng.randint(0, end)),
    "far": (10, lambda rng, end: rng.randint(0, end // 10)),
}
GROUPS = [f"{kind}-{number}" for kind, (count, _) in KINDS.items() for number in range(count)]

# Where each group stands.
Offsets = dict[str, dict[TopicPartition, int]]


def draw_offsets(source: KafkaCluster, topics: Iterable[str]) -> Offsets:
    """A place for every group in every partition, the same in every run if the ends are."""
    rng = random.Random(SEED)
    found = EndOffsets(source.bootstrap_servers).list_end_offsets(topics)
    ends = sorted(found.items())
    return {group: {tp: _draw(group)(rng, end) for tp, end in ends} for group in GROUPS}


def _draw(group: str) -> Draw:
    return KINDS[group.partition("-")[0]][1]


# -- committed offsets -----------------------------------------------------------------------------


def commit_all(cluster: KafkaCluster, offsets: Offsets) -> None:
    """Commit for groups that nobody is a member of."""
    for group, places in offsets.items():
        commit_offsets(cluster, group, places)


def fetch_all(cluster: KafkaCluster, groups: Iterable[str] = GROUPS) -> Offsets:
    """What each group has committed."""
    return {group: committed_offsets(cluster, group) for group in groups}


# -- what a move costs -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Move:
    """One group in one partition: records it has read, and records before its place there."""

    group: str
    tp: TopicPartition
    read: int
    skipped: int
    has_offset: bool

    @property
    def again(self) -> int:
        """Records it reads a second time."""
        return max(0, self.read - self.skipped)

    @property
    def missed(self) -> int:
        """Records it never reads."""
        return max(0, self.skipped - self.read)


def plan_moves(
    source: Mapping[str, Partitions],
    target: Mapping[str, Partitions],
    before: Offsets,
    after: Offsets,
    remote: Callable[[str], str],
) -> Iterator[Move]:
    """Every group in every partition, by what a consumer sees on both sides.

    A group without an offset starts at the beginning, as `auto.offset.reset=earliest` says.
    """
    for group, places in before.items():
        for tp, offset in places.items():
            there = TopicPartition(remote(tp.topic), tp.partition)
            resumed = after[group].get(there)
            read = _count_below(source[tp.topic], tp.partition, offset)
            skipped = _count_below(target[there.topic], there.partition, resumed or 0)
            yield Move(group, tp, read, skipped, resumed is not None)


def _count_below(partitions: Partitions, partition: int, offset: int) -> int:
    return bisect_left([record.offset for record in partitions[partition]], offset)


# -- a consumer that really goes on ----------------------------------------------------------------


def read_on(
    cluster: KafkaCluster, group: str, topics: Iterable[str]
) -> dict[TopicPartition, list[RecordContent]]:
    """Join the group and read every partition to its end; commits nothing."""
    names = list(topics)
    counts = partition_counts(cluster.bootstrap_servers, names)
    found: dict[TopicPartition, list[RecordContent]] = {
        TopicPartition(name, at): [] for name in names for at in range(counts[name])
    }
    unfinished = set(found)
    settings = client_settings(
        cluster.bootstrap_servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        enable_partition_eof=True,
        isolation_level="read_committed",
        fetch_wait_max_ms=10,
    )
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe(names)
        wait_for(
            lambda: _is_read(consumer, found, unfinished),
            within=_READ_SECONDS,
            describe=lambda: f"{group} reads {sorted(unfinished)} to the end",
        )
    return found


def _is_read(
    consumer: Consumer,
    found: dict[TopicPartition, list[RecordContent]],
    unfinished: set[TopicPartition],
) -> bool:
    for message in consumer.consume(10_000, timeout=0.1):
        where = TopicPartition(message.topic(), message.partition())
        if message.error() is None:
            headers = tuple((name, value) for name, value in message.headers() or ())
            content = RecordContent(message.key(), message.value(), headers, message.timestamp()[1])
            found[where].append(content)
        else:
            assert message.error().name() == _END_OF_PARTITION, message.error()
            unfinished.discard(where)
    return not unfinished
