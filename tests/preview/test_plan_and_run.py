"""`plan` writes nothing, and `run` does exactly what `plan` said: on clusters with authorizers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
)

from sparkmirror.cli import main as cli
from sparkmirror.embedded import KafkaCluster
from sparkmirror.types import TopicPartition
from tests.clusters import Record, create_topic, produce, side_by_side, start_cluster, wait_for
from tests.group_offsets import commit_offsets, committed_offsets
from tests.kafka.guarded_clusters import AUTHORIZER
from tests.kafka.mirror_process import Mirror
from tests.preview.cluster_state import ClusterState, TopicState, state_of

pytestmark = pytest.mark.kafka

SECONDS = 90.0
GUARDED = {
    **AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    # As brokers do by default: who merely asks for a topic in the wrong way creates it.
    "auto.create.topics.enable": "true",
}
ON = {
    "SOURCE->target.emit.heartbeats.enabled": "true",
    "target->SOURCE.emit.heartbeats.enabled": "true",
    "SOURCE->target.emit.checkpoints.enabled": "true",
    "SOURCE->target.topics.exclude": "private",
    "sync.topic.acls.enabled": "true",
    "sync.topic.configs.enabled": "true",
    "heartbeats.replication.enabled": "true",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "sync.topic.configs.interval.seconds": "1",
    "sync.topic.acls.interval.seconds": "1",
}


@pytest.fixture(scope="module")
def clusters() -> Iterator[list[KafkaCluster]]:
    guarded = [start_cluster(f"plan-{name}", properties=GUARDED) for name in ("a", "b")]
    with side_by_side(guarded) as started:
        yield started


@pytest.fixture(scope="module")
def mirror(
    clusters: list[KafkaCluster], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mirror]:
    """Not started; the source has topics, ACLs and a group, the target some remote topics."""
    folder = tmp_path_factory.mktemp("plan")
    source, target = clusters
    own = Mirror(folder, source, target, "orders, profiles, small, private", ON)
    create_topic(source, "orders", partitions=3, config={"retention.ms": "7654321"})
    create_topic(source, "profiles", config={"cleanup.policy": "compact"})
    create_topic(source, "small", partitions=4, config={"retention.ms": "1000000"})
    create_topic(source, "private")
    create_topic(source, "unwanted")
    create_topic(
        target,
        own.remote("small"),
        partitions=2,
        config={"retention.ms": "2000000", "max.message.bytes": "5000"},
    )
    allow(source, "orders", AclOperation.READ)
    allow(source, "profiles", AclOperation.ALL)
    allow(source, "private", AclOperation.READ)
    allow(source, "orders", AclOperation.WRITE)
    produce(source, "orders", [Record(b"%d" % n) for n in range(10)])
    commit_offsets(source, "billing", {TopicPartition("orders", 0): 5})
    commit_offsets(source, "elsewhere", {TopicPartition("unwanted", 0): 0})
    with own.ending():
        yield own


def allow(cluster: KafkaCluster, topic: str, operation: AclOperation) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    binding = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        "User:app",
        "*",
        operation,
        AclPermissionType.ALLOW,
    )
    admin.create_acls([binding])[binding].result(SECONDS)
    wait_for(
        lambda: any(topic in each for each in state_of(cluster).acls),
        within=SECONDS,
        describe="the ACL is there",
    )


def planned(
    mirror: Mirror, capsys: pytest.CaptureFixture[str], expected_code: int
) -> dict[str, Any]:
    """The plan as JSON; nothing changes on either cluster while it is made."""
    before = [state_of(mirror.source), state_of(mirror.target)]
    with pytest.raises(SystemExit) as ended:
        cli.main(["plan", str(mirror.file), "--json", "--detailed-exitcode"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert ended.value.code == expected_code, found
    assert [state_of(mirror.source), state_of(mirror.target)] == before
    assert found["problems"] == []
    return found


def expected(before: ClusterState, plan: Mapping[str, Any], alias: str) -> ClusterState:
    """The cluster's topics and ACLs once the plan was carried out."""
    topics = dict(before.named)
    for row in plan["changes"]:
        if row["cluster"] != alias:
            continue
        match row["kind"], row["action"]:
            case "topic", "create":
                assert row["name"] not in topics
                topics[row["name"]] = TopicState(
                    row["partitions"], row["replication_factor"], row["configs"]
                )
            case "topic", "grow":
                was = topics[row["name"]]
                assert was.partitions == row["before"]
                topics[row["name"]] = TopicState(row["after"], was.replicas, was.configs)
            case "config", _:
                was = topics[row["name"]]
                configs = {**was.configs, row["key"]: row["after"]}
                left = {key: value for key, value in configs.items() if value is not None}
                topics[row["name"]] = TopicState(was.partitions, was.replicas, left)
    return ClusterState(topics, {}, {}, before.acls, {}, {})


def run_until_done(
    mirror: Mirror, plan: Mapping[str, Any], befores: list[ClusterState]
) -> list[ClusterState]:
    """Start the mirror; the states once they are as planned."""
    clusters = [(mirror.source, mirror.alias), (mirror.target, "target")]
    wanted = [
        expected(before, plan, alias).named
        for before, (_, alias) in zip(befores, clusters, strict=True)
    ]
    acls = [row for row in plan["changes"] if row["kind"] == "acl"]
    mirror.start()

    def states() -> list[ClusterState]:
        return [state_of(cluster) for cluster, _ in clusters]

    def is_done() -> bool:
        found = states()
        are_topics_there = [each.named for each in found] == wanted
        return are_topics_there and len(found[1].acls - befores[1].acls) == len(acls)

    wait_for(is_done, within=SECONDS, describe=lambda: f"{wanted}; there is {states()}")
    return states()


def test_run_does_what_plan_said_and_then_there_is_nothing_to_do(
    mirror: Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    befores = [state_of(mirror.source), state_of(mirror.target)]
    plan = planned(mirror, capsys, expected_code=2)
    rows = {
        (row["kind"], row["action"], row["cluster"], row["name"]): row for row in plan["changes"]
    }
    alias, small = mirror.alias, mirror.remote("small")
    orders = rows["topic", "create", "target", mirror.remote("orders")]
    assert (orders["partitions"], orders["configs"]) == (3, {"retention.ms": "7654321"})
    assert ("topic", "create", "target", mirror.remote("private")) not in rows
    # Those of the pair that writes heartbeats only, and what the first flow copies of them.
    assert ("topic", "create", alias, "heartbeats") in rows
    assert ("topic", "create", "target", mirror.remote("heartbeats")) in rows
    assert rows["topic", "grow", "target", small]["after"] == 4
    configs = {row["key"]: row for row in plan["changes"] if row["kind"] == "config"}
    assert configs["retention.ms"]["before"] == "2000000"
    assert configs["retention.ms"]["after"] == "1000000"
    assert configs["max.message.bytes"]["action"] == "reset"
    acls = {(row["name"], row["operation"]) for row in plan["changes"] if row["kind"] == "acl"}
    assert acls == {(mirror.remote("orders"), "READ"), (mirror.remote("profiles"), "READ")}
    (groups,) = plan["groups"]
    assert groups["followed"] == ["billing"]
    assert groups["written_later"] == ["billing"]

    afters = run_until_done(mirror, plan, befores)
    for after, before in zip(afters, befores, strict=True):
        assert {name for name in before.ids if after.ids.get(name) != before.ids[name]} == set()
    wait_for_group(mirror, 5)
    mirror.stop()
    again = planned(mirror, capsys, expected_code=0)
    assert again["changes"] == []


def wait_for_group(mirror: Mirror, offset: int) -> None:
    where = TopicPartition(mirror.remote("orders"), 0)
    wait_for(
        lambda: committed_offsets(mirror.target, "billing").get(where) == offset,
        within=SECONDS,
        describe=lambda: f"{offset}: {committed_offsets(mirror.target, 'billing')}",
    )


def test_later_changes_are_planned_too(mirror: Mirror, capsys: pytest.CaptureFixture[str]) -> None:
    source = mirror.source
    admin = AdminClient({"bootstrap.servers": source.bootstrap_servers})
    admin.create_partitions([NewPartitions("orders", 5)])["orders"].result(SECONDS)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "orders")
    entry = ConfigEntry("retention.ms", "42000", incremental_operation=AlterConfigOpType.SET)
    resource.add_incremental_config(entry)
    admin.incremental_alter_configs([resource])[resource].result(SECONDS)
    commit_offsets(source, "billing", {TopicPartition("orders", 0): 8})
    befores = [state_of(source), state_of(mirror.target)]
    plan = planned(mirror, capsys, expected_code=2)
    found = [(row["kind"], row["action"], row["name"]) for row in plan["changes"]]
    orders = mirror.remote("orders")
    assert found == [
        ("topic", "grow", orders),
        ("config", "set", orders),
        ("group", "write", "billing"),
    ]
    write = {"topic": orders, "partition": 0, "before": 5, "after": 8}
    assert plan["changes"][-1]["offsets"] == [write]
    run_until_done(mirror, plan, befores)
    wait_for_group(mirror, 8)
    mirror.stop()
    assert planned(mirror, capsys, expected_code=0)["changes"] == []


def test_topics_that_brokers_create_by_themselves_are_planned_too(
    mirror: Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    create_topic(mirror.source, "wide", partitions=3, config={"retention.ms": "77000"})
    # More than there are brokers: the brokers create it as they like (auto.create.topics.enable).
    topics = "orders, profiles, small, private, wide"
    mirror.configure({"SOURCE->target.topics": topics, "replication.factor": "2"})
    befores = [state_of(mirror.source), state_of(mirror.target)]
    plan = planned(mirror, capsys, expected_code=2)
    (row,) = plan["changes"]
    assert (row["name"], row["partitions"]) == (mirror.remote("wide"), 3)
    assert (row["replication_factor"], row["configs"]) == (1, {"retention.ms": "77000"})
    assert any("was created by the brokers of 'target'" in text for text in plan["warnings"])
    run_until_done(mirror, plan, befores)
    mirror.stop()
    assert planned(mirror, capsys, expected_code=0)["changes"] == []
    mirror.configure({"replication.factor": "1"})


def test_the_plan_is_printed_like_a_diff(
    mirror: Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    create_topic(mirror.source, "more", config={"retention.ms": "99000"})
    topics = {"SOURCE->target.topics": "orders, profiles, small, private, wide, more"}
    mirror.configure(topics)
    with pytest.raises(SystemExit) as ended:
        cli.main(["plan", str(mirror.file)])
    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert f"+ topic {mirror.remote('more')}: 1 partition, replication factor 1" in out
    assert "      retention.ms = 99000" in out
    assert "1 topic to create; nothing was written" in out


def test_explain_sees_what_the_clusters_have(
    mirror: Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {
        ("topic", "orders"): (0, "has 5 partitions"),
        ("topic", "order"): (1, "has no 'order'; did you mean 'orders'"),
        ("topic", "private"): (1, "topics.exclude matches it"),
        ("group", "billing"): (0, "it has offsets in orders"),
        ("group", "elsewhere"): (1, "it has offsets in unwanted"),
        ("group", "nobody"): (1, "lists no consumer group"),
    }
    for (kind, name), (code, text) in words.items():
        with pytest.raises(SystemExit) as ended:
            cli.main(["explain", kind, name, str(mirror.file)])
        out = capsys.readouterr().out
        assert text in out
        assert ended.value.code == code, out


def test_an_unreachable_cluster_is_an_error(
    mirror: Mirror, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = mirror.file.read_text().replace(mirror.target.bootstrap_servers, "127.0.0.1:1")
    file = tmp_path / "mm2.properties"
    file.write_text(text)
    with pytest.raises(SystemExit) as ended:
        cli.main(["plan", str(file), "--detailed-exitcode"])
    assert ended.value.code == 1
    assert "cluster 'target' cannot be reached" in capsys.readouterr().err
