"""Tables: which of MirrorMaker 1's options and keys are fixed, rejected or ignored.

All others become settings of the flow, under MirrorMaker 2's names.
"""

from __future__ import annotations

SOURCE, TARGET = "source", "target"
CONSUMER_GROUP = "group.id"
EXCLUDE_INTERNAL = "exclude.internal.topics"
AUTO_COMMIT = "enable.auto.commit"
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state")


def flow_key(name: str) -> str:
    """A key of the only flow, in an mm2 file."""
    return f"{SOURCE}->{TARGET}.{name}"


# Only records are copied: MirrorMaker 1 has no other features of MirrorMaker 2.
FIXED = {
    "clusters": f"{SOURCE}, {TARGET}",
    flow_key("enabled"): "true",
    "emit.heartbeats.enabled": "false",
    flow_key("heartbeats.replication.enabled"): "false",
    flow_key("emit.checkpoints.enabled"): "false",
    flow_key("emit.offset-syncs.enabled"): "false",
    flow_key("sync.topic.configs.enabled"): "false",
    flow_key("sync.topic.acls.enabled"): "false",
    flow_key("topics.exclude"): "",
    # The target's default, as for a topic that its brokers create for MirrorMaker 1's producer.
    flow_key("replication.factor"): "-1",
}
# For MirrorMaker 2's own topics, which it always creates.
MM2_FIXED = {
    f"{TARGET}.{kind}.storage.replication.factor": "-1" for kind in ("offset", "config", "status")
}

# (reason, what to do instead)
Refusal = tuple[str, str]
_HANDLER: Refusal = (
    "runs Java code on every record, but sparkmirror forwards whole batches",
    (
        "change the records in an application on the target; a handler that only leaves out topics "
        "is an --include, one that renames them is a replication policy of sparkmirror run "
        "(docs/filters.md)"
    ),
)
_LISTENER: Refusal = (
    (
        "is called when MirrorMaker 1's consumers rebalance, but sparkmirror has no consumers in a "
        "group"
    ),
    "remove it; sparkmirror commits the offsets of records that the target has confirmed",
)
REFUSED_OPTIONS: dict[str, Refusal] = {
    "--message.handler": _HANDLER,
    "--message.handler.args": _HANDLER,
    "--consumer.rebalance.listener": _LISTENER,
    "--rebalance.listener.args": _LISTENER,
}

_ZOOKEEPER: Refusal = (
    (
        "belongs to the old consumer, whose offsets are in ZooKeeper: sparkmirror cannot "
        "read where it stopped"
    ),
    (
        "let the group commit to Kafka first (offsets.storage=kafka and dual.commit.enabled, or "
        "set them with kafka-consumer-groups.sh --reset-offsets), then name the brokers with "
        "bootstrap.servers and remove this line"
    ),
)
_OLD_PRODUCER: Refusal = (
    "belongs to the old producer of Kafka 0.8",
    "name the target's brokers with bootstrap.servers and remove this line",
)
REFUSED_OF_CONSUMER: dict[str, Refusal] = {
    "zookeeper.connect": _ZOOKEEPER,
    "offsets.storage": _ZOOKEEPER,
    "dual.commit.enabled": _ZOOKEEPER,
}
REFUSED_OF_PRODUCER: dict[str, Refusal] = {
    "metadata.broker.list": _OLD_PRODUCER,
    "request.required.acks": _OLD_PRODUCER,
}

IGNORED_OF_CONSUMER = {
    "client.id": "MirrorMaker 1 replaces it with group.id, and so does sparkmirror",
}
IGNORED_OF_PRODUCER = {
    "producer.type": "every batch is confirmed by the target before its offset is committed",
}
