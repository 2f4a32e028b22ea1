"""Settings and ACLs of topics follow the source, on real clusters with authorizers; no Spark.

The worker is User:ANONYMOUS here: a super user on the target, an ordinary one on the source, where
everything is allowed on topics that have no ACL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka.admin import AclOperation

from sparkmirror.embedded import KafkaCluster
from sparkmirror.spark.link.frames import LinkMessage
from sparkmirror.spark.link.server import LinkServer
from sparkmirror.spark.session import SparkEngine
from sparkmirror.spark.task_runner import TaskRunner
from sparkmirror.types import TopicPartition
from tests.clusters import create_topic, start_cluster, unique_name, wait_for
from tests.connect.fakes import FakeTask
from tests.connect.local_source import LocalSource
from tests.flows import make_flow
from tests.kafka.console_tools import run_tool
from tests.kafka.guarded_clusters import (
    AUTHORIZER,
    DENY,
    PREFIXED,
    WORKER,
    Cluster,
    all_but,
    rule,
)

pytestmark = pytest.mark.kafka

ONE_COPY = {
    "replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "b.offset.storage.replication.factor": "1",
}
COMPACT = {"cleanup.policy": "compact"}
SECONDS = 30.0


class Mirror(LocalSource):
    """A connector whose tasks only note what they are told."""

    def _new_runner(self, name: str, make_message: Callable[[], LinkMessage]) -> TaskRunner:
        del make_message
        return cast("TaskRunner", FakeTask(name))

    def sync_configs(self) -> None:
        self._config_sync.sync(self._remotes)

    def sync_acls(self) -> None:
        self._acl_sync.sync()


def wait_until_equal(read: Callable[[], Any], expected: Any) -> None:
    """Brokers show what the controller has taken a moment later."""
    wait_for(
        lambda: read() == expected,
        within=SECONDS,
        describe=lambda: f"{expected}; there is {read()}",
    )


@pytest.fixture(scope="module")
def source() -> Iterator[Cluster]:
    with start_cluster("guarded-source", properties=AUTHORIZER) as cluster:
        yield Cluster(cluster)


@pytest.fixture(scope="module")
def target() -> Iterator[Cluster]:
    guarded = {**AUTHORIZER, "super.users": "User:ANONYMOUS"}
    with start_cluster("guarded-target", properties=guarded) as cluster:
        yield Cluster(cluster)


def wait_for_remotes(mirror: Mirror) -> None:
    """The broker that is asked may be a moment behind the controller that created them."""
    wait_for(
        lambda: set(mirror._remotes.values()) <= set(mirror._target.list_topics()),
        within=SECONDS,
        describe="remote topics are listed",
    )


@contextmanager
def connected(
    folder: Path, source: KafkaCluster, target: KafkaCluster, settings: dict[str, str]
) -> Iterator[Mirror]:
    """A connector of the flow a->b that has looked at both clusters once."""
    servers = (source.bootstrap_servers.split(","), target.bootstrap_servers.split(","))
    mirror = Mirror(make_flow(folder, {**ONE_COPY, **settings}, *servers))
    mirror.connect()
    try:
        mirror.look()
        wait_for_remotes(mirror)
        yield mirror
    finally:
        mirror.stop()
        assert mirror.join(SECONDS)


def test_settings_of_a_running_flow_follow_the_source(
    source: Cluster, target: Cluster, tmp_path: Path
) -> None:
    first = {"retention.ms": "1111111", "segment.bytes": "2222222", "cleanup.policy": "compact"}
    topic = create_topic(source.kafka, config={**first, "message.timestamp.type": "LogAppendTime"})
    every_second = {f"sync.topic.{what}.interval.seconds": "1" for what in ("configs", "acls")}
    servers = (source.kafka.bootstrap_servers, target.kafka.bootstrap_servers)
    flow = make_flow(
        tmp_path, {"a->b.topics": topic, **ONE_COPY, **every_second}, *([each] for each in servers)
    )
    mirror = Mirror(flow)
    mirror.connect()
    engine = SimpleNamespace(is_local=True)
    mirror.start_with_tasks(cast("SparkEngine", engine), cast("LinkServer", None))
    remote = f"a.{topic}"
    try:
        wait_for_remotes(mirror)
        assert target.own_settings(remote) == first
        target.alter(
            remote,
            ("cleanup.policy", "delete"),
            ("max.message.bytes", "3333333"),
            ("unclean.leader.election.enable", "true"),
            known_by="unclean.leader.election.enable",
        )
        source.alter(topic, ("retention.ms", "4444444"), ("segment.bytes", None))
        wanted = {
            "retention.ms": "4444444",
            "cleanup.policy": "compact",
            # Excluded, so it is the target's own affair.
            "unclean.leader.election.enable": "true",
        }
        wait_until_equal(lambda: target.own_settings(remote), wanted)
        assert mirror.last_error == ""
    finally:
        mirror.stop()
        assert mirror.join(SECONDS)
    internal = {"mm2-offset-syncs.b.internal": source, "mm2-offset-map.a.internal": target}
    for name, cluster in internal.items():
        assert cluster.own_settings(name) == {"cleanup.policy": "compact"}


def test_defaults_of_the_source_are_set_when_asked_for(
    source: Cluster, target: Cluster, tmp_path: Path
) -> None:
    topic = create_topic(source.kafka)
    remote = create_topic(target.kafka, f"a.{topic}", config={"retention.ms": "5555555"})
    settings = {"a->b.topics": topic, "a->b.use.defaults.from": "source"}
    with connected(tmp_path, source.kafka, target.kafka, settings) as mirror:
        mirror.sync_configs()
        wait_until_equal(lambda: target.own_settings(remote).get("retention.ms"), "604800000")
    own = target.own_settings(remote)
    assert own["max.message.bytes"] == "1048588"
    assert "min.insync.replicas" not in own


def test_a_topic_that_may_not_be_described_is_named_and_the_others_are_synced(
    source: Cluster, target: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    open_topic, closed = create_topic(source.kafka), create_topic(source.kafka)
    denial = all_but(AclOperation.DESCRIBE_CONFIGS, closed)
    settings = {"a->b.topics": f"{open_topic}, {closed}"}
    with connected(tmp_path, source.kafka, target.kafka, settings) as mirror:
        for topic in (open_topic, closed):
            source.alter(topic, ("retention.ms", "6666666"))
        source.create_acls(denial)
        for _ in range(2):
            mirror.sync_configs()
        wanted = {"retention.ms": "6666666"}
        wait_until_equal(lambda: target.own_settings(f"a.{open_topic}"), wanted)
        assert target.own_settings(f"a.{closed}") == {}
        (warning,) = caplog.messages
        assert f"describe configs of topic '{closed}' on 'a': TOPIC_AUTHORIZATION" in warning
        assert f"lacks DESCRIBE_CONFIGS on topic '{closed}' of cluster 'a'" in warning
        source.delete_acls(denial)
        mirror.sync_configs()
        wait_until_equal(lambda: target.own_settings(f"a.{closed}"), wanted)


def test_a_topic_is_not_created_before_its_settings_may_be_described(
    source: Cluster, target: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    open_topic, closed = (create_topic(source.kafka, config=COMPACT) for _ in range(2))
    denial = all_but(AclOperation.DESCRIBE_CONFIGS, closed)
    source.create_acls(denial)
    settings = {"a->b.topics": f"{open_topic}, {closed}"}
    with connected(tmp_path, source.kafka, target.kafka, settings) as mirror:
        mirror.look()
        assert mirror._assignment == [[TopicPartition(open_topic, 0)]]
        assert f"a.{closed}" not in mirror._target.list_topics()
        (warning,) = caplog.messages
        assert f"describe configs of topic '{closed}' on 'a': TOPIC_AUTHORIZATION" in warning
        assert "; its remote topic is not created, so it is not copied; the other" in warning
        source.delete_acls(denial)
        mirror.look()
        wait_for_remotes(mirror)
        for topic in (open_topic, closed):
            assert target.own_settings(f"a.{topic}") == COMPACT


def test_a_topic_that_is_hidden_is_named_and_comes_back(
    source: Cluster, target: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    open_topic, hidden = sorted(create_topic(source.kafka) for _ in range(2))
    both = [TopicPartition(open_topic, 0), TopicPartition(hidden, 0)]
    settings = {"a->b.topics": f"{open_topic}, {hidden}"}
    with connected(tmp_path, source.kafka, target.kafka, settings) as mirror:
        denial = all_but(AclOperation.DESCRIBE, hidden)
        source.create_acls(denial)
        for _ in range(2):
            mirror.look()
        assert mirror._assignment == [both[:1]]
        (warning,) = caplog.messages
        assert warning.startswith(
            f"[a->b] find topic '{hidden}' on 'a': TOPIC_AUTHORIZATION_FAILED"
        )
        assert f"lacks READ on topic '{hidden}' of cluster 'a'; it is not copied; the" in warning
        source.delete_acls(denial)
        mirror.look()
        assert sorted(mirror._assignment[0]) == both


def test_a_remote_topic_that_may_not_grow_is_named_and_what_has_a_place_is_copied(
    source: Cluster, target: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # The other way round: copied is to the cluster where the worker is an ordinary user.
    narrow, other = (create_topic(target.kafka, partitions=3) for _ in range(2))
    remote = create_topic(source.kafka, f"a.{narrow}")
    denial = all_but(AclOperation.ALTER, remote)
    source.create_acls(denial)
    settings = {"a->b.topics": f"{narrow}, {other}"}
    with connected(tmp_path, target.kafka, source.kafka, settings) as mirror:
        mirror.look()
        everything = {TopicPartition(topic, at) for topic in (narrow, other) for at in range(3)}
        without_place = {TopicPartition(narrow, at) for at in (1, 2)}
        assert set(mirror._assignment[0]) == everything - without_place
        (warning,) = caplog.messages
        assert warning.startswith(f"[a->b] grow topic '{remote}' on 'b': TOPIC_AUTHORIZATION")
        assert "; new partitions are not copied; existing ones are; to allow" in warning
        source.delete_acls(denial)
        mirror.look()
        assert set(mirror._assignment[0]) == everything


def test_acls_follow_the_rules_of_mirror_maker_2(
    source: Cluster, target: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topic, other = unique_name(), unique_name("other")
    bob = "User:bob"
    rules = [
        rule(topic, AclOperation.ALL),
        rule(topic, AclOperation.DESCRIBE_CONFIGS),
        rule(topic, AclOperation.WRITE, principal=bob),
        rule(topic, AclOperation.WRITE, DENY, "User:eve"),
        rule(topic, AclOperation.ALL, DENY, "User:eve"),
        rule(topic, AclOperation.READ, principal=bob, pattern=PREFIXED),
        rule(other, AclOperation.READ),
        # Without the second one the first would shut the worker out of all topics.
        rule("*", AclOperation.READ, principal=bob),
        rule("*", AclOperation.ALL, principal=WORKER),
    ]
    remote = f"a.{topic}"
    copied = {
        rule(remote, AclOperation.READ),
        rule(remote, AclOperation.DESCRIBE_CONFIGS),
        rule(remote, AclOperation.WRITE, DENY, "User:eve"),
        rule(remote, AclOperation.ALL, DENY, "User:eve"),
        rule("a.*", AclOperation.READ, principal=bob),
        rule("a.*", AclOperation.READ, principal="User:ANONYMOUS"),
    }
    names = (remote, "a.*", topic, f"a.{other}", other, "*")
    with connected(
        tmp_path, source.kafka, target.kafka, {"a->b.topics": f"{topic}, [*]"}
    ) as mirror:
        source.create_acls(rules)
        try:
            mirror.sync_acls()
            wait_until_equal(lambda: target.acls(*names), copied)
            warnings = [text for text in caplog.messages if "for all topics of 'a'" in text]
            assert sorted(warnings) == sorted(
                f"[a->b] the ACL of '{who}' for all topics of 'a' becomes one for 'a.*' on 'b', "
                "which no topic is called; as in MirrorMaker 2"
                for who in (bob, "User:ANONYMOUS")
            )
        finally:
            source.delete_acls(rules)
        caplog.clear()
        mirror.sync_acls()
        assert target.acls(*names) == copied
        assert caplog.messages == []
    listed = run_tool(target.kafka, "kafka-acls", "--list", "--topic", remote)
    entries = [line.strip(" ()\t") for line in listed if "principal=" in line]
    assert sorted(entries) == [
        "principal=User:ann, host=*, operation=DESCRIBE_CONFIGS, permissionType=ALLOW",
        "principal=User:ann, host=*, operation=READ, permissionType=ALLOW",
        "principal=User:eve, host=*, operation=ALL, permissionType=DENY",
        "principal=User:eve, host=*, operation=WRITE, permissionType=DENY",
    ]


def test_a_source_without_authorizer_is_survived(
    source_cluster: KafkaCluster,
    target: Cluster,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "sparkmirror.connect.source.acl_sync")
    topic = create_topic(source_cluster, config=COMPACT)
    remote = create_topic(target.kafka, f"a.{topic}")
    with connected(tmp_path, source_cluster, target.kafka, {"a->b.topics": topic}) as mirror:
        for _ in range(2):
            mirror.sync_acls()
        mirror.sync_configs()
        wait_until_equal(lambda: target.own_settings(remote), COMPACT)
    (text,) = caplog.messages
    assert text.startswith("[a->b] no authorizer on 'a'")
    assert target.acls(topic, remote) == set()


def test_a_target_without_authorizer_is_told(
    source: Cluster,
    target_cluster: KafkaCluster,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic, other = unique_name(), create_topic(source.kafka, config=COMPACT)
    remote = create_topic(target_cluster, f"a.{other}")
    source.create_acls([rule(topic, AclOperation.READ)])
    settings = {"a->b.topics": f"{topic}, {other}"}
    with connected(tmp_path, source.kafka, target_cluster, settings) as mirror:
        for _ in range(2):
            mirror.sync_acls()
        mirror.sync_configs()
        own = Cluster(target_cluster).own_settings
        wait_until_equal(lambda: own(remote), COMPACT)
    # Of a topic that is not there, and has an ACL for somebody else, we may not even know that.
    hidden, text = caplog.messages
    assert hidden.startswith(f"[a->b] find topic '{topic}' on 'a': TOPIC_AUTHORIZATION_FAILED")
    assert text.startswith("[a->b] 'b' has no authorizer: 1 ACLs are not copied")
