"""What an administrator does to topics, and sees of them."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient, ConfigResource

from sparkmirror.embedded import KafkaCluster
from tests.clusters import wait_for
from tests.kafka.records import end_of

_SECONDS = 30.0


def delete_topic(cluster: KafkaCluster, topic: str) -> None:
    """Delete it and wait until brokers do not know it any more."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.delete_topics([topic])[topic].result(_SECONDS)
    wait_for(lambda: end_of(cluster, topic) < 0, within=_SECONDS, describe=f"{topic} is gone")


def topic_shape(cluster: KafkaCluster, topic: str) -> tuple[int, str]:
    """Partitions, and how it is cleaned up."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    configs = admin.describe_configs([resource])[resource].result(_SECONDS)
    partitions = admin.list_topics(topic, timeout=_SECONDS).topics[topic].partitions
    return len(partitions), configs["cleanup.policy"].value
