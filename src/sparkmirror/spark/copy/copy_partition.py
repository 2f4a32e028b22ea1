"""One partition being copied: its state, its rules, where to continue when its position is gone.

Runs on: executor. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sparkmirror.batches.codecs import Codec
from sparkmirror.batches.forward import ForwardRules, OutgoingBatch
from sparkmirror.config.clients import ConsumerConfig
from sparkmirror.config.keys.client_keys import BY_DURATION
from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.errors import DataLossError
from sparkmirror.mirror.positions.provenance import Provenance
from sparkmirror.spark.copy.copy_counts import CopyCounts
from sparkmirror.types import TopicPartition
from sparkmirror.wire.fetch.fetch_session import FetchPartition
from sparkmirror.wire.fetch.offset_fetcher import Range
from sparkmirror.wire.net.buffer_pool import PooledBuffer
from sparkmirror.wire.produce.record_accumulator import Completion, ProducerBatch
from sparkmirror.wire.protocol.fetch_messages import Limits


@dataclass(slots=True)
class CopyPartition:
    """A source partition and its target."""

    source: TopicPartition
    target: TopicPartition
    rules: ForwardRules
    pending_records: int = 0
    # How many of them are of a topic that was deleted since: they yield no position.
    outdated_records: int = 0
    copied_to: int | None = None
    # What `copied_to` was when the task last reported to the worker which topics are written.
    reported_to: int | None = None
    # Attempts to read a damaged batch; 0: none is known.
    damaged: int = 0
    # The target offset of the last record before the position, if known.
    target_offset: int | None = None
    # Whether the start of this copy is in the offset map, or on its way there.
    is_marked: bool = False
    # What the fetcher knows of the source's log.
    fetched: FetchPartition | None = None
    counts: CopyCounts = field(default_factory=CopyCounts)

    def provenance(self, last_offset: int) -> Provenance:
        """What is stored beside a position: which log it is of."""
        if self.fetched is None:
            return Provenance()
        rows = self.fetched.epochs.before(last_offset + 1)
        return Provenance(self.fetched.topic_id, rows, self.target_offset)

    def disown_pending(self) -> None:
        """Records in flight come from a log that no longer exists."""
        self.outdated_records = self.pending_records
        self.copied_to = self.target_offset = None
        self.counts.newest_ms = -1

    def limit_batches(self, most_bytes: int) -> None:
        """The target accepts no batch larger than this: split and merge accordingly from now on."""
        rules = self.rules
        self.rules = replace(
            rules,
            max_batch_bytes=min(rules.max_batch_bytes or most_bytes, most_bytes),
            merge_into_bytes=min(rules.merge_into_bytes, most_bytes // 2),
        )

    def to_send(
        self,
        batches: Iterable[OutgoingBatch],
        buffer: PooledBuffer,
        completion: Completion[OutgoingBatch],
    ) -> list[ProducerBatch[OutgoingBatch]]:
        """The batches as the producer takes them; those that lie in the receive buffer hold it."""
        made = []
        for batch in batches:
            held = None
            if isinstance(batch.view, memoryview):
                held = buffer
                held.hold()
            self.pending_records += batch.count
            made.append(ProducerBatch(batch.view, batch.count, held, batch, completion))
        return made

    def settle(self, batch: OutgoingBatch) -> bool:
        """The batch is stored or skipped; returns whether its offsets are of the current topic."""
        self.pending_records -= batch.count
        if self.outdated_records:
            self.outdated_records -= batch.count
            return False
        return True


def forward_rules(config: SourceConfig) -> ForwardRules:
    """The rules that a connector's settings ask for."""
    producer = config.producer
    codec = None if producer.compression_type is None else Codec[producer.compression_type.upper()]
    return ForwardRules(
        read_committed=config.consumer.isolation_level == "read_committed",
        codec=codec,
        codec_level=producer.compression_level,
        max_batch_bytes=producer.max_request_size,
    )


def fetch_limits(consumer: ConsumerConfig) -> Limits:
    """How much one request asks for, and how long the broker may wait."""
    return Limits(
        max_wait_ms=consumer.fetch_max_wait_ms,
        min_bytes=consumer.fetch_min_bytes,
        max_bytes=consumer.fetch_max_bytes,
        partition_max_bytes=consumer.max_partition_fetch_bytes,
        read_committed=consumer.isolation_level == "read_committed",
        rack=consumer.client_rack,
        start_age_ms=consumer.start_age_ms,
    )


class Choice(NamedTuple):
    """Where to continue, and what that means."""

    next_offset: int
    lost_records: int = 0
    warning: str = ""
    # Chosen by the clock: a later choice gives another offset.
    is_of_now: bool = False


def choose_offset(tp: TopicPartition, position: int | None, log: Range, reset: str) -> Choice:
    """Where to continue in a log of this range.

        position None    nothing was ever copied: auto.offset.reset decides
        position < start retention overtook the copy: what is in between is lost
        position > end   the log is shorter than what was copied: truncated, or another topic
        in between       the broker that rejected it was behind: nothing is wrong

    Raises:
        DataLossError: auto.offset.reset=none, which forbids a choice.
    """
    start, end, _ = log
    chosen, is_of_now = _reset(log, reset), reset not in ("earliest", "none")
    if position is None:
        if reset == "none":
            raise DataLossError(
                f"{tp} has no stored position and auto.offset.reset=none forbids choosing one; "
                "set it to earliest or latest"
            )
        return Choice(chosen, is_of_now=is_of_now)
    if start <= position <= end:
        return Choice(position)
    what = f"{tp}: position {position} is outside the log ({start} to {end}): "
    if reset == "none":
        raise DataLossError(
            what + "auto.offset.reset=none forbids continuing; set it to earliest or latest, "
            "or reset the connector's offsets"
        )
    if position < start:
        lost = chosen - position
        why = "were deleted by retention before they were copied"
        if chosen > start:
            why = f"are left out (auto.offset.reset={reset}), the first deleted by retention"
        return Choice(
            chosen,
            lost,
            f"{what}offsets {position} to {chosen - 1} {why} ({lost} offsets lost); "
            f"continuing at {chosen}",
            is_of_now=is_of_now,
        )
    return Choice(
        chosen,
        0,
        f"{what}the source was truncated or recreated; continuing at {chosen} "
        f"(auto.offset.reset={reset}), so the target may hold some records twice",
    )


def _reset(log: Range, reset: str) -> int:
    """Where auto.offset.reset starts; by_duration (KIP-1106): the end if all records are older."""
    if reset == "latest":
        return log.end
    if reset.startswith(BY_DURATION):
        return log.end if log.timed is None else min(max(log.timed, log.start), log.end)
    return log.start
