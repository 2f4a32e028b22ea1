"""What an administrator does to topics, and sees of them."""

from __future__ import annotations

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource

from sparkmirror.demo.reading import BEING_CREATED
from sparkmirror.embedded import KafkaCluster
from tests.clusters import wait_for

_SECONDS = 30.0


def delete_topic(cluster: KafkaCluster, topic: str) -> None:
    """Delete it and wait until brokers do not know it any more."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    known = _topic_id(admin, topic)
    admin.delete_topics([topic])[topic].result(_SECONDS)
    # By its id: somebody may create it again at once.
    wait_for(lambda: _topic_id(admin, topic) != known, within=_SECONDS, describe=f"{topic} is gone")


def _topic_id(admin: AdminClient, topic: str) -> str:
    try:
        found = admin.describe_topics(TopicCollection([topic]))[topic].result(_SECONDS)
    except KafkaException as error:
        if error.args[0].name() not in BEING_CREATED:
            raise
        return ""
    return str(found.topic_id)


def topic_shape(cluster: KafkaCluster, topic: str) -> tuple[int, str]:
    """Partitions, and how it is cleaned up."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    configs = admin.describe_configs([resource])[resource].result(_SECONDS)
    partitions = admin.list_topics(topic, timeout=_SECONDS).topics[topic].partitions
    return len(partitions), configs["cleanup.policy"].value
