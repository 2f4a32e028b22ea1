"""A target of one broker that creates topics for those who write, and a flow with MM2's defaults.

Two replicas, the default of replication.factor, cannot be had there. Genuine MirrorMaker 2 copies
all the same, because its producer has the broker create the topic.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.connect.source.accepted_settings import AcceptedSettings
from sparkmirror.connect.source.remote_topics import RemoteTopics
from sparkmirror.embedded import KafkaCluster
from sparkmirror.mirror.filters import make_config_property_filter
from sparkmirror.mirror.policy import flow_policy
from sparkmirror.wire.admin.admin import Admin
from tests.clusters import create_topic, start_cluster, wait_for
from tests.flows import make_flow
from tests.mm2_suite.topics import own_configs

pytestmark = pytest.mark.kafka


def test_the_broker_creates_the_remote_topic_and_it_gets_its_settings(
    source_cluster: KafkaCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = {"cleanup.policy": "compact", "retention.ms": "-1"}
    topic = create_topic(source_cluster, partitions=3, config=config)
    properties = {"auto.create.topics.enable": "true"}
    with start_cluster("auto", properties=properties) as target:
        servers = [source_cluster.bootstrap_servers], [target.bootstrap_servers]
        flow = make_flow(tmp_path, {}, *servers).source
        admins = [Admin(each, 30_000) for each in (flow.source_client, flow.target_client)]
        try:
            filters = make_config_property_filter(flow)
            accepted = AcceptedSettings(flow.flow, flow.target_alias)
            source, remote = admins
            remotes = RemoteTopics(
                flow, flow_policy(flow), filters, accepted, source=source, target=remote
            )
            wait_for(
                lambda: remotes.bring_up({topic: 3}).get(f"a.{topic}") == 3,
                within=30.0,
                describe="the remote topic with all partitions",
            )
            # A KRaft broker acknowledges settings before it shows them.
            wait_for(
                lambda: own_configs(target, f"a.{topic}") == config,
                within=30.0,
                describe=lambda: f"settings {config}; now {own_configs(target, f'a.{topic}')}",
            )
        finally:
            for admin in admins:
                admin.close()
    assert f"'a.{topic}' was created by the brokers of 'b'" in caplog.text
