"""Processes with files of their own: plain, without offset syncs, elsewhere, from the latest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from sparkmirror.demo.mirror_process import MirrorProcess
from sparkmirror.demo.reading import read_topics
from sparkmirror.types import TopicPartition
from tests.mm2_suite.flows import OFFSET_SYNCS_COPIES, Flow, make_mirror, unique_group, write_file
from tests.mm2_suite.groups import (
    assert_monotonic_checkpoints,
    consume_all,
    wait_for_checkpoints,
)
from tests.mm2_suite.heartbeats import wait_for_heartbeat
from tests.mm2_suite.topics import (
    PARTITIONS,
    RECORDS,
    create_topics,
    ends,
    make_topics,
    topic_names,
    wait_copied,
    wait_for_topics,
    write,
)
from tests.mm2_suite.worlds import POLICIES, RERUNS, SSL, Clusters

pytestmark = pytest.mark.kafka

FULL = dict.fromkeys(range(PARTITIONS), RECORDS)
EACH_RERUN = pytest.mark.parametrize(
    "rerun", [*POLICIES, pytest.param(SSL, marks=pytest.mark.long)]
)
NO_HEARTBEATS = {"heartbeats_replication_enabled": "false"}


@dataclass(frozen=True, slots=True)
class Node:
    """One process; `latest` and `on_target` by rerun. `old` was there before the start."""

    single: Flow
    on_target: Mapping[str, Flow]
    latest: Mapping[str, Flow]
    old: Mapping[str, list[str]]


@pytest.fixture(scope="module")
def node(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """The flow A->B as in a file of few lines, and beside it flows with other settings."""
    folder = tmp_path_factory.mktemp("node")
    mirror = make_mirror(folder)
    single = _flow(mirror, clusters, "A", "B", "default")
    on_target = {name: _flow(mirror, clusters, f"T-{name}", "B-T", name) for name in RERUNS}
    latest = {name: _flow(mirror, clusters, f"L-{name}", "B", name) for name in RERUNS}
    lines = {
        OFFSET_SYNCS_COPIES: "1",
        **single.settings(),
        "A->B.emit.heartbeats.enabled": "true",
        "B->A.enabled": "false",
        "B->A.emit.heartbeats.enabled": "false",
    }
    for flow in on_target.values():
        lines |= flow.settings(**NO_HEARTBEATS)
        start = f"{flow.source_alias}->{flow.target_alias}"
        lines[f"{start}.offset-syncs.topic.location"] = "target"
    for flow in latest.values():
        lines |= flow.settings(**NO_HEARTBEATS)
        lines[f"{flow.source_alias}.consumer.auto.offset.reset"] = "latest"
    old = {name: make_topics(flow) for name, flow in latest.items()}
    for name, flow in latest.items():
        write(flow.source, old[name])
        create_topics(flow.source, [_sentinel(flow)], partitions=1)
    flows = [single, *on_target.values(), *latest.values()]
    with _running(mirror, clusters, flows, lines):
        yield Node(single, on_target, latest, old)


@pytest.fixture(scope="module")
def without_syncs(
    clusters: Clusters, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Flow]]:
    """Flows to the alias D of a file that says once, for all, not to write offset syncs."""
    folder = tmp_path_factory.mktemp("without-syncs")
    mirror = make_mirror(folder)
    flows = {name: _flow(mirror, clusters, f"C-{name}", "D", name) for name in RERUNS}
    lines = {"emit.offset-syncs.enabled": "false"}
    for flow in flows.values():
        lines |= flow.settings(**NO_HEARTBEATS, emit_heartbeats_enabled="true")
    with _running(mirror, clusters, list(flows.values()), lines):
        yield flows


def _flow(mirror: MirrorProcess, clusters: Clusters, source: str, target: str, rerun: str) -> Flow:
    """Aliases that end so lead to the target over TLS."""
    alias = f"{target}-{SSL}" if rerun == SSL else target
    prefix, policy = f"dedicated-{source}", RERUNS[rerun]
    return Flow(mirror, clusters.primary, clusters.backup, source, alias, policy, prefix)


@contextmanager
def _running(
    mirror: MirrorProcess, clusters: Clusters, flows: list[Flow], lines: Mapping[str, str]
) -> Iterator[None]:
    sources = {flow.source_alias: clusters.primary for flow in flows}
    targets = {flow.target_alias: clusters.backup for flow in flows}
    secure = [clusters.ssl_to_backup(alias) for alias in targets if alias.endswith(f"-{SSL}")]
    for more in secure:
        lines = {**lines, **more}
    write_file(mirror.log_path.parent, sources | targets, lines)
    mirror.start()
    try:
        yield
        mirror.stop()
    finally:
        mirror.kill()


def test_single_node_cluster(node: Node) -> None:
    flow = node.single
    topics = make_topics(flow)
    wait_for_topics(flow, topics)
    write(flow.source, topics)
    wait_copied(flow, topics, FULL)
    wait_for_heartbeat(flow, flow.target, "heartbeats", (flow.source_alias, flow.target_alias))


def test_cluster_with_emit_offset_disabled(without_syncs: Mapping[str, Flow]) -> None:
    flow = without_syncs["default"]
    topics = make_topics(flow)
    write(flow.source, topics)
    wait_copied(flow, topics, FULL)
    wait_for_heartbeat(flow, flow.target, "heartbeats", (flow.source_alias, flow.target_alias))
    assert "mm2-offset-syncs.D.internal" not in topic_names(flow.source)


@EACH_RERUN
def test_replication_without_offset_sync_will_not_create_offset_syncs_topic(
    without_syncs: Mapping[str, Flow], rerun: str
) -> None:
    flow = without_syncs[rerun]
    topics = make_topics(flow)
    write(flow.source, topics)
    wait_copied(flow, topics, FULL)
    everywhere = topic_names(flow.source) | topic_names(flow.target)
    syncs = {
        f"mm2-offset-syncs.{alias}.internal" for alias in (flow.source_alias, flow.target_alias)
    }
    assert not everywhere & syncs


@EACH_RERUN
def test_offset_syncs_topics_on_target(node: Node, rerun: str) -> None:
    flow, group = node.on_target[rerun], unique_group()
    topics = make_topics(flow)
    write(flow.source, topics)
    consume_all(flow.source, group, topics)
    wait_copied(flow, topics, FULL)
    wanted = {TopicPartition(flow.remote(topic), at) for topic in topics for at in FULL}
    wait_for_checkpoints(flow, group, lambda found: wanted == found.keys(), f"for {wanted}")
    assert_monotonic_checkpoints(flow, group)

    syncs = f"mm2-offset-syncs.{flow.source_alias}.internal"
    assert syncs in topic_names(flow.target)
    assert sum(ends(flow.target, [syncs]).values()) >= len(wanted)
    of_target = f"mm2-offset-syncs.{flow.target_alias}.internal"
    assert not {syncs, of_target} & topic_names(flow.source)


@EACH_RERUN
def test_replicate_from_latest(node: Node, rerun: str) -> None:
    flow, topics = node.latest[rerun], node.old[rerun]
    _wait_for_first_poll(flow)
    write(flow.source, topics)
    remotes = [flow.remote(topic) for topic in topics]
    wanted = {TopicPartition(remote, at): RECORDS for remote in remotes for at in FULL}

    def found() -> dict[TopicPartition, int]:
        return ends(flow.target, remotes)

    flow.wait_for(lambda: sum(found().values()) >= sum(wanted.values()), lambda: f"{found()}")

    assert found() == wanted
    sources = read_topics(flow.source.bootstrap_servers, topics, read_committed=True)
    copies = read_topics(flow.target.bootstrap_servers, remotes, read_committed=True)
    for topic in topics:
        for at, records in sources[topic].items():
            newest = [record.content for record in records[-RECORDS:]]
            assert [record.content for record in copies[flow.remote(topic)][at]] == newest


def _sentinel(flow: Flow) -> str:
    return f"{flow.prefix}-sentinel"


def _wait_for_first_poll(flow: Flow) -> None:
    """Write to another topic until one record is copied: from then on new records are."""
    sentinel = _sentinel(flow)

    def is_copied() -> bool:
        write(flow.source, [sentinel], [0], count=1)
        return sum(ends(flow.target, [flow.remote(sentinel)]).values()) > 0

    flow.wait_for(is_copied, lambda: f"a record in {flow.remote(sentinel)}")
