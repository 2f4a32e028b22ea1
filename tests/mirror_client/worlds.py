"""One source, mirrored by genuine MirrorMaker 2 to one cluster and by sparkmirror to another.

Both run at the same time with the same file but for the target's address:

    src -> tgt    topics orders and payments, offset syncs on the target
    tgt -> src    heartbeats only; both write to the same topic of the source, which both copy

`far.heartbeats` on the source is what a third mirror would have left there: two hops away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sparkmirror.demo.mirror_process import MirrorProcess
from sparkmirror.demo.reading import read_topics
from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.java import store_properties
from sparkmirror.mirror.records import Checkpoint, Heartbeat, OffsetSync
from sparkmirror.types import TopicPartition
from tests.clusters import Record, produce, start_cluster, wait_for
from tests.engines import mirror_process
from tests.group_offsets import commit_offsets
from tests.mirror_client.internal_records import KEYED, last_by_key
from tests.mm2_suite.topics import create_topics, write

ORDERS = "orders"
PAYMENTS = "payments-transactional"  # the name makes `write` write transactions
NOTHING = "nothing"
PARTITIONS = 3
ROUNDS = 8
RECORDS_PER_ROUND = 25
ALL_RECORDS = ROUNDS * RECORDS_PER_ROUND
# Group: how much of each partition it has read.
GROUPS = {"g-begin": 0.0, "g-early": 0.2, "g-middle": 0.55, "g-late": 0.99, "g-end": 1.0}
METADATA = "read by a test"
SETTLE_SECONDS = 120.0
_EVERY_SECOND = (
    "refresh.topics.interval.seconds",
    "refresh.groups.interval.seconds",
    "emit.checkpoints.interval.seconds",
    "emit.heartbeats.interval.seconds",
)
_ONE_COPY = (
    "replication.factor",
    "offset-syncs.topic.replication.factor",
    "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor",
    "offset.storage.replication.factor",
    "status.storage.replication.factor",
    "config.storage.replication.factor",
)

# All partitions of the source that have records.
_COPIED = [
    TopicPartition("heartbeats", 0),
    TopicPartition("far.heartbeats", 0),
    *(TopicPartition(topic, at) for topic in (ORDERS, PAYMENTS) for at in range(PARTITIONS)),
]

# (group, remote partition) -> the offset on both clusters, the second one exact
Places = dict[tuple[str, TopicPartition], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Worlds:
    """Both targets are complete, and both mirrors have stopped. `theirs` is MirrorMaker 2's."""

    theirs: KafkaCluster
    ours: KafkaCluster
    places: Places


@contextmanager
def two_worlds(folder: Path) -> Iterator[Worlds]:
    """Start everything, mirror everything, stop both mirrors."""
    source, theirs, ours = clusters = [start_cluster(name) for name in ("source", "theirs", "ours")]
    with ExitStack() as stack:
        for cluster in clusters:
            stack.callback(cluster.stop)
            cluster.launch()
        for cluster in clusters:
            cluster.wait_ready()
        _fill(source)
        places = _commit_groups(source)
        mirrors = {
            engine: _mirror(engine, folder / engine, source, target)
            for engine, target in (("mm2", theirs), ("sparkmirror", ours))
        }
        for mirror in mirrors.values():
            stack.callback(mirror.kill)
            mirror.start()
        _wait_settled(theirs, mirrors["mm2"], lambda group: group == "g-end", places)
        _wait_settled(ours, mirrors["sparkmirror"], lambda _: True, places)
        for mirror in mirrors.values():
            mirror.stop()
        yield Worlds(theirs, ours, places)


def _fill(source: KafkaCluster) -> None:
    create_topics(source, [ORDERS, PAYMENTS, NOTHING], partitions=PARTITIONS)
    create_topics(source, ["far.heartbeats"], partitions=1)
    partitions = range(PARTITIONS)
    write(source, [ORDERS, PAYMENTS], partitions, count=RECORDS_PER_ROUND, rounds=ROUNDS)
    beat = Heartbeat("far", "src", timestamp_ms=1_700_000_000_000)
    produce(source, "far.heartbeats", [Record(beat.encode_value(), beat.encode_key())])


def _commit_groups(source: KafkaCluster) -> Places:
    """Let groups that nobody is a member of stand all over the topics."""
    places: Places = {}
    topics = read_topics(source.bootstrap_servers, [ORDERS, PAYMENTS], read_committed=True)
    for group, share in GROUPS.items():
        committed = {TopicPartition(NOTHING, 0): 0}
        for topic, partitions in topics.items():
            for at, records in partitions.items():
                below = int(ALL_RECORDS * share)
                offsets = [record.offset for record in records]
                # At the end: behind the last record and, in one case, before its marker.
                offset = offsets[below] if below < len(offsets) else offsets[-1] + 1
                committed[TopicPartition(topic, at)] = offset
                places[group, TopicPartition(f"src.{topic}", at)] = (offset, below)
        commit_offsets(source, group, committed, METADATA)
    return places


def _mirror(engine: str, folder: Path, source: KafkaCluster, target: KafkaCluster) -> MirrorProcess:
    settings = {
        "clusters": "src, tgt",
        "src.bootstrap.servers": source.bootstrap_servers,
        "tgt.bootstrap.servers": target.bootstrap_servers,
        "src->tgt.enabled": "true",
        "src->tgt.topics": f"{ORDERS}, {PAYMENTS}, {NOTHING}",
        "src->tgt.offset-syncs.topic.location": "target",
        "src.consumer.isolation.level": "read_committed",
        "tgt.offset.flush.interval.ms": "1000",
        "groups": "g-.*",
        "offset.lag.max": "20",
        "sync.topic.acls.enabled": "false",
        "tasks.max": "1",
        # Otherwise MirrorMaker 2 searches all its jars for plugins at its start.
        "plugin.discovery": "service_load",
        "tgt.plugin.discovery": "service_load",
        **dict.fromkeys(_EVERY_SECOND, "1"),
        **dict.fromkeys(_ONE_COPY, "1"),
    }
    if engine == "sparkmirror":
        # Both have the same source, and there heartbeats of a pair of the same name.
        settings["src.group.id"] = "ours"
    store_properties(folder / "mm2.properties", settings)
    return mirror_process(engine, folder / "mm2.properties")


def _wait_settled(
    target: KafkaCluster,
    mirror: MirrorProcess,
    must_be_exact: Callable[[str], bool],
    places: Places,
) -> None:
    """Wait until groups stand where they must, heartbeats came, and all topics tell of it."""
    lacking: list[str] = []

    def is_settled() -> bool:
        mirror.check_running()
        lacking[:] = _lacking(target, must_be_exact, places)
        return not lacking

    wait_for(
        is_settled,
        within=SETTLE_SECONDS,
        describe=lambda: f"{mirror.engine.title} lacks {lacking[:5]}; {mirror.log_end()}",
    )


def _lacking(
    target: KafkaCluster, must_be_exact: Callable[[str], bool], places: Places
) -> list[str]:
    found = {topic: last_by_key(target, topic) for topic in KEYED}
    checkpoints = {
        (each.group, TopicPartition(each.topic, each.partition)): each.downstream_offset
        for each in (Checkpoint.decode(*row) for row in found[KEYED.checkpoints].items())
    }
    absent = [f"records in {topic}" for topic in KEYED if not found[topic]]
    syncs = {
        (each.topic, each.partition)
        for each in (OffsetSync.decode(*row) for row in found[KEYED.offset_syncs].items())
    }
    absent += [f"the sync of {tp}" for tp in _COPIED if tp not in syncs]
    return absent + [
        f"checkpoint {key}"
        for key, (_, exact) in places.items()
        if must_be_exact(key[0]) and checkpoints.get(key) != exact
    ]
