"""Real clusters for tests, and an independent client (librdkafka) to fill and to read them.

`source_cluster` and `target_cluster` (conftest.py) are shared by the whole session, so every test
works on topics of its own: `create_topic`. A test that kills or reconfigures brokers starts its
own cluster with `start_cluster`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from sparkmirror.demo.reading import BEING_CREATED, EndOffsets, timestamp_of
from sparkmirror.embedded import KAFKA_VERSION, KafkaCluster
from sparkmirror.embedded.class_archive import class_archive_args
from sparkmirror.embedded.java import QUICK_JVM_ARGS
from sparkmirror.retry import wait_for

__all__ = [
    "Record",
    "create_topic",
    "end_offset",
    "patiently",
    "produce",
    "read_partition",
    "side_by_side",
    "start_cluster",
    "start_clusters",
    "unique_name",
    "wait_for",
]

_TIMEOUT_SECONDS = 30.0
_TEST_PROPERTIES = {
    # Five internal partitions instead of fifty: brokers start and stop faster.
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    # A killed broker is missed after 4 s, not 9: until then it cannot come back under its id,
    # and nobody else leads its partitions.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
}


Answer = TypeVar("Answer")


class Record(NamedTuple):
    """What a test produces, and what it reads back."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = 0
    offset: int = -1


def start_cluster(
    name: str, *, brokers: int = 1, properties: Mapping[str, str] | None = None, **others: Any
) -> KafkaCluster:
    """A small cluster for `with`; the arguments are those of KafkaCluster."""
    settings = {**_TEST_PROPERTIES, **(properties or {})}
    # Old releases are started too seldom to earn what their archives cost.
    is_newest = others.get("version", KAFKA_VERSION) == KAFKA_VERSION
    jvm_args = (*QUICK_JVM_ARGS, *(class_archive_args() if is_newest else ()))
    options = {"heap": "384m", "jvm_args": jvm_args, **others}
    return KafkaCluster(name, brokers=brokers, properties=settings, **options)


@contextmanager
def start_clusters(*names: str) -> Iterator[list[KafkaCluster]]:
    """Several clusters of one broker each, which start side by side."""
    with side_by_side([start_cluster(name) for name in names]) as clusters:
        yield clusters


@contextmanager
def side_by_side(clusters: list[KafkaCluster]) -> Iterator[list[KafkaCluster]]:
    """Start clusters at the same time; stop all of them at the end."""
    with ExitStack() as stack:
        for cluster in clusters:
            stack.callback(cluster.stop)
            cluster.launch()
        for cluster in clusters:
            cluster.wait_ready()
        yield clusters


def unique_name(prefix: str = "topic") -> str:
    """A name for a topic, a group or a transactional id that no other test uses."""
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def create_topic(
    cluster: KafkaCluster,
    name: str | None = None,
    *,
    partitions: int = 1,
    replication_factor: int = 1,
    config: Mapping[str, str] | None = None,
) -> str:
    """Create a topic, wait until every partition has a leader that answers, return its name."""
    topic = name or unique_name()
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    wanted = NewTopic(topic, partitions, replication_factor, config=dict(config or {}))
    admin.create_topics([wanted])[topic].result(_TIMEOUT_SECONDS)
    # Metadata names a leader a moment before it answers as one.
    end_offsets = EndOffsets(cluster.bootstrap_servers)
    wait_for(
        lambda: len(end_offsets.list_end_offsets([topic])) == partitions,
        within=_TIMEOUT_SECONDS,
        describe=f"{partitions} leaders of {topic}",
    )
    return topic


def produce(
    cluster: KafkaCluster,
    topic: str,
    records: Iterable[Record | bytes],
    *,
    partition: int = 0,
    config: Mapping[str, Any] | None = None,
) -> None:
    """Write records to one partition and wait until all are acknowledged."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, **(config or {})})
    failures: list[object] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)

    for each in records:
        record = each if isinstance(each, Record) else Record(each)
        producer.produce(
            topic,
            value=record.value,
            key=record.key,
            headers=list(record.headers) or None,
            partition=partition,
            timestamp=record.timestamp_ms,
            on_delivery=delivered,
        )
        producer.poll(0)
    left = producer.flush(_TIMEOUT_SECONDS)
    assert not failures
    assert left == 0, f"{left} records were not acknowledged"


def end_offset(cluster: KafkaCluster, topic: str, partition: int = 0) -> int:
    """The offset the next record will get."""
    consumer = _consumer(cluster)
    try:
        return _range(consumer, TopicPartition(topic, partition))[1]
    finally:
        consumer.close()


def read_partition(
    cluster: KafkaCluster,
    topic: str,
    partition: int = 0,
    *,
    read_committed: bool = False,
) -> list[Record]:
    """Every record of one partition, from its start to its end as of now."""
    consumer = _consumer(cluster, read_committed)
    try:
        where = TopicPartition(topic, partition)
        start, end = _range(consumer, where)
        consumer.assign([TopicPartition(topic, partition, start)])
        records: list[Record] = []
        # The position, not the last record: what lies before the end may be invisible.
        wait_for(
            lambda: _poll(consumer, records) >= end,
            within=_TIMEOUT_SECONDS,
            describe=lambda: f"{topic}-{partition} read to {end}; read {len(records)} records",
        )
        return records
    finally:
        consumer.close()


def _range(consumer: Consumer, where: TopicPartition) -> tuple[int, int]:
    """Start and end, also of a partition whose leader has just been elected."""
    start, end = patiently(
        lambda: consumer.get_watermark_offsets(where, _TIMEOUT_SECONDS), BEING_CREATED
    )
    return start, end


def patiently(ask: Callable[[], Answer], passing: Container[str]) -> Answer:
    """The answer; an error whose name is among `passing` is one that librdkafka hands on."""
    answers: list[Answer] = []
    refusals: list[KafkaException] = []

    def is_answered() -> bool:
        try:
            answers.append(ask())
        except KafkaException as error:
            if error.args[0].name() not in passing:
                raise
            refusals.append(error)
        return bool(answers)

    wait_for(is_answered, within=_TIMEOUT_SECONDS, describe=lambda: f"an answer: {refusals[-1]}")
    return answers[0]


def _consumer(cluster: KafkaCluster, read_committed: bool = False) -> Consumer:
    settings = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": unique_name("reader"),
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "check.crcs": True,
        "isolation.level": "read_committed" if read_committed else "read_uncommitted",
    }
    return Consumer(settings)


def _poll(consumer: Consumer, records: list[Record]) -> int:
    """Move available records to `records`; the offset reached."""
    reached = -1
    for message in consumer.consume(1000, timeout=0.1):
        reached = message.offset()
        if message.error() is None:
            records.append(_record(message))
            reached += 1
    return reached


def _record(message: Any) -> Record:
    headers = tuple((name, value) for name, value in message.headers() or ())
    return Record(message.value(), message.key(), headers, timestamp_of(message), message.offset())
