"""MirrorConnectorsWithCustomForwardingAdminIntegrationTest: a user's class makes all changes.

The clusters have authorizers; the mirror is a super user without a login.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, NewPartitions

from sparkmirror.demo.client import admin_client, wait_for_all
from sparkmirror.demo.mirror_process import MirrorProcess
from sparkmirror.demo.reading import partition_counts
from tests.clusters import start_cluster, unique_name
from tests.kafka.guarded_clusters import AUTHORIZER, Cluster, rule
from tests.mm2_suite.flows import DEFAULT, OFFSET_SYNCS_COPIES, Flow, make_mirror, write_file
from tests.mm2_suite.groups import consume_all, wait_for_checkpoints
from tests.mm2_suite.heartbeats import wait_for_heartbeat
from tests.mm2_suite.topics import (
    PARTITIONS,
    RECORDS,
    alter_configs,
    configs,
    make_topics,
    wait_copied,
    wait_for_topics,
    write,
)

pytestmark = pytest.mark.kafka

FULL = dict.fromkeys(range(PARTITIONS), RECORDS)
# Beside the mirror's file; it notes what it is asked for, and does it.
MODULE = """
import json
from pathlib import Path

from sparkmirror.mirror.forwarding_admin import ForwardingAdmin

CALLS = Path(__file__).with_name("calls.jsonl")


class Noting(ForwardingAdmin):
    def _note(self, call, things):
        with CALLS.open("a") as lines:
            lines.write(json.dumps([self.cluster.alias, call, things]) + "\\n")

    def create_topics(self, topics):
        self._note("create_topics", [topic.name for topic in topics])
        return super().create_topics(topics)

    def create_partitions(self, counts):
        self._note("create_partitions", dict(counts))
        return super().create_partitions(counts)

    def alter_topic_configs(self, changes):
        self._note("alter_topic_configs", list(changes))
        return super().alter_topic_configs(changes)

    def create_acls(self, rules):
        self._note("create_acls", [rule.resource_name for rule in rules])
        return super().create_acls(rules)
"""


@dataclass(frozen=True, slots=True)
class Forwarding:
    """Flows both ways, whose changes are noted."""

    mirror: MirrorProcess
    forth: Flow
    back: Flow

    @property
    def flows(self) -> list[Flow]:
        return [self.forth, self.back]

    def noted(self, alias: str, call: str) -> list[Any]:
        """What the class was asked to do on a cluster."""
        file = self.mirror.log_path.with_name("calls.jsonl")
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        return [things for where, what, things in rows if (where, what) == (alias, call)]

    def names(self, alias: str, call: str) -> set[str]:
        return {name for things in self.noted(alias, call) for name in things}


@pytest.fixture(scope="module")
def forwarding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forwarding]:
    """Clusters of its own, which have no topics of other mirrors."""
    folder = tmp_path_factory.mktemp("forwarding")
    (folder / "noting_admin.py").write_text(MODULE)
    guarded = {**AUTHORIZER, "super.users": "User:ANONYMOUS"}
    with (
        pytest.MonkeyPatch.context() as environment,
        start_cluster("forwarding-primary", properties=guarded) as primary,
        start_cluster("forwarding-backup", properties=guarded) as backup,
    ):
        environment.setenv("PYTHONPATH", str(folder))
        mirror = make_mirror(folder)
        forth = Flow(mirror, primary, backup, "primary", "backup", DEFAULT, "forth")
        back = Flow(mirror, backup, primary, "backup", "primary", DEFAULT, "back")
        lines = {
            OFFSET_SYNCS_COPIES: "1",
            "forwarding.admin.class": "noting_admin:Noting",
            "emit.heartbeats.enabled": "true",
            "sync.topic.acls.enabled": "true",
            "sync.topic.acls.interval.seconds": "1",
            **forth.settings(),
            **back.settings(),
        }
        write_file(folder, {"primary": primary, "backup": backup}, lines)
        mirror.start()
        try:
            yield Forwarding(mirror, forth, back)
            mirror.stop()
        finally:
            mirror.kill()


def test_replication_is_creating_topics_using_provided_forwarding_admin(
    forwarding: Forwarding,
) -> None:
    group = unique_name("consumer-group")
    for flow in forwarding.flows:
        topics = make_topics(flow)
        write(flow.source, topics)
        consume_all(flow.source, group, topics)
        wait_copied(flow, topics, FULL)
        remotes = {flow.remote(topic) for topic in topics}
        wait_for_checkpoints(flow, group, bool, "of any partition")
        source, target = flow.source_alias, flow.target_alias
        wait_for_heartbeat(flow, flow.target, "heartbeats", (source, target))
        ours = {*remotes, f"{source}.checkpoints.internal", "heartbeats"}
        assert ours <= forwarding.names(target, "create_topics")
        syncs = f"mm2-offset-syncs.{target}.internal"
        assert syncs in forwarding.names(source, "create_topics")


def test_create_partitions_use_provided_forwarding_admin(forwarding: Forwarding) -> None:
    flow = forwarding.forth
    topics = make_topics(flow)
    wait_for_topics(flow, topics)
    admin = admin_client(flow.source.bootstrap_servers)
    wait_for_all(
        admin.create_partitions([NewPartitions(topic, PARTITIONS + 1) for topic in topics])
    )
    remotes = {flow.remote(topic): PARTITIONS + 1 for topic in topics}

    def found() -> dict[str, int]:
        return partition_counts(flow.target.bootstrap_servers, remotes)

    flow.wait_for(lambda: found() == remotes, lambda: f"{remotes}: {found()}")
    grown: dict[str, int] = {}
    for counts in forwarding.noted(flow.target_alias, "create_partitions"):
        grown |= counts
    assert remotes.items() <= grown.items()


def test_sync_topic_config_use_provided_forwarding_admin(forwarding: Forwarding) -> None:
    flow = forwarding.forth
    (topic, _) = topics = make_topics(flow)
    wait_for_topics(flow, topics)
    alter_configs(flow.source, topic, {"cleanup.policy": "compact"})
    remote = flow.remote(topic)
    flow.wait_for(
        lambda: configs(flow.target, remote)["cleanup.policy"] == "compact",
        lambda: f"cleanup.policy of {remote}",
    )
    assert remote in forwarding.names(flow.target_alias, "alter_topic_configs")


def test_sync_topic_acls_use_provided_forwarding_admin(forwarding: Forwarding) -> None:
    for flow in forwarding.flows:
        (topic, _) = topics = make_topics(flow)
        wait_for_topics(flow, topics)
        given = rule(topic, AclOperation.DESCRIBE, principal="User:dummy")
        Cluster(flow.source).create_acls([given])
        remote, target = flow.remote(topic), Cluster(flow.target)
        wanted = {rule(remote, AclOperation.DESCRIBE, principal="User:dummy")}
        _wait_for_acls(flow, target, remote, wanted)
        assert remote in forwarding.names(flow.target_alias, "create_acls")


def _wait_for_acls(flow: Flow, target: Cluster, remote: str, wanted: set[Any]) -> None:
    flow.wait_for(lambda: target.acls(remote) == wanted, lambda: f"{wanted}: {target.acls(remote)}")
