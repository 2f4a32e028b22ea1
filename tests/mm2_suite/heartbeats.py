"""Whose heartbeats a topic holds."""

from __future__ import annotations

from sparkmirror.demo.reading import partition_counts, read_topic
from sparkmirror.embedded import KafkaCluster
from sparkmirror.mirror.records import Heartbeat
from tests.mm2_suite.flows import Flow

Aliases = tuple[str, str]


def wait_for_heartbeat(flow: Flow, cluster: KafkaCluster, topic: str, wanted: Aliases) -> None:
    """Wait for a heartbeat between two aliases; `flow` tells of the mirror that writes it."""
    flow.wait_for(
        lambda: wanted in aliases_of_heartbeats(cluster, topic),
        lambda: f"{wanted} in '{topic}'; it has {aliases_of_heartbeats(cluster, topic)}",
    )


def aliases_of_heartbeats(cluster: KafkaCluster, topic: str) -> set[Aliases]:
    """Source and target of each; empty when there is no such topic."""
    servers = cluster.bootstrap_servers
    if topic not in partition_counts(servers, [topic]):
        return set()
    records = read_topic(servers, topic, read_committed=False)[0]
    contents = [record.content for record in records]
    found = [Heartbeat.decode(each.key or b"", each.value or b"") for each in contents]
    return {(each.source_alias, each.target_alias) for each in found}
