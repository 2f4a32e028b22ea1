"""A broker of some release beside one of the newest, and one process that mirrors both ways.

    old  --flow 'old->target'-->  new        logins by SASL/PLAIN, an authorizer on both
    old  <--flow 'target->old'--  new

Both have the same topics, filled before the mirror starts; the tests look through plain listeners.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sparkmirror.demo import seed
from sparkmirror.demo.compare import compare_topics
from sparkmirror.demo.reading import Partitions, read_topics
from sparkmirror.embedded import KAFKA_VERSION, KafkaCluster
from sparkmirror.embedded.kafka_releases import Release, find_release
from sparkmirror.types import TopicPartition
from tests.clusters import (
    Record,
    create_topic,
    produce,
    side_by_side,
    start_cluster,
    wait_for,
)
from tests.group_offsets import commit_offsets
from tests.kafka.guarded_clusters import AUTHORIZER, WORKER
from tests.kafka.mirror_process import COPY_SECONDS, Mirror
from tests.kafka.records import last_value, values
from tests.mm2_suite.topics import ends
from tests.secure_cluster import CLIENT_LOGINS, SERVER_LOGINS, USER

HEAP = "320m"
LISTENERS = {"SASL_PLAINTEXT": "SASL_PLAINTEXT"}
GROUP = "billing"
NEW_ALIAS = "target"
# Of the demo's topics those that brokers of different releases may treat differently.
SEEDED = tuple(
    row
    for row in seed.TOPICS
    if row.name in ("orders", "codec-mixed", "profiles", "payments", "audit")
)
# Message formats 0 and 1; brokers from 3.0 on ignore the setting, and 4.0 removed it (KIP-724).
FORMATS = {"format-0": "0.9.0", "format-1": "0.10.0"}
# The codecs of old formats: zstd came later.
OLD_CODECS = ("none", "gzip", "snappy", "lz4")
RECORDS_PER_CODEC = 100
# 4.x takes no less than a megabyte (KIP-1030).
SMALL_SEGMENTS = "small-segments"
# Settings that brokers before 3.6 and 3.9 do not know (KIP-937, KIP-950).
NEW_SETTINGS = {
    "message.timestamp.before.max.ms": "86400000000",
    "remote.log.copy.disable": "false",
}
LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": CLIENT_LOGINS["PLAIN"],
}
COPIES_AGAIN = "stopping before all positions were stored: the next start copies"
EVERY_SECOND = (
    "refresh.groups",
    "sync.topic.configs",
    "sync.topic.acls",
    "emit.checkpoints",
    "sync.group.offsets",
)


def authorizer(release: Release) -> dict[str, str]:
    """What makes a broker check ACLs: the class has changed its name twice."""
    if not release.needs_zookeeper:
        return AUTHORIZER
    old, new = "kafka.security.auth.SimpleAclAuthorizer", "kafka.security.authorizer.AclAuthorizer"
    name = old if release < Release(2, 4, 0) else new
    return {**AUTHORIZER, "authorizer.class.name": name}


def broker_properties(version: str) -> dict[str, str]:
    """Settings of a broker with ACLs and a login, which compacts at once."""
    return {
        **authorizer(find_release(version)),
        "super.users": f"{WORKER};User:{USER}",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": SERVER_LOGINS["PLAIN"],
        "log.cleaner.backoff.ms": "500",
    }


@dataclass(frozen=True)
class Flow:
    """One direction of the mirror."""

    source: KafkaCluster
    target: KafkaCluster
    alias: str
    mirror: Mirror

    def remote(self, topic: str) -> str:
        return f"{self.alias}.{topic}"

    def wait_copied(self, *topics: str, read_committed: bool = True) -> None:
        """Wait until the target has as many records as the source shows, and compare them all."""
        servers = self.source.bootstrap_servers
        found = read_topics(servers, topics, read_committed=read_committed)
        wanted = _counts({self.remote(topic): found[topic] for topic in topics})
        names = {topic: self.remote(topic) for topic in topics}
        wait_for(
            lambda: ends(self.target, names.values()) == wanted,
            within=2 * COPY_SECONDS,
            describe=lambda: (
                f"{wanted}; {ends(self.target, names.values())}; {self.mirror.log_end()}"
            ),
        )
        compared = compare_topics(
            servers,
            self.target.bootstrap_servers,
            names,
            source_read_committed=read_committed,
        )
        assert [result for result in compared if not result.same] == []
        assert sum(result.records for result in compared) > 0

    def wait_survived(self, topic: str, partitions: int) -> None:
        """The same after an outage of brokers.

        A target that is away for half a minute, as on a machine that does a lot beside, ends the
        task before it could store positions. It says so, and repeats records; none is missing.
        """
        if COPIES_AGAIN not in self.mirror.log():
            self.wait_copied(topic)
            return
        for at in range(partitions):
            wanted = values(self.source, topic, at)
            wait_for(
                partial(self._has_last, topic, at, wanted[-1]),
                within=2 * COPY_SECONDS,
                describe=lambda: f"the last record of {topic}; {self.mirror.log_end()}",
            )
            assert list(dict.fromkeys(values(self.target, self.remote(topic), at))) == wanted

    def _has_last(self, topic: str, partition: int, value: bytes) -> bool:
        return last_value(self.target, self.remote(topic), partition) == value


def _counts(topics: Mapping[str, Partitions]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, at): len(records)
        for topic, partitions in topics.items()
        for at, records in partitions.items()
    }


@dataclass(frozen=True)
class Scene:
    """The two clusters, the mirror, and what is on the clusters."""

    release: Release
    old: KafkaCluster
    new: KafkaCluster
    mirror: Mirror
    committed: Mapping[TopicPartition, int]

    @property
    def flows(self) -> tuple[Flow, Flow]:
        """From the old cluster, and to it."""
        return (
            Flow(self.old, self.new, self.mirror.alias, self.mirror),
            Flow(self.new, self.old, NEW_ALIAS, self.mirror),
        )

    @property
    def has_old_formats(self) -> bool:
        return self.release < Release(3, 0, 0)

    @property
    def knows_message_format(self) -> bool:
        return self.release < Release(4, 0, 0)

    @property
    def has_small_segments(self) -> bool:
        return self.release < Release(4, 0, 0)


@contextmanager
def mirrored(version: str, folder: Path) -> Iterator[Scene]:
    """Both clusters with their topics, and the running mirror."""
    clusters = [
        start_cluster(
            name,
            version=release,
            heap=HEAP,
            listeners=LISTENERS,
            properties=broker_properties(release),
        )
        for name, release in (("old", version), ("new", KAFKA_VERSION))
    ]
    with side_by_side(clusters) as (old, new):
        release = find_release(version)
        with ThreadPoolExecutor() as pool:
            list(pool.map(_seed, (old, new)))
        fill_special(release, old, new)
        committed = {TopicPartition("orders", at): 100 * (at + 1) for at in range(3)}
        committed |= {TopicPartition("payments", at): 150 for at in range(3)}
        for cluster in (old, new):
            commit_offsets(cluster, GROUP, committed)
        mirror = make_mirror(folder, old, new)
        with mirror.ending():
            mirror.start(until="2 flows started")
            yield Scene(release, old, new, mirror, committed)


def _seed(cluster: KafkaCluster) -> None:
    seed.seed_topics(cluster.bootstrap_servers, SEEDED)


def fill_special(release: Release, old: KafkaCluster, new: KafkaCluster) -> None:
    """Topics that only one of the two can have."""
    if release < Release(4, 0, 0):
        for topic, version in FORMATS.items():
            config = {"message.format.version": version, "message.downconversion.enable": "true"}
            create_topic(old, topic, config=config)
            fill_all_codecs(old, topic)
        create_topic(old, SMALL_SEGMENTS, config={"segment.bytes": "20000", "retention.ms": "-1"})
        fill_all_codecs(old, SMALL_SEGMENTS)
    create_topic(new, "new-settings", config={**NEW_SETTINGS, "retention.ms": "-1"})
    produce(new, "new-settings", [b"record"])


def fill_all_codecs(cluster: KafkaCluster, topic: str) -> None:
    """By a producer that is not idempotent: old formats know of no sequence numbers."""
    for codec in OLD_CODECS:
        records = [
            Record(b"%s %d " % (codec.encode(), at) * 8, b"key-%d" % at)
            for at in range(RECORDS_PER_CODEC)
        ]
        produce(cluster, topic, records, config={"compression.type": codec, "linger.ms": 20})


def make_mirror(folder: Path, old: KafkaCluster, new: KafkaCluster) -> Mirror:
    """One process, two flows; not started."""
    names = [row.name for row in SEEDED]
    others = [*FORMATS, SMALL_SEGMENTS, "new-settings", "live-.*", "late-.*"]
    topics = ", ".join([*names, *others])
    flows = (f"SOURCE->{NEW_ALIAS}", f"{NEW_ALIAS}->SOURCE")
    settings = {
        **{f"{flow}.enabled": "true" for flow in flows},
        **{f"{flow}.topics": topics for flow in flows},
        **{f"{flow}.emit.checkpoints.enabled": "true" for flow in flows},
        **{f"{flow}.groups": GROUP for flow in flows},
        **{f"{flow}.sync.group.offsets.enabled": "true" for flow in flows},
        **{f"{what}.interval.seconds": "1" for what in EVERY_SECOND},
        "sync.topic.configs.enabled": "true",
        "sync.topic.acls.enabled": "true",
        "SOURCE.session.timeout.ms": "6000",
        "SOURCE.heartbeat.interval.ms": "1000",
    }
    for alias, cluster in {"SOURCE": old, NEW_ALIAS: new}.items():
        settings[f"{alias}.bootstrap.servers"] = cluster.servers_of("SASL_PLAINTEXT")
        settings |= {f"{alias}.{key}": value for key, value in LOGIN.items()}
        settings[f"{alias}.consumer.isolation.level"] = "read_committed"
    return Mirror(folder, old, new, topics, settings)
