"""B on real brokers: which topics a file of few lines leads to on the target.

Its logins and trust stores are tested in tests/kafka/test_tls and test_logins.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.demo.reading import partition_counts
from sparkmirror.embedded import KafkaCluster
from tests.clusters import create_topic, produce, unique_name, wait_for
from tests.kafka.mirror_process import OFFSETS_PARTITIONS, Mirror
from tests.mm2_suite.topics import own_configs, topic_names

pytestmark = pytest.mark.kafka

SECONDS = 60.0


def test_b_has_the_internal_topics_of_mirrormaker_2(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    orders = unique_name("orders")
    create_topic(source_cluster, orders)
    produce(source_cluster, orders, [b"first"])
    with Mirror(tmp_path, source_cluster, target_cluster, orders) as mirror:
        partitions = {"configs": 1, "offsets": OFFSETS_PARTITIONS, "status": 5}
        names = {f"mm2-{kind}.{mirror.alias}.internal": at for kind, at in partitions.items()}
        wanted = {*names, f"{mirror.alias}.{orders}"}
        wait_for(
            lambda: wanted <= topic_names(target_cluster),
            within=SECONDS,
            describe=lambda: f"{wanted - topic_names(target_cluster)}\n{mirror.log_end()}",
        )
        assert partition_counts(target_cluster.bootstrap_servers, list(names)) == names
        policies = {own_configs(target_cluster, name)["cleanup.policy"] for name in names}
        assert policies == {"compact"}
