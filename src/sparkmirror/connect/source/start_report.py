"""Logs where the partitions of a flow start, and with `--resume-only` rejects fresh starts.

Runs on: worker. The copy tasks decide by the same facts at their start (spark/copy/copy_partition).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.connect.storage.offset_backing_store import (
    KafkaOffsetBackingStore,
    StoredPosition,
    StoredPositions,
)
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.positions.starts import (
    Start,
    list_starts,
    plan_starts,
    refused_starts,
    report_starts,
)
from sparkmirror.types import FlowName, TopicPartition
from sparkmirror.wire.admin.admin import Admin, TopicView

log = logging.getLogger(__name__)

IsStale = Callable[[TopicPartition, StoredPosition], bool]

# The report must not delay the copy: it omits what brokers do not return within this time.
REPORT_SECONDS = 5.0
# Without a response `--resume-only` does not start, so it waits longer.
REFUSE_SECONDS = 30.0


class StartReport:
    """The start positions of one flow."""

    def __init__(self, flow: FlowName, config: SourceConfig, source: Admin) -> None:
        self._flow = flow
        self._config = config
        self._source = source

    def log_starts(
        self,
        partitions: Sequence[TopicPartition],
        topics: Mapping[str, TopicView],
        load: Callable[[], StoredPositions],
        is_stale: IsStale,
    ) -> None:
        """Log where partitions start.

        Why positions cannot be read is not logged here: the tasks read them next, and report it.
        """
        try:
            starts = self._starts(partitions, topics, load(), REPORT_SECONDS, is_stale)
        except MirrorError:
            log.info("[%s] the positions to resume at cannot be read", self._flow)
            return
        reset = self._config.consumer.auto_offset_reset
        log.info("[%s] %s", self._flow, report_starts(starts, reset))

    def refused(
        self, wants: Callable[[str], bool], store: KafkaOffsetBackingStore, target: Admin
    ) -> list[str]:
        """A line for each partition, or group of a topic's partitions, that would start afresh."""
        stored = store.load_existing(target, self._config.target_client)
        topics = {name: view for name, view in self._source.list_topics().items() if wants(name)}
        partitions = [
            TopicPartition(name, at) for name in topics for at in range(topics[name].partitions)
        ]
        found = refused_starts(self._starts(partitions, topics, stored, REFUSE_SECONDS))
        return [f"{self._flow}: {line}" for line in list_starts(found)]

    def _starts(
        self,
        partitions: Sequence[TopicPartition],
        topics: Mapping[str, TopicView],
        stored: StoredPositions,
        seconds: float,
        is_stale: IsStale = lambda _, __: False,
    ) -> list[Start]:
        known = {tp: stored[tp] for tp in partitions if tp in stored}
        recreated = {
            tp
            for tp, position in known.items()
            if not position.is_of(topics[tp.topic].topic_id) or is_stale(tp, position)
        }
        positions = {tp: known[tp].next_offset if tp in known else None for tp in partitions}
        return plan_starts(positions, self._source.log_ranges(partitions, seconds), recreated)


def refuse_fresh_starts(refused: Iterable[str]) -> None:
    """Raise a MirrorError with these lines, if there are any."""
    lines = list(refused)
    if lines:
        listed = "\n".join(f"  {line}" for line in lines)
        raise MirrorError(
            "--resume-only: nothing was started, because these partitions would not resume at a "
            f"stored position:\n{listed}\n"
            "compare connector names, cluster aliases and offset.storage.topic with those of the "
            "mirror that ran before; to copy these partitions as auto.offset.reset says, run "
            "without --resume-only"
        )
