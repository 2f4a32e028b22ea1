"""Makes sure that topics which keep state are compacted, even if a broker auto-created them.

Runs on: worker. A broker with auto.create.topics.enable creates a topic on the first request for
it, with cleanup.policy=delete: its records are deleted after a week. Our topics are corrected. A
topic that may belong to another program is never changed: compaction would delete its records.
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
    """Make sure that `topic` is compacted; return why it is not, "" if it is or is unknown.

    `unseen`: the level of the log line for a topic whose settings cannot be read.
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
    # An unknown end counts as not empty, and so does a log whose records were all deleted.
    return all(not isinstance(each, KafkaError) and each.end == 0 for each in found)
