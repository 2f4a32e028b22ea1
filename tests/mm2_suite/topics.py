"""Topics of a test: made, written by plain and by transactional producers, compared, configured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
)

from sparkmirror.demo.client import RESPONSE_SECONDS, admin_client, wait_for_all
from sparkmirror.demo.compare import compare_topics
from sparkmirror.demo.producing import SeedProducer, producing
from sparkmirror.demo.reading import EndOffsets, partition_counts
from sparkmirror.embedded import KafkaCluster
from sparkmirror.types import TopicPartition
from tests.clusters import unique_name
from tests.mm2_suite.flows import Flow

# NUM_PARTITIONS and NUM_RECORDS_PER_PARTITION of MirrorConnectorsIntegrationBaseTest.
PARTITIONS = 10
RECORDS = 10
_TRANSACTIONAL = "-transactional"


def make_topics(
    flow: Flow, *, partitions: int = PARTITIONS, config: Mapping[str, str] | None = None
) -> list[str]:
    """Two new topics on the source: one for a plain producer, one for a transactional one."""
    name = unique_name(flow.prefix)
    topics = [f"{name}-plain", f"{name}{_TRANSACTIONAL}"]
    create_topics(flow.source, topics, partitions=partitions, config=config)
    return topics


def create_topics(
    cluster: KafkaCluster,
    topics: Iterable[str],
    *,
    partitions: int = PARTITIONS,
    config: Mapping[str, str] | None = None,
) -> None:
    """Create them."""
    wanted = [NewTopic(topic, partitions, 1, config=dict(config or {})) for topic in topics]
    # A name, for the futures are cancelled when the client goes.
    admin = admin_client(cluster.bootstrap_servers)
    wait_for_all(admin.create_topics(wanted))


def write(
    cluster: KafkaCluster,
    topics: Iterable[str],
    partitions: Sequence[int] = range(PARTITIONS),
    *,
    count: int = RECORDS,
    rounds: int = 1,
) -> None:
    """Add records to the partitions of every topic, each round in a transaction of its own."""
    for topic in topics:
        is_transactional = topic.endswith(_TRANSACTIONAL)
        options = {"transactional_id": topic} if is_transactional else {}
        with producing(cluster.bootstrap_servers, linger_ms=0, **options) as producer:
            if is_transactional:
                producer.init_transactions()
            for _ in range(rounds):
                with _transaction(producer) if is_transactional else nullcontext():
                    _send(producer, [TopicPartition(topic, at) for at in partitions], count)


@contextmanager
def _transaction(producer: SeedProducer) -> Iterator[None]:
    producer.begin_transaction()
    yield
    producer.end_transaction(commit=True)


def _send(producer: SeedProducer, partitions: Iterable[TopicPartition], count: int) -> None:
    for where in partitions:
        for at in range(count):
            key = f"{where.partition}-{at}-{unique_name()}".encode()
            producer.send(where, key, b"value of " + key)


# -- what is there ---------------------------------------------------------------------------------


def topic_names(cluster: KafkaCluster) -> set[str]:
    """All topics of a cluster."""
    return set(admin_client(cluster.bootstrap_servers).list_topics(timeout=RESPONSE_SECONDS).topics)


def ends(cluster: KafkaCluster, topics: Iterable[str]) -> dict[TopicPartition, int]:
    """End offsets; those of partitions that do not exist are left out."""
    return EndOffsets(cluster.bootstrap_servers).list_end_offsets(topics)


def wait_for_topics(flow: Flow, topics: Iterable[str], partitions: int = PARTITIONS) -> None:
    """Wait until the remote topics are there, complete."""
    wanted = {flow.remote(topic): partitions for topic in topics}

    def found() -> dict[str, int]:
        return partition_counts(flow.target.bootstrap_servers, wanted)

    flow.wait_for(lambda: found() == wanted, lambda: f"{wanted} on the target; {found()} are there")


def wait_copied(flow: Flow, topics: Sequence[str], counts: Mapping[int, int]) -> None:
    """Wait until each partition has its number of records on the target, and compare them all.

    Copies have no markers of transactions: an end offset is a number of records.
    """
    wanted = {
        TopicPartition(flow.remote(topic), partition): count
        for topic in topics
        for partition, count in counts.items()
    }

    def found() -> dict[TopicPartition, int]:
        there = ends(flow.target, [flow.remote(topic) for topic in topics])
        return {tp: there.get(tp, -1) for tp in wanted}

    flow.wait_for(
        lambda: all(found()[tp] >= count for tp, count in wanted.items()),
        lambda: f"{wanted} on the target; {found()} are there",
    )
    assert found() == wanted
    assert_same_records(flow, topics)


def assert_same_records(flow: Flow, topics: Iterable[str]) -> None:
    """The target holds what the source holds: nothing missing, nothing twice, same order."""
    names = {topic: flow.remote(topic) for topic in topics}
    servers = (flow.source.bootstrap_servers, flow.target.bootstrap_servers)
    assert [result for result in compare_topics(*servers, names) if not result.same] == []


# -- configs ---------------------------------------------------------------------------------------


def configs(cluster: KafkaCluster, topic: str) -> dict[str, str]:
    """The values that hold for a topic, wherever they were set."""
    return {name: entry.value for name, entry in _entries(cluster, topic).items()}


def own_configs(cluster: KafkaCluster, topic: str) -> dict[str, str]:
    """The values that were set on the topic itself."""
    here = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    entries = _entries(cluster, topic)
    return {name: entry.value for name, entry in entries.items() if entry.source == here}


def _entries(cluster: KafkaCluster, topic: str) -> dict[str, ConfigEntry]:
    admin = admin_client(cluster.bootstrap_servers)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found: dict[str, ConfigEntry] = admin.describe_configs([resource])[resource].result(
        RESPONSE_SECONDS
    )
    return found


def alter_configs(cluster: KafkaCluster, topic: str, changes: Mapping[str, str | None]) -> None:
    """Set or, with None, take away values of a topic."""
    entries = [_change(name, value) for name, value in changes.items()]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin = admin_client(cluster.bootstrap_servers)
    wait_for_all(admin.incremental_alter_configs([resource]))


def _change(name: str, value: str | None) -> ConfigEntry:
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    return ConfigEntry(name, value, incremental_operation=operation)
