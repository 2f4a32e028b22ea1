"""Whether the topics that MirrorMaker 1 wrote have room for all source partitions.

Runs on: worker, before anything starts. MirrorMaker 1 assigns records to the target's partitions by
key; sparkmirror keeps their partition numbers. If both sides have equally many partitions, the
result is the same, for keys that a Java producer wrote.
"""

from __future__ import annotations

import logging

from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.errors import KafkaError, MirrorError
from sparkmirror.mirror.filters import make_topic_filter
from sparkmirror.mirror.policy import flow_policy
from sparkmirror.mirror.topics import should_replicate_topic
from sparkmirror.wire.admin.admin import Admin

log = logging.getLogger(__name__)

FEWER = (
    "topic '{topic}' has {source} partitions on '{source_alias}' and only {target} on "
    "'{target_alias}': records keep their partition number, so {missing} partitions have no "
    "counterpart; let consumers catch up, then add them with kafka-topics.sh --alter --topic "
    "{topic} --partitions {source} on '{target_alias}' (from then on keys are in other partitions "
    "than before), or leave the topic out of --include"
)
MORE = (
    "topic '%s' has %d partitions on '%s' and %d on '%s': records keep their partition number, so "
    "a key may now be in a different partition than with MirrorMaker 1"
)


def fewer_partitions(config: SourceConfig, source: Admin, target: Admin) -> list[MirrorError]:
    """An error for each topic with fewer partitions on the target; logs a warning for more."""
    policy, topic_filter = flow_policy(config), make_topic_filter(config)
    found = target.list_topics()
    errors: list[MirrorError] = []
    for topic, view in sorted(source.list_topics().items()):
        is_wanted = should_replicate_topic(
            topic,
            topic_filter,
            policy,
            heartbeats_replication_enabled=False,
            source_alias=config.source_alias,
            target_alias=config.target_alias,
        )
        if not is_wanted or topic not in found:
            continue
        count = found[topic].partitions
        if count < view.partitions:
            errors.append(KafkaError(_fewer(config, topic, view.partitions, count)))
        elif count > view.partitions:
            aliases = config.source_alias, config.target_alias
            log.warning(MORE, topic, view.partitions, aliases[0], count, aliases[1])
    return errors


def _fewer(config: SourceConfig, topic: str, source: int, target: int) -> str:
    return FEWER.format(
        topic=topic,
        source=source,
        target=target,
        missing=source - target,
        source_alias=config.source_alias,
        target_alias=config.target_alias,
    )
