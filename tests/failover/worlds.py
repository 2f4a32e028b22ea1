"""One source, mirrored by sparkmirror to one cluster and by genuine MirrorMaker 2 to another.

Both run at the same time with the same file but for the target's address, and write the offsets of
fifty groups there. Then both stop, as after the loss of the source.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sparkmirror.demo import fills
from sparkmirror.demo.mirror_process import ENGINES, MirrorProcess
from sparkmirror.demo.producing import producing
from sparkmirror.demo.reading import Partitions, read_topics
from sparkmirror.demo.seed import TOPICS, SeedRow, seed_topics
from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.java import store_properties
from sparkmirror.types import TopicPartition
from tests.clusters import create_topic, start_cluster, wait_for
from tests.engines import mirror_process
from tests.failover.groups import (
    GROUPS,
    HEAD,
    Move,
    Offsets,
    commit_all,
    draw_offsets,
    fetch_all,
    plan_moves,
)
from tests.mm2_suite.groups import consume_all

PLAIN_RECORDS = 9_000
SETTLE_SECONDS = 150.0
# Longer than several rounds of checkpoints and of group offset sync.
UNCHANGED_SECONDS = 5.0
_EVERY_SECOND = (
    "refresh.topics.interval.seconds",
    "refresh.groups.interval.seconds",
    "emit.checkpoints.interval.seconds",
    "sync.group.offsets.interval.seconds",
)
_ONE_COPY = (
    "replication.factor",
    "offset-syncs.topic.replication.factor",
    "checkpoints.topic.replication.factor",
    "offset.storage.replication.factor",
    "status.storage.replication.factor",
    "config.storage.replication.factor",
)


def _fill_plain(bootstrap: str, topic: str, partitions: int) -> None:
    with producing(bootstrap, linger_ms=5) as producer:
        for number in range(PLAIN_RECORDS):
            where = TopicPartition(topic, number % partitions)
            producer.send(where, b"%d" % (number % 97), b"order %d" % number)


ROWS = (
    SeedRow("orders", 3, "a plain topic", _fill_plain),
    *(row for row in TOPICS if row.fill in (fills.fill_profiles, fills.fill_payments)),
)
NAMES = [row.name for row in ROWS]


@dataclass(frozen=True, slots=True)
class World:
    """A target that a mirror has left: its records and where the groups stand."""

    cluster: KafkaCluster
    records: Mapping[str, Partitions]
    moves: Sequence[Move]


@dataclass(frozen=True, slots=True)
class Worlds:
    """The source and, by engine, the targets."""

    records: Mapping[str, Partitions]
    offsets: Offsets
    targets: Mapping[str, World]


def remote(topic: str) -> str:
    """The name on the targets."""
    return f"src.{topic}"


@contextmanager
def mirrored_worlds(folder: Path, engines: Sequence[str] = tuple(ENGINES)) -> Iterator[Worlds]:
    """Start everything, mirror everything, sync the groups, stop the mirrors."""
    clean_soon = {"log.cleaner.backoff.ms": "200"}
    source, *others = clusters = [
        start_cluster(name, properties=clean_soon) for name in ("source", *engines)
    ]
    targets = dict(zip(engines, others, strict=True))
    with ExitStack() as stack:
        for cluster in clusters:
            stack.callback(cluster.stop)
            cluster.launch()
        for cluster in clusters:
            cluster.wait_ready()
        with ThreadPoolExecutor(len(clusters)) as pool:
            warm = pool.map(_warm_up, clusters)
            seed_topics(source.bootstrap_servers, ROWS)
            list(warm)
        offsets = draw_offsets(source, NAMES)
        commit_all(source, offsets)
        records = read_topics(source.bootstrap_servers, NAMES, read_committed=True)
        mirrors = {
            engine: _mirror(engine, folder / engine, source, target)
            for engine, target in targets.items()
        }
        for mirror in mirrors.values():
            stack.callback(mirror.kill)
            mirror.start()
        synced = {
            engine: _wait_synced(targets[engine], mirror, records)
            for engine, mirror in mirrors.items()
        }
        for mirror in mirrors.values():
            mirror.stop()
        worlds = {
            engine: _look(target, records, offsets, synced[engine])
            for engine, target in targets.items()
        }
        yield Worlds(records, offsets, worlds)


def _warm_up(cluster: KafkaCluster) -> None:
    """Let the cluster create its topic of group offsets: whoever asks first may be refused."""
    topic = create_topic(cluster)
    consume_all(cluster, "warm-up", [topic])


def _look(
    target: KafkaCluster, records: Mapping[str, Partitions], before: Offsets, after: Offsets
) -> World:
    names = [remote(name) for name in NAMES]
    found = read_topics(target.bootstrap_servers, names, read_committed=True)
    moves = list(plan_moves(records, found, before, after, remote))
    return World(target, found, moves)


def _mirror(engine: str, folder: Path, source: KafkaCluster, target: KafkaCluster) -> MirrorProcess:
    settings = {
        "clusters": "src, tgt",
        "src.bootstrap.servers": source.bootstrap_servers,
        "tgt.bootstrap.servers": target.bootstrap_servers,
        "src->tgt.enabled": "true",
        "src->tgt.topics": ", ".join(NAMES),
        "src.consumer.isolation.level": "read_committed",
        # On the source they would be in the same topic.
        "src->tgt.offset-syncs.topic.location": "target",
        "sync.group.offsets.enabled": "true",
        "sync.topic.acls.enabled": "false",
        "emit.heartbeats.enabled": "false",
        "tgt.offset.flush.interval.ms": "1000",
        "tasks.max": "2",
        # Otherwise MirrorMaker 2 searches all its jars for plugins at its start.
        "plugin.discovery": "service_load",
        "tgt.plugin.discovery": "service_load",
        **dict.fromkeys(_EVERY_SECOND, "1"),
        **dict.fromkeys(_ONE_COPY, "1"),
    }
    file = folder / "mm2.properties"
    store_properties(file, settings)
    return mirror_process(engine, file)


def _wait_synced(
    target: KafkaCluster, mirror: MirrorProcess, records: Mapping[str, Partitions]
) -> Offsets:
    """Wait until the groups that have read everything are at the end, and nothing changes more.

    Those are exact with either engine; all the others get what can be translated.
    """
    ends = {
        TopicPartition(remote(name), at): len(found)
        for name, partitions in records.items()
        for at, found in partitions.items()
    }
    seen: Offsets = {}
    since = time.monotonic()

    def is_synced() -> bool:
        nonlocal seen, since
        mirror.check_running()
        found = fetch_all(target)
        if found != seen:
            seen, since = found, time.monotonic()
        at_end = all(seen[group] == ends for group in GROUPS if group.startswith(HEAD))
        return at_end and time.monotonic() - since > UNCHANGED_SECONDS

    wait_for(
        is_synced,
        within=SETTLE_SECONDS,
        describe=lambda: f"{seen[GROUPS[0]]} becomes {ends}; {mirror.log_end()}",
    )
    return seen
