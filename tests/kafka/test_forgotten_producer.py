"""Brokers forget producers; what that means for the order, and when it happens."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import cast

import pytest
from kafka import KafkaAdminClient
from kafka import TopicPartition as KafkaPartition

from sparkmirror.batches.records import Record, encode
from sparkmirror.embedded import KafkaCluster
from sparkmirror.types import TopicPartition
from sparkmirror.wire.produce import producer as producer_module
from sparkmirror.wire.produce.record_accumulator import ProducerBatch
from sparkmirror.wire.produce.sequences import QUIET_SECONDS
from tests.clusters import create_topic, start_cluster, wait_for
from tests.kafka.records import values
from tests.wire.fake_broker import FakeCluster
from tests.wire.rigs import ProducerRig, Values

pytestmark = pytest.mark.kafka

MOST_BYTES = 20_000
CHECK_OFTEN = {"producer.id.expiration.check.interval.ms": "100"}
EXPIRES_SOON = {**CHECK_OFTEN, "producer.id.expiration.ms": "1000"}
OLD_MS = 1_700_000_000_000  # November 2023


@contextmanager
def rig_for(cluster: KafkaCluster) -> Iterator[ProducerRig]:
    class Servers:
        bootstrap_servers = tuple(cluster.bootstrap_servers.split(","))

    with ProducerRig(cast("FakeCluster", Servers())) as rig:
        yield rig


def batch(rig: ProducerRig, timestamp_ms: int, *values: bytes) -> ProducerBatch[Values]:
    records = [Record(at, timestamp_ms, None, value) for at, value in enumerate(values)]
    return rig.batch(*values, view=encode(records))


def wait_until_forgotten(cluster: KafkaCluster, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    where = KafkaPartition(topic, 0)
    try:
        wait_for(
            lambda: not admin.describe_producers([where])[where].active_producers,
            within=30.0,
            describe=lambda: f"no producer of {topic}: {admin.describe_producers([where])}",
        )
    finally:
        admin.close()


@pytest.mark.parametrize(
    ("settings", "is_old"),
    [
        pytest.param(EXPIRES_SOON, False, id="expired"),
        # producer.id.expiration.ms is a day here: the age is that of the records.
        pytest.param(CHECK_OFTEN, True, id="old records"),
    ],
)
def test_the_order_is_kept_when_the_broker_has_forgotten_a_quiet_producer(
    settings: Mapping[str, str], is_old: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start_cluster("forgetful", properties=settings) as cluster:
        kept = write_after_a_pause(cluster, is_old)
        assert kept == sorted(kept)
        assert len(kept) == len(set(kept)) == 8
        # What the rule is for: without it the same broker stores them in another order.
        monkeypatch.setattr(producer_module, "QUIET_SECONDS", 1e9)
        other = write_after_a_pause(cluster, is_old)
        assert other != sorted(other)


def write_after_a_pause(cluster: KafkaCluster, is_old: bool) -> list[bytes]:
    """Several batches at once, the first of them too large; what an independent client reads."""
    topic = create_topic(cluster, config={"max.message.bytes": str(MOST_BYTES)})
    tp = TopicPartition(topic, 0)
    timestamp_ms = OLD_MS if is_old else int(time.time() * 1000)
    with rig_for(cluster) as rig:
        rig.producer.append(tp, [batch(rig, timestamp_ms, b"0")])
        rig.finish()
        acked = rig.loop.clock()
        wait_until_forgotten(cluster, topic)
        rig.run_until(lambda: rig.loop.clock() > acked + QUIET_SECONDS, lambda: "a pause")
        large = [b"%d" % at + bytes(15_000) for at in (1, 2)]
        small = [batch(rig, timestamp_ms, b"%d" % at) for at in range(3, 8)]
        rig.producer.append(tp, [batch(rig, timestamp_ms, *large), *small])
        rig.producer.send_ready()
        rig.finish()
    return [value[:1] for value in values(cluster, topic)]
