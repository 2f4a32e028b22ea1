"""One source, mirrored by genuine MirrorMaker 2 to one cluster and by sparkmirror to another.

Two aliases of the same source brokers, so that one run shows both isolation levels:

    src (read_committed)    every topic       -> tgt: src.*
    raw (read_uncommitted)  the transactions  -> tgt: raw.*
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sparkmirror.demo.mirror_process import MirrorProcess
from sparkmirror.demo.reading import read_topics
from sparkmirror.demo.seed import TOPICS, SeedRow, seed_topics
from sparkmirror.embedded import KafkaCluster
from sparkmirror.types import TopicPartition
from tests.clusters import start_cluster
from tests.engines import mirror_process
from tests.parity.arriving import wait_for_ends

ROWS = [row for row in TOPICS if row.name != "bulk"]
TRANSACTIONS = "payments"
COPY_SECONDS = 150.0
_ONE_COPY = (
    "replication.factor",
    "offset-syncs.topic.replication.factor",
    "checkpoints.topic.replication.factor",
    "offset.storage.replication.factor",
    "status.storage.replication.factor",
    "config.storage.replication.factor",
)
_CLEAN_SOON = {"log.cleaner.backoff.ms": "200"}


@dataclass(frozen=True, slots=True)
class Worlds:
    """Both targets hold everything; both mirrors are stopped. `theirs` is MirrorMaker 2's."""

    source: KafkaCluster
    theirs: KafkaCluster
    ours: KafkaCluster
    # Records per source topic and partition, for each flow.
    counts: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)

    @property
    def remotes(self) -> dict[str, str]:
        """Remote topic -> source topic, of both flows."""
        return {
            f"{alias}.{tp.topic}": tp.topic for alias in self.counts for tp in self.counts[alias]
        }

    def wait_copied(self, target: KafkaCluster, describe: Callable[[], str]) -> None:
        """Wait until the target holds everything."""
        ends = {
            (f"{alias}.{tp.topic}", tp.partition): count
            for alias, counts in self.counts.items()
            for tp, count in counts.items()
        }
        wait_for_ends(target.bootstrap_servers, ends, within=COPY_SECONDS, describe=describe)


@contextmanager
def two_worlds(folder: Path) -> Iterator[Worlds]:
    """Start everything, mirror everything, stop both mirrors."""
    names = ("source", "theirs", "ours")
    clusters = [start_cluster(name, properties=_CLEAN_SOON) for name in names]
    with ExitStack() as stack:
        for cluster in clusters:
            cluster.launch()
            stack.callback(cluster.stop)
        for cluster in clusters:
            cluster.wait_ready()
        source, theirs, ours = clusters
        worlds = Worlds(source, theirs, ours)
        seed_topics(source.bootstrap_servers, ROWS)
        _count(worlds)
        mirrors = [
            (_mirror("mm2", folder / "theirs", source, theirs), theirs),
            (_mirror("sparkmirror", folder / "ours", source, ours), ours),
        ]
        for mirror, _ in mirrors:
            stack.callback(mirror.kill)
            mirror.start()
        for mirror, target in mirrors:
            worlds.wait_copied(target, mirror.log_end)
        for mirror, _ in mirrors:
            mirror.stop()
        yield worlds


def _mirror(engine: str, folder: Path, source: KafkaCluster, target: KafkaCluster) -> MirrorProcess:
    """An engine with the mm2.properties of both flows."""
    folder.mkdir()
    file = folder / "mm2.properties"
    file.write_text("".join(f"{key} = {value}\n" for key, value in _keys(source, target).items()))
    return mirror_process(engine, file)


def _keys(source: KafkaCluster, target: KafkaCluster) -> Mapping[str, str]:
    return {
        "clusters": "src, raw, tgt",
        "src.bootstrap.servers": source.bootstrap_servers,
        "raw.bootstrap.servers": source.bootstrap_servers,
        "tgt.bootstrap.servers": target.bootstrap_servers,
        "src->tgt.enabled": "true",
        "src->tgt.topics": ", ".join(row.name for row in ROWS),
        "src.consumer.isolation.level": "read_committed",
        "raw->tgt.enabled": "true",
        "raw->tgt.topics": TRANSACTIONS,
        "emit.heartbeats.enabled": "false",
        "emit.checkpoints.enabled": "false",
        "sync.topic.acls.enabled": "false",
        "tasks.max": "2",
        # Otherwise MirrorMaker 2 searches all its jars for plugins at its start.
        "plugin.discovery": "service_load",
        "tgt.plugin.discovery": "service_load",
        **dict.fromkeys(_ONE_COPY, "1"),
    }


def _count(worlds: Worlds) -> None:
    flows: dict[str, tuple[list[SeedRow], bool]] = {
        "src": (ROWS, True),
        "raw": ([row for row in ROWS if row.name == TRANSACTIONS], False),
    }
    for alias, (rows, read_committed) in flows.items():
        names = [row.name for row in rows]
        found = read_topics(worlds.source.bootstrap_servers, names, read_committed=read_committed)
        worlds.counts[alias] = {
            TopicPartition(name, at): len(records)
            for name, partitions in found.items()
            for at, records in partitions.items()
        }
