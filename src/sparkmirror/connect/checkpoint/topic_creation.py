"""Whether a flow has checkpoints, and the creation of their topic by connector and task.

Runs on: worker.
"""

from __future__ import annotations

from sparkmirror.config.keys.connector_keys import CHECKPOINT_KEYS
from sparkmirror.config.mirror_configs import CheckpointConfig
from sparkmirror.connect.storage.topic_admin import ensure_internal_topic
from sparkmirror.mirror.permissions import CREATE, Feature, ResourceKind, consequence_without
from sparkmirror.mirror.policy import flow_policy
from sparkmirror.wire.admin.admin import Admin

REPLICAS_KEY = CHECKPOINT_KEYS["checkpoints.topic.replication.factor"].name


def create_checkpoints_topic(target: Admin, config: CheckpointConfig, *, is_missing: bool) -> None:
    """Create the topic, or check the existing one; `is_missing`: brokers reported it missing.

    Raises:
        KafkaError: why it cannot be created.
    """
    ensure_internal_topic(
        target,
        flow_policy(config).checkpoints_topic(config.source_alias),
        config.checkpoints_topic_replication_factor,
        REPLICAS_KEY,
        consequence_without(Feature.CHECKPOINTS, ResourceKind.CHECKPOINTS, CREATE),
        is_chosen=REPLICAS_KEY in config.settings,
        is_missing=is_missing,
    )
