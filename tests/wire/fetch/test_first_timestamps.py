"""Timestamps of single records, of many partitions at once."""

from __future__ import annotations

from sparkmirror.batches.header import ATTRIBUTES, ATTRIBUTES_AT, LOG_APPEND_TIME, write_crc
from sparkmirror.batches.records import Record, encode
from sparkmirror.types import TopicPartition
from sparkmirror.wire.fetch.first_timestamps import FirstRecord, fetch_first_timestamps
from tests.wire.fake_broker import FETCH, Do, FakeCluster
from tests.wire.rigs import WAIT_SECONDS, client_config

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def write(cluster: FakeCluster, tp: TopicPartition, *times: int, bits: int = 0) -> None:
    batch = encode([Record(at, time, None, b"v") for at, time in enumerate(times)])
    if bits:
        ATTRIBUTES.pack_into(batch, ATTRIBUTES_AT, bits)
        write_crc(batch)
    cluster.log(tp.topic, tp.partition).append(bytes(batch))


def test_each_partition_has_the_timestamp_of_its_batch() -> None:
    with FakeCluster() as cluster:
        cluster.create_topic("t", partitions=2)
        cluster.create_topic("u")
        write(cluster, T0, 100, 200)
        write(cluster, T0, 300, 400)
        write(cluster, T1, 500)
        write(cluster, U0, 600)
        found = fetch_first_timestamps(client_config(cluster), {T0: 2, T1: 0, U0: 0}, WAIT_SECONDS)
    assert found == {T0: FirstRecord(2, 300), T1: FirstRecord(0, 500), U0: FirstRecord(0, 600)}


def test_of_a_topic_with_append_time_it_is_that_time() -> None:
    with FakeCluster() as cluster:
        cluster.create_topic("t")
        write(cluster, T0, 100, 900, bits=LOG_APPEND_TIME)
        found = fetch_first_timestamps(client_config(cluster), {T0: 0}, WAIT_SECONDS)
    assert found == {T0: FirstRecord(0, 900)}


def test_in_the_middle_of_a_batch_it_is_that_of_the_batch() -> None:
    with FakeCluster() as cluster:
        cluster.create_topic("t")
        write(cluster, T0, 100, 200, 300)
        found = fetch_first_timestamps(client_config(cluster), {T0: 1}, WAIT_SECONDS)
    assert found == {T0: FirstRecord(1, 100)}


def test_what_retention_deleted_is_answered_by_the_first_that_is_left() -> None:
    with FakeCluster() as cluster:
        cluster.create_topic("t", partitions=2)
        write(cluster, T0, 100)
        write(cluster, T0, 200)
        cluster.log("t", 0).delete_before(1)
        write(cluster, T1, 300)
        cluster.log("t", 1).delete_before(1)  # nothing is left
        found = fetch_first_timestamps(client_config(cluster), {T0: 0, T1: 0}, WAIT_SECONDS)
    assert found == {T0: FirstRecord(1, 200)}


def test_what_cannot_be_read_in_time_is_left_out() -> None:
    with FakeCluster() as cluster:
        cluster.create_topic("t")
        write(cluster, T0, 100)
        cluster.intercept(FETCH, lambda _: Do(drop=True))
        assert fetch_first_timestamps(client_config(cluster), {T0: 0, U0: 0}, 0.5) == {}


def test_nothing_asked_is_nothing_found() -> None:
    with FakeCluster() as cluster:
        assert fetch_first_timestamps(client_config(cluster), {}, WAIT_SECONDS) == {}
