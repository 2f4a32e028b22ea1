"""The topics of the demo have what they promise, and reading them shows their content."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from sparkmirror.demo.compare import compare_topics
from sparkmirror.demo.reading import EndOffsets, read_topic
from sparkmirror.demo.seed import LATE, TOPICS, SeedRow, create_topics, seed_topics
from sparkmirror.embedded import KafkaCluster
from sparkmirror.errors import KafkaError
from sparkmirror.types import TopicPartition
from tests.clusters import unique_name, wait_for

ROWS = {row.name: row for row in (*TOPICS, LATE)}


def renamed(name: str) -> SeedRow:
    """The row of that name for a topic that no other test uses."""
    return dataclasses.replace(ROWS[name], name=unique_name(name))


def test_names_are_unique() -> None:
    assert len(ROWS) == len(TOPICS) + 1


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_has_a_topic(codec: str) -> None:
    assert f"codec-{codec}" in ROWS


@pytest.mark.kafka
def test_orders_have_every_kind_of_key_value_and_header(source_cluster: KafkaCluster) -> None:
    row = renamed("orders")
    (seeded,) = seed_topics(source_cluster.bootstrap_servers, [row])
    found = read_topic(source_cluster.bootstrap_servers, row.name, read_committed=True)
    contents = [record.content for record in found[0]]
    assert {None, b""} <= {content.key for content in contents}
    assert {None, b""} <= {content.value for content in contents}
    assert () in {content.headers for content in contents}
    assert (("null", None), ("empty", b"")) in {content.headers for content in contents}
    assert any(a.timestamp_ms > b.timestamp_ms for a, b in itertools.pairwise(contents))
    assert seeded.records == {number: len(records) for number, records in found.items()}
    assert seeded.records[5] == 0


@pytest.mark.kafka
def test_payments_have_aborted_records_between_committed_ones(
    source_cluster: KafkaCluster,
) -> None:
    row = renamed("payments")
    bootstrap = source_cluster.bootstrap_servers
    (seeded,) = seed_topics(bootstrap, [row])
    everything = read_topic(bootstrap, row.name, read_committed=False)
    words = [(record.content.value or b"").split()[0] for record in everything[0]]
    assert words.count(b"aborted") == words.count(b"committed") == seeded.records[0]
    assert words.index(b"aborted") < len(words) - 1 - words[::-1].index(b"committed")
    # A mirror that copies what was aborted is found out by the same comparison.
    (honest,) = compare_topics(
        bootstrap, bootstrap, {row.name: row.name}, target_read_committed=True
    )
    (careless,) = compare_topics(bootstrap, bootstrap, {row.name: row.name})
    assert honest.same
    assert (careless.same, careless.extra) == (False, words.count(b"aborted") * row.partitions)


@pytest.mark.kafka
def test_end_offsets_of_absent_topics_are_left_out(source_cluster: KafkaCluster) -> None:
    row = renamed("empty")
    create_topics(source_cluster.bootstrap_servers, [row])
    end_offsets = EndOffsets(source_cluster.bootstrap_servers)
    assert end_offsets.list_end_offsets([unique_name()]) == {}
    wanted = {TopicPartition(row.name, number): 0 for number in range(row.partitions)}
    wait_for(
        lambda: end_offsets.list_end_offsets([row.name, unique_name()]) == wanted,
        within=30,
        describe=f"{wanted}",
    )


@pytest.mark.kafka
def test_reading_an_absent_topic_is_an_error(source_cluster: KafkaCluster) -> None:
    with pytest.raises(KafkaError, match="no such topic"):
        read_topic(source_cluster.bootstrap_servers, unique_name(), read_committed=True)


@pytest.mark.kafka
def test_absent_copy_is_missing_altogether(source_cluster: KafkaCluster) -> None:
    row = renamed("late")
    (seeded,) = seed_topics(source_cluster.bootstrap_servers, [row])
    bootstrap = source_cluster.bootstrap_servers
    (result,) = compare_topics(bootstrap, bootstrap, {row.name: unique_name()})
    assert (result.same, result.missing) == (False, seeded.total_records)
