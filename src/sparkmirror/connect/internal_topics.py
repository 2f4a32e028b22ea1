"""Creates MirrorMaker 2's internal topics: heartbeats, checkpoints, offset-syncs, offset maps.

Runs on: worker. Connect's own offsets topic has more partitions and stricter checks: `OffsetStore`.
"""

from __future__ import annotations

import logging

from sparkmirror.errors import BrokerError, KafkaError
from sparkmirror.wire.admin import Admin, NewTopic
from sparkmirror.wire.error_codes import error_code

log = logging.getLogger(__name__)

CONFIGS = {"cleanup.policy": "compact"}
# Somebody else may have created the topic: whether it is there shows when it is written.
SURVIVED = ("UNSUPPORTED_VERSION", "TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED")


def ensure_internal_topic(
    admin: Admin, topic: str, replication_factor: int, setting: str = "its replication.factor"
) -> None:
    """Create `topic`, compacted, with one partition; one that exists is taken as it is.

    Raises:
        KafkaError: the cluster refuses; names `setting`, the key that gave `replication_factor`.
    """
    wanted = NewTopic(topic, 1, replication_factor, CONFIGS)
    error = admin.create_topics([wanted])[topic]
    if error is None:
        return
    if error_code(error.code).name in SURVIVED:
        log.info("%s; going on as if it were there", error)
        return
    raise KafkaError(f"{error}; {_advice(error, replication_factor, setting)}") from error


def _advice(error: BrokerError, replication_factor: int, setting: str) -> str:
    if error_code(error.code).name == "INVALID_REPLICATION_FACTOR":
        return f"set {setting} to at most the number of brokers"
    return f"{replication_factor} replicas were asked for, see {setting}"
