"""Names as in MirrorMaker 1: every topic keeps its name.

Runs on: worker. Pure. MirrorMaker 2's Identity policy skips every name that begins with `__` or a
dot, and renames those that end in `heartbeats`; MirrorMaker 1 copies both.
"""

from __future__ import annotations

from sparkmirror.mirror.policy import IdentityReplicationPolicy

# Kafka's own internal topics, which MirrorMaker 1 leaves out (exclude.internal.topics).
KAFKA_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


class LegacyReplicationPolicy(IdentityReplicationPolicy):
    """Keeps all names; only Kafka's own topics and those of MirrorMaker 2 are never copied."""

    def is_internal_topic(self, topic: str) -> bool:
        return topic in KAFKA_INTERNAL or self.is_mm2_internal_topic(topic)

    def _looks_like_heartbeats(self, topic: str) -> bool:
        return False
