"""The topics on the target that checkpoints point to: their end offsets, and which are missing.

Runs on: worker, on the checkpoint task's thread. Copied records are in a topic of the target. If no
topic has the name that the checkpoint connector's policy gives it, the source connector has another
policy, and checkpoints would point to nothing. A worker that runs both connectors also compares
their settings, because an earlier flow may have left topics of these names.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from sparkmirror.config.mirror_configs import CheckpointConfig
from sparkmirror.connect.naming import some_names
from sparkmirror.connect.start_checks import POLICY_KEY
from sparkmirror.errors import BrokerError, KafkaError
from sparkmirror.mirror.checkpoints import CheckpointRules, NoCheckpoint, TargetEnds
from sparkmirror.types import FlowName, TopicPartition
from sparkmirror.wire.protocol.error_codes import UNKNOWN_TOPIC_OR_PARTITION

log = logging.getLogger(__name__)


# The reasons for a missing checkpoint that are worth a line in the log.
REPORTED = (
    NoCheckpoint.TOO_OLD,
    NoCheckpoint.UNKNOWN,
    NoCheckpoint.BEYOND_END,
    NoCheckpoint.NO_TOPIC,
)


class LogEnds(Protocol):
    """The part of `GroupAdmin` that is used here."""

    def end_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, int | KafkaError]:
        """The end of each partition, or why it is not known."""


class CheckpointPlaces:
    """The targets of one flow's checkpoints. `partner_problem`: see `MirrorCheckpointTask`."""

    def __init__(
        self,
        flow: FlowName,
        config: CheckpointConfig,
        rules: CheckpointRules,
        partner_problem: Callable[[], str],
    ) -> None:
        self._partner_problem = partner_problem
        self._missing = ""
        self._logged = ""
        self._flow = flow
        self._alias = config.target_alias
        self._policy = config.policy_class
        self._rules = rules
        self._has_any = False
        # If records go to another cluster, so do their topics: the target proves nothing.
        self._is_judge = config.producer.client.is_same_cluster(config.target_client)

    @property
    def mismatch(self) -> str:
        """Why no checkpoint points to a topic; empty if some do."""
        problem = self._partner_problem()
        return f"no checkpoints: {POLICY_KEY}: {problem}" if problem else self._missing

    def are_elsewhere(self) -> bool:
        """Whether the source connector's policy names other topics; logged once."""
        text = self.mismatch if self._partner_problem() else ""
        if text != self._logged:
            self._logged = text
            if text:
                log.warning("[%s] %s", self._flow, text)
        return bool(text)

    def look(self, target: LogEnds, partitions: Collection[TopicPartition]) -> TargetEnds:
        """Ask the target for the end offsets of these partitions."""
        found = target.end_offsets(partitions) if partitions else {}
        ends = {tp: end for tp, end in found.items() if isinstance(end, int)}
        there = {tp.topic for tp in ends}
        missing = {tp.topic for tp, error in found.items() if _is_missing(error)} - there
        self._has_any = bool(ends)
        return TargetEnds(ends, frozenset(missing if self._is_judge else ()))

    def judge(self, skipped: Iterable[Mapping[TopicPartition, NoCheckpoint]]) -> None:
        """After a round: check whether any of the copied topics exists on the target."""
        lost = {
            self._rules.rename_topic_partition(tp).topic
            for rows in skipped
            for tp, reason in rows.items()
            if reason is NoCheckpoint.NO_TOPIC
        }
        text = "" if self._has_any or not lost else self._describe(lost)
        if text and text != self._missing:
            log.warning("[%s] %s", self._flow, text)
        self._missing = text

    def _describe(self, topics: Collection[str]) -> str:
        return (
            f"no checkpoints: '{self._alias}' has no topic {some_names(topics)}, though records "
            f"were copied; this connector has replication.policy.class={self._policy}: give the "
            "source connector and this one the same policy and separator"
        )


def _is_missing(error: int | KafkaError) -> bool:
    return isinstance(error, BrokerError) and error.code == UNKNOWN_TOPIC_OR_PARTITION
