"""What cannot work with one broker: told before the start, and in the status after it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.mm2 import load_mm2
from sparkmirror.connect.heartbeat.mirror_heartbeat_task import MirrorHeartbeatTask
from sparkmirror.connect.storage.topic_admin import ensure_internal_topic
from sparkmirror.embedded import KafkaCluster
from sparkmirror.tools.check.checked_file import load_checked
from sparkmirror.tools.check.cluster_check import check_file
from sparkmirror.wire.admin.admin import Admin
from tests.clusters import create_topic, produce, unique_name, wait_for
from tests.mm2_suite.topics import own_configs

pytestmark = pytest.mark.kafka

HEARTBEATS = "heartbeats.topic.replication.factor"
ONES = (
    "replication.factor",
    "offset-syncs.topic.replication.factor",
    "checkpoints.topic.replication.factor",
    "offset.storage.replication.factor",
)


def write_file(folder: Path, cluster: KafkaCluster, **settings: str) -> Path:
    lines = {
        "clusters": "a, b",
        "a.bootstrap.servers": cluster.bootstrap_servers,
        "b.bootstrap.servers": cluster.bootstrap_servers,
        "a->b.enabled": "true",
        "b->a.emit.heartbeats.enabled": "false",
        **dict.fromkeys(ONES, "1"),
        **settings,
    }
    path = folder / "mm2.properties"
    path.write_text("\n".join(f"{key} = {value}" for key, value in lines.items()))
    return path


def test_more_replicas_than_brokers(source_cluster: KafkaCluster, tmp_path: Path) -> None:
    assert len(source_cluster.brokers) == 1
    topic = f"{unique_name('offsets')}.internal"
    settings = {
        "checkpoints.topic.replication.factor": "2",
        "offset.storage.replication.factor": "3",
        "offset.storage.topic": topic,
    }
    path = write_file(tmp_path, source_cluster, **settings)
    report = check_file(load_checked(path), str(path))
    assert (
        f"topic '{topic}' cannot be created with 3 replicas: cluster 'b' has 1 broker; "
        "set offset.storage.replication.factor to at most 1"
    ) in report.problems
    assert any("set checkpoints.topic.replication.factor" in text for text in report.problems)
    assert len(report.problems) == 2
    assert not report.is_ok


def test_heartbeats_have_as_many_replicas_as_there_are_brokers(
    target_cluster: KafkaCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_file(tmp_path, target_cluster)
    pair = load_mm2(path).heartbeats[0]
    connector = MirrorHeartbeatTask(pair)
    connector.topic = unique_name("heartbeats")  # other tests leave theirs behind
    connector.connect()
    connector.start()
    try:
        wait_for(lambda: connector.records, within=30, describe=lambda: connector.last_error)
    finally:
        connector.stop()
        connector.join(5.0)
    assert f"'{connector.topic}' on 'b' has 1 instead of 3 replicas" in caplog.text
    assert own_configs(target_cluster, connector.topic)["cleanup.policy"] == "compact"


def test_check_lets_pass_what_runs_with_fewer_replicas(
    source_cluster: KafkaCluster, tmp_path: Path
) -> None:
    # b->a only has heartbeats, whose topic for positions cannot be created with three replicas.
    aliases = {"a": unique_name("a"), "b": unique_name("b")}
    path = tmp_path / "unset.properties"
    lines = {
        "clusters": ",".join(aliases.values()),
        **{
            f"{alias}.bootstrap.servers": source_cluster.bootstrap_servers
            for alias in aliases.values()
        },
        f"{aliases['a']}->{aliases['b']}.enabled": "true",
        f"{aliases['b']}.offset.storage.replication.factor": "1",
    }
    path.write_text("\n".join(f"{key} = {value}" for key, value in lines.items()))
    report = check_file(load_checked(path), str(path))
    assert report.problems == ()
    assert report.is_ok
    offsets = f"mm2-offsets.{aliases['b']}.internal"
    assert any(f"'{offsets}' cannot be created with 3" in text for text in report.warnings)


def test_a_worker_does_not_start_without_its_offsets_topic_also_for_heartbeats(
    source_cluster: KafkaCluster, tmp_path: Path
) -> None:
    servers = source_cluster.bootstrap_servers
    worker = tmp_path / "worker.properties"
    lines = {"bootstrap.servers": servers, "group.id": unique_name("g")}
    lines |= {f"{kind}.storage.topic": unique_name(kind) for kind in ("offset", "config", "status")}
    worker.write_text("\n".join(f"{key}={value}" for key, value in lines.items()))
    heartbeats = tmp_path / "hbc.json"
    settings = {
        "name": "hbc",
        "connector.class": "MirrorHeartbeatConnector",
        "source.cluster.alias": "a",
        "source.cluster.bootstrap.servers": servers,
        "target.cluster.bootstrap.servers": servers,
    }
    heartbeats.write_text(json.dumps(settings))
    report = check_file(load_checked(heartbeats, worker), str(heartbeats))
    (problem,) = report.problems
    assert "set offset.storage.replication.factor to at most 1" in problem


def test_a_number_of_replicas_that_the_user_chose_is_kept_to(
    target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    path = write_file(tmp_path, target_cluster, **{HEARTBEATS: "2"})
    connector = MirrorHeartbeatTask(load_mm2(path).heartbeats[0])
    connector.topic = unique_name("heartbeats")
    connector.connect()
    connector.start()
    try:
        wait_for(lambda: connector.refused, within=30)
    finally:
        connector.stop()
        connector.join(5.0)
    assert f"set {HEARTBEATS} to at most the number of brokers" in connector.refused


def test_topics_of_ours_that_a_broker_created_are_compacted(target_cluster: KafkaCluster) -> None:
    # As auto.create.topics.enable creates them: with the broker's defaults.
    ours = create_topic(target_cluster, f"mm2-offset-map.{unique_name('a')}.internal")
    theirs = create_topic(target_cluster, unique_name("heartbeats"))
    produce(target_cluster, ours, [b"1"])
    produce(target_cluster, theirs, [b"1"])
    client = ClientConfig("b", tuple(target_cluster.bootstrap_servers.split(",")))
    admin = Admin(client, 30_000)
    try:
        for topic in (ours, theirs):
            ensure_internal_topic(admin, topic, 1)
    finally:
        admin.close()
    assert own_configs(target_cluster, ours)["cleanup.policy"] == "compact"
    assert "cleanup.policy" not in own_configs(target_cluster, theirs)


def test_check_of_a_connector_looks_at_its_partner(tmp_path: Path) -> None:
    mirror = "org.apache.kafka.connect.mirror"
    common = {
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "source.cluster.bootstrap.servers": "127.0.0.1:1",
        "target.cluster.bootstrap.servers": "127.0.0.1:1",
    }
    source = {"name": "msc", "connector.class": f"{mirror}.MirrorSourceConnector"} | common
    checkpoint = {"name": "cpc", "connector.class": f"{mirror}.MirrorCheckpointConnector"} | common
    policy = {"replication.policy.class": f"{mirror}.IdentityReplicationPolicy"}
    (tmp_path / "msc.json").write_text(json.dumps(source | policy))
    (tmp_path / "cpc.json").write_text(json.dumps(checkpoint))
    (tmp_path / "other.json").write_text("{")
    for name, other in (("cpc", "msc"), ("msc", "cpc")):
        (problem,) = load_checked(tmp_path / f"{name}.json").problems
        assert f"for connector {other} of the same flow" in problem
    (tmp_path / "cpc.json").write_text(json.dumps(checkpoint | policy))
    assert load_checked(tmp_path / "cpc.json").problems == ()
