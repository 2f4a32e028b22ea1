"""Three clusters and one process: chains go all the way, circles do not close.

    a <-> b <-> c

Topics, heartbeats and groups hop from cluster to cluster under MirrorMaker 2's default names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass

import pytest

from sparkmirror.demo.compare import compare_topics
from sparkmirror.demo.mirror_process import MirrorProcess
from sparkmirror.embedded import KafkaCluster
from sparkmirror.types import TopicPartition
from tests.clusters import start_clusters, wait_for
from tests.handover.traffic import GroupWatch
from tests.mirror_client.answers import ask_mirror_client
from tests.mm2_suite.flows import (
    DEFAULT,
    OFFSET_SYNCS_COPIES,
    Flow,
    make_mirror,
    unique_group,
    write_file,
)
from tests.mm2_suite.groups import checkpoints_of, consume_all, wait_for_checkpoints
from tests.mm2_suite.heartbeats import wait_for_heartbeat
from tests.mm2_suite.topics import create_topics, ends, topic_names, write

pytestmark = pytest.mark.kafka

FLOWS = ("a->b", "b->a", "b->c", "c->b")
START_SECONDS = 90.0
PARTITIONS = 2
RECORDS = 10
# What each cluster gets of a topic that is written on one of them, by the name it has there.
ARRIVES = {
    "a": {"b": "a.{}", "c": "b.a.{}"},
    "b": {"a": "b.{}", "c": "b.{}"},
    "c": {"b": "c.{}", "a": "b.c.{}"},
}


@dataclass(frozen=True, slots=True)
class Chain:
    """A running mirror; clusters by alias, flows by the names of FLOWS."""

    mirror: MirrorProcess
    clusters: Mapping[str, KafkaCluster]
    flows: Mapping[str, Flow]

    def fill_topics(self, name: str) -> None:
        """The same topic on every cluster, with records of its own."""
        for cluster in self.clusters.values():
            create_topics(cluster, [name], partitions=PARTITIONS)
            write(cluster, [name], range(PARTITIONS), count=RECORDS)

    def wait_arrived(self, name: str) -> None:
        """Wait until all clusters have what the others wrote; compare every record."""
        for origin, remotes in ARRIVES.items():
            for alias, remote in remotes.items():
                self._wait_for_records(alias, remote.format(name))
                written, copied = (self.clusters[at].bootstrap_servers for at in (origin, alias))
                (result,) = compare_topics(written, copied, {name: remote.format(name)})
                assert result.same, result

    def _wait_for_records(self, alias: str, topic: str) -> None:
        wanted = {TopicPartition(topic, at): RECORDS for at in range(PARTITIONS)}

        def found() -> dict[TopicPartition, int]:
            return ends(self.clusters[alias], [topic])

        def is_there() -> bool:
            self.mirror.check_running()
            return found() == wanted

        wait_for(
            is_there,
            within=START_SECONDS,
            describe=lambda: f"{wanted} on {alias}; {found()}; {self.mirror.log_end()}",
        )


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    folder = tmp_path_factory.mktemp("chain")
    mirror = make_mirror(folder)
    with start_clusters("a", "b", "c") as started:
        clusters = dict(zip("abc", started, strict=True))
        chain = Chain(mirror, clusters, {name: _flow(mirror, clusters, name) for name in FLOWS})
        lines = {OFFSET_SYNCS_COPIES: "1", "emit.heartbeats.enabled": "true"}
        for flow in chain.flows.values():
            lines |= flow.settings()
        for name in ("a->b", "b->c"):
            lines[f"{name}.sync.group.offsets.enabled"] = "true"
        write_file(folder, clusters, lines)
        mirror.start()
        try:
            yield chain
            mirror.stop()
        finally:
            mirror.kill()


def _flow(mirror: MirrorProcess, clusters: Mapping[str, KafkaCluster], name: str) -> Flow:
    source, target = name.split("->")
    # No prefix: all topics, as in a file that does not name any.
    return Flow(mirror, clusters[source], clusters[target], source, target, DEFAULT, "")


def test_topics_arrive_wherever_the_chain_leads_and_never_where_they_came_from(
    chain: Chain,
) -> None:
    chain.fill_topics("orders")
    chain.wait_arrived("orders")
    # These hop twice after everything else has arrived: a copy of a copy would be here by now.
    chain.fill_topics("later")
    chain.wait_arrived("later")
    for alias, cluster in chain.clusters.items():
        arriving = [names[alias] for names in ARRIVES.values() if alias in names]
        for name in ("orders", "later"):
            wanted = {name, *(remote.format(name) for remote in arriving)}
            assert {topic for topic in topic_names(cluster) if topic.endswith(name)} == wanted


def test_heartbeats_tell_how_many_hops_away_a_cluster_is(chain: Chain) -> None:
    first, last = chain.clusters["a"], chain.clusters["c"]
    flow = chain.flows["b->c"]
    wait_for_heartbeat(flow, last, "b.heartbeats", ("a", "b"))
    wait_for_heartbeat(flow, last, "b.a.heartbeats", ("b", "a"))
    wait_for_heartbeat(flow, first, "b.c.heartbeats", ("b", "c"))
    for alias, cluster in chain.clusters.items():
        arriving = {
            names[alias].format("heartbeats") for names in ARRIVES.values() if alias in names
        }
        found = {topic for topic in topic_names(cluster) if topic.endswith("heartbeats")}
        assert found == {"heartbeats", *arriving}
    responses = ask_mirror_client(last.bootstrap_servers, ["a", "b"])
    assert set(responses["upstreamClusters"]) == {"a", "b"}
    assert responses["replicationHops"] == {"a": 2, "b": 1}


def test_a_group_goes_on_along_the_chain_only_where_its_offsets_are_synced(chain: Chain) -> None:
    """A flow translates what a group has committed on its own source, and no checkpoints."""
    forth, further, back = (chain.flows[name] for name in ("a->b", "b->c", "b->a"))
    synced, left = unique_group(), unique_group()
    chain.fill_topics("read")
    chain.wait_arrived("read")
    consume_all(chain.clusters["c"], left, ["read"])
    # c->b does not sync groups: there is nothing on b that b->a could translate.
    _wait_for_checkpoints(chain.flows["c->b"], left, "c.read")
    consume_all(chain.clusters["a"], synced, ["read"])
    _wait_for_checkpoints(forth, synced, "a.read")
    _wait_for_checkpoints(further, synced, "b.a.read")
    wanted = {TopicPartition("b.a.read", at): RECORDS for at in range(PARTITIONS)}
    with closing(GroupWatch(further.target, synced, wanted)) as watch:
        further.wait_for(lambda: watch.look() == wanted, lambda: f"{wanted}; {watch.look()}")
    assert checkpoints_of(back, left) == []
    # a.read on b is where the group's own topic has gone, and no checkpoint leads back.
    assert checkpoints_of(back, synced) == []


def _wait_for_checkpoints(flow: Flow, group: str, remote: str) -> None:
    """Until all partitions have one, at their end."""
    wanted = {TopicPartition(remote, at): RECORDS for at in range(PARTITIONS)}
    wait_for_checkpoints(
        flow,
        group,
        lambda found: {tp: each.downstream_offset for tp, each in found.items()} == wanted,
        f"for {wanted}",
    )
