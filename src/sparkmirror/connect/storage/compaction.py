"""Topics that state is kept in must be compacted: sees to it where a broker created them otherwise.

Runs on: worker. A broker with auto.create.topics.enable creates a topic for whoever asks first,
with cleanup.policy=delete: what is in it is gone after a week. Ours are put right. A topic that may
be somebody else's is never touched: compaction would delete its records.
"""

from __future__ import annotations

import logging

from sparkmirror.errors import BrokerError, KafkaError, describe_error
from sparkmirror.mirror.config_sync import AlterOperation
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.admin import Admin, ConfigChange

log = logging.getLogger(__name__)

CLEANUP = "cleanup.policy"
COMPACT = "compact"
COMMAND = "kafka-configs.sh --alter --entity-type topics --add-config cleanup.policy=compact"
RANGE_SECONDS = 10.0


def repair_cleanup(admin: Admin, topic: str, unseen: int = logging.DEBUG) -> str:
    """See that `topic` is compacted; why it is not, empty when it is or cannot be looked at.

    `unseen` is the level of the log line about one that may not be looked at.
    """
    settings = admin.describe_topic_configs([topic])[topic]
    if isinstance(settings, BrokerError):  # too new to be known everywhere, or not ours to see
        log.log(
            unseen, "%s", describe_error(settings, f"make sure that it has {CLEANUP}={COMPACT}")
        )
        return ""
    policy = next((each.value for each in settings if each.name == CLEANUP), COMPACT)
    if policy == COMPACT:
        return ""
    named = f"'{topic}' on '{admin.alias}' has {CLEANUP}={policy}"
    what = f"{named}, so what it holds is deleted in time"
    if not is_reserved(topic) and not _is_empty(admin, topic):
        command = f"{COMMAND} --entity-name {topic}"
        return f"{what}; it may be somebody else's, so it is left as it is: {command}"
    change = ConfigChange(CLEANUP, AlterOperation.SET, COMPACT)
    error = admin.alter_topic_configs({topic: [change]})[topic]
    if error is not None:
        return f"{what}; {error}"
    log.warning("%s: set to %s", what, COMPACT)
    return ""


def is_reserved(topic: str) -> bool:
    """Whether the name is one of MirrorMaker 2's own: mm2-*.internal, *.checkpoints.internal."""
    is_ours = topic.startswith("mm2-") or "checkpoints" in topic
    return is_ours and topic.endswith("internal")


def _is_empty(admin: Admin, topic: str) -> bool:
    view = admin.view_topic(topic)
    if view is None:
        return False
    partitions = [TopicPartition(topic, at) for at in range(view.partitions)]
    found = admin.log_ranges(partitions, RANGE_SECONDS).values()
    # Of what is not known nothing is assumed. A log that was emptied had records, too.
    return all(not isinstance(each, KafkaError) and each.end == 0 for each in found)
