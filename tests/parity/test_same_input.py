"""The same input through genuine MirrorMaker 2 and through sparkmirror: the same output.

How a flow is handed over from one to the other is in tests/handover.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, ResourceType

from sparkmirror.demo.compare import TopicResult, compare_topics
from sparkmirror.demo.reading import read_topic, read_topics
from sparkmirror.embedded import KafkaCluster
from tests.parity.worlds import ROWS, TRANSACTIONS, Worlds, two_worlds

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

REMOTES = [f"src.{row.name}" for row in ROWS] + [f"raw.{TRANSACTIONS}"]
OFFSETS_PARTITIONS = 25


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    with two_worlds(tmp_path_factory.mktemp("parity")) as found:
        yield found


def topic_configs(cluster: KafkaCluster, topic: str) -> dict[str, str | None]:
    """What was set on the topic itself."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = admin.describe_configs([resource])[resource].result(30)
    set_here = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {name: entry.value for name, entry in entries.items() if entry.source == set_here}


def stored_positions(
    cluster: KafkaCluster, alias: str
) -> dict[tuple[int, bytes | None], bytes | None]:
    """The last value of every key of the offsets topic, by partition and key bytes."""
    topic = f"mm2-offsets.{alias}.internal"
    partitions = read_topic(cluster.bootstrap_servers, topic, read_committed=True)
    assert len(partitions) == OFFSETS_PARTITIONS
    return {
        (at, record.content.key): record.content.value
        for at, records in partitions.items()
        for record in records
    }


@pytest.fixture(scope="module")
def results(worlds: Worlds) -> dict[str, TopicResult]:
    """Both targets read to their ends and compared, by remote topic."""
    names = {remote: remote for remote in REMOTES}
    theirs, ours = worlds.theirs.bootstrap_servers, worlds.ours.bootstrap_servers
    compared = compare_topics(theirs, ours, names, source_read_committed=False)
    return {result.topic: result for result in compared}


@pytest.mark.parametrize("remote", REMOTES)
def test_consumers_read_the_same_records_from_both(
    worlds: Worlds, results: dict[str, TopicResult], remote: str
) -> None:
    assert results[remote].same, results[remote]
    alias, _, topic = remote.partition(".")
    written = sum(count for tp, count in worlds.counts[alias].items() if tp.topic == topic)
    assert results[remote].records == written


def test_aborted_records_are_copied_only_by_the_flow_that_reads_them(worlds: Worlds) -> None:
    names = [f"src.{TRANSACTIONS}", f"raw.{TRANSACTIONS}"]
    found = read_topics(worlds.ours.bootstrap_servers, names, read_committed=False)
    aborted = {
        name: sum(
            b"aborted" in (record.content.value or b"")
            for records in found[name].values()
            for record in records
        )
        for name in names
    }
    assert aborted[names[0]] == 0
    assert aborted[names[1]] > 0


@pytest.mark.parametrize("remote", REMOTES)
def test_remote_topics_have_the_same_configs(worlds: Worlds, remote: str) -> None:
    assert topic_configs(worlds.ours, remote) == topic_configs(worlds.theirs, remote)


@pytest.mark.parametrize("alias", ["src", "raw"])
def test_positions_are_the_same_bytes_in_the_same_partitions(worlds: Worlds, alias: str) -> None:
    ours = stored_positions(worlds.ours, alias)
    assert ours == stored_positions(worlds.theirs, alias)
    assert len(ours) == sum(count > 0 for count in worlds.counts[alias].values())
