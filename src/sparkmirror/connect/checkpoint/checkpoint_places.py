"""The places on the target that checkpoints point to: how far they reach, and which are missing.

Runs on: worker, in the checkpoint connector's thread. Records that were copied are in a topic of
the target. If none has the name that the checkpoint connector's policy gives it, the source
connector has another policy: checkpoints would lead nowhere. On a worker that runs both, their
settings tell as much even where an earlier flow left topics of these names.
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


# Of the reasons why a partition has no checkpoint, those that somebody may wonder about.
SAID = (
    NoCheckpoint.TOO_OLD,
    NoCheckpoint.UNKNOWN,
    NoCheckpoint.BEYOND_END,
    NoCheckpoint.NO_TOPIC,
)


class LogEnds(Protocol):
    """What is asked of a `GroupAdmin`."""

    def end_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, int | KafkaError]:
        """The end of each partition, or why it is not known."""


class CheckpointPlaces:
    """Where checkpoints of one flow lead to. `partner_problem`: see `CheckpointConnector`."""

    def __init__(
        self,
        flow: FlowName,
        config: CheckpointConfig,
        rules: CheckpointRules,
        partner_problem: Callable[[], str],
    ) -> None:
        self._partner_problem = partner_problem
        self._missing = ""
        self._said = ""
        self._flow = flow
        self._alias = config.target_alias
        self._policy = config.policy_class
        self._rules = rules
        self._has_any = False
        # Records that go elsewhere have their topics there.
        self._is_judge = config.producer.client.is_same_cluster(config.target_client)

    @property
    def mismatch(self) -> str:
        """Why no checkpoint leads anywhere; empty unless that is so."""
        problem = self._partner_problem()
        return f"no checkpoints: {POLICY_KEY}: {problem}" if problem else self._missing

    def are_elsewhere(self) -> bool:
        """Whether the source connector's policy names other topics; logged once."""
        text = self.mismatch if self._partner_problem() else ""
        if text != self._said:
            self._said = text
            if text:
                log.warning("[%s] %s", self._flow, text)
        return bool(text)

    def look(self, target: LogEnds, partitions: Collection[TopicPartition]) -> TargetEnds:
        """Find out about these partitions."""
        found = target.end_offsets(partitions) if partitions else {}
        ends = {tp: end for tp, end in found.items() if isinstance(end, int)}
        there = {tp.topic for tp in ends}
        missing = {tp.topic for tp, error in found.items() if _is_missing(error)} - there
        self._has_any = bool(ends)
        return TargetEnds(ends, frozenset(missing if self._is_judge else ()))

    def judge(self, skipped: Iterable[Mapping[TopicPartition, NoCheckpoint]]) -> None:
        """After a round: of records that were copied, whether any has its place on the target."""
        lost = {
            self._rules.rename_topic_partition(tp).topic
            for rows in skipped
            for tp, reason in rows.items()
            if reason is NoCheckpoint.NO_TOPIC
        }
        text = "" if self._has_any or not lost else self._told(lost)
        if text and text != self._missing:
            log.warning("[%s] %s", self._flow, text)
        self._missing = text

    def _told(self, topics: Collection[str]) -> str:
        return (
            f"no checkpoints: '{self._alias}' has no topic {some_names(topics)}, though records "
            f"were copied; this connector has replication.policy.class={self._policy}: give the "
            "source connector and this one the same policy and separator"
        )


def _is_missing(error: int | KafkaError) -> bool:
    return isinstance(error, BrokerError) and error.code == UNKNOWN_TOPIC_OR_PARTITION
