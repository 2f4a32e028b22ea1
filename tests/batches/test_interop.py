"""What forwarding makes, taken by brokers and read by librdkafka with CRC checks.

Shows that others take over-long varints, merged batches and all framings: librdkafka's decoder on
its own mock broker, and a real broker, which decompresses and checks every record it appends.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, TopicPartition

from sparkmirror.batches.codecs import Codec
from sparkmirror.batches.forward import ForwardRules, Plan, plan, stamp
from sparkmirror.batches.records import Record
from sparkmirror.embedded import KafkaCluster
from tests import clusters
from tests.batches.logs import Step, build, mirrored

PRODUCE, PRODUCE_VERSION = 0, 7


class RawProducer:
    """A socket that sends ready batches to partition 0 of a topic."""

    def __init__(self, host: str, port: int, topic: str) -> None:
        self._topic = struct.pack(">h", len(topic)) + topic.encode()
        self._socket = socket.create_connection((host, port), timeout=30)

    def produce(self, batch: bytes) -> int:
        """Send one batch and wait for its error code."""
        body = struct.pack(">hhihhhii", PRODUCE, PRODUCE_VERSION, 1, -1, -1, -1, 9000, 1)
        body += self._topic + struct.pack(">iii", 1, 0, len(batch)) + batch
        self._socket.sendall(struct.pack(">i", len(body)) + body)
        response = self._read(int.from_bytes(self._read(4), "big"))
        (code,) = struct.unpack_from(">h", response, 4 + 4 + len(self._topic) + 4 + 4)
        return int(code)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += self._socket.recv(size - len(data))
        return data

    def produce_all(self, planned: Plan) -> None:
        """Send all batches; each must be taken."""
        codes = []
        for batch in planned.batches:
            stamp(batch.view, -1, -1, -1)
            codes.append(self.produce(bytes(batch.view)))
        assert set(codes) == {0}

    def close(self) -> None:
        self._socket.close()


@contextmanager
def mock_cluster() -> Iterator[Consumer]:
    """Start a consumer that carries a mock broker inside."""
    consumer = Consumer(
        {
            "test.mock.num.brokers": 1,
            "allow.auto.create.topics": True,
            "group.id": "reader",
            "check.crcs": True,
            "log_level": 0,
        }
    )
    yield consumer
    consumer.close()


def consume(consumer: Consumer, topic: str, count: int) -> list[Record]:
    """Read the first records of partition 0."""
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Record] = []
    while len(found) < count:
        messages = consumer.consume(count - len(found), timeout=10)
        assert messages, f"{len(found)} of {count} records came"
        for message in messages:
            assert message.error() is None
            headers = tuple((name, value) for name, value in message.headers() or ())
            time = message.timestamp()[1]
            found.append(Record(message.offset(), time, message.key(), message.value(), headers))
    return found


def planned_batches() -> Plan:
    """Plan a log of all codecs that goes through every slow path."""
    shape = []
    for codec in Codec:
        shape += [
            Step("data", 40, codec=codec, compacted=True),
            Step("data", 300, codec=codec, compacted=True),
            Step("data", 30, codec=codec, append_time=True),
            Step("data", 20, codec=codec, delete_horizon=True),
            Step("transactional", 20, codec=codec),
            Step("commit"),
            Step("data", 3, repeat=10, codec=codec),
            Step("data", 30, codec=codec, value_bytes=9000),
        ]
    log = build([*shape, Step("data", repeat=100)], 1)
    return plan(memoryview(log.data), 7, (), ForwardRules(max_batch_bytes=50_000), {})


def without_missing_time(records: list[Record]) -> list[Record]:
    """librdkafka shows a timestamp of -1 as 0."""
    return [
        record._replace(offset=offset, timestamp=max(record.timestamp, 0))
        for offset, record in enumerate(records)
    ]


def test_librdkafka_reads_all_that_is_made() -> None:
    planned = planned_batches()
    with mock_cluster() as consumer:
        broker = next(iter(consumer.list_topics("mirrored", timeout=10).brokers.values()))
        producer = RawProducer(broker.host, broker.port, "mirrored")
        producer.produce_all(planned)
        producer.close()
        expected = mirrored(planned)
        found = consume(consumer, "mirrored", len(expected))
    assert without_missing_time(found) == without_missing_time(expected)


@pytest.mark.kafka
def test_real_broker_takes_all_that_is_made(target_cluster: KafkaCluster) -> None:
    topic = clusters.create_topic(target_cluster)
    host, _, port = target_cluster.bootstrap_servers.rpartition(":")
    planned = planned_batches()
    producer = RawProducer(host, int(port), topic)
    producer.produce_all(planned)
    producer.close()
    found = [
        Record(each.offset, each.timestamp_ms, each.key, each.value, each.headers)
        for each in clusters.read_partition(target_cluster, topic)
    ]
    assert [record.offset for record in found] == list(range(len(found)))
    assert without_missing_time(found) == without_missing_time(mirrored(planned))
