"""Joins batches that wait for a far target, while that takes no more than its share of time.

Runs on: executor. The producer asks when a partition has as many batches in flight as allowed and
its broker is far: what waits then leaves in fewer, larger batches. For small records, and even
more for compressed ones, joining may take longer than sending: so it gets at most a third of the
time, and the rest is sent unjoined.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sparkmirror.batches.merging.joining import count_joinable, join
from sparkmirror.batches.outgoing import ForwardRules, OutgoingBatch, Reason
from sparkmirror.errors import BatchError
from sparkmirror.spark.copy.copy_partition import CopyPartition
from sparkmirror.types import TopicPartition
from sparkmirror.wire.produce.record_accumulator import Completion, ProducerBatch

log = logging.getLogger(__name__)

# Of the time, and how much of it may be saved up.
SHARE = 0.3
MOST_SECONDS = 0.25


class Joiner:
    """Joins the batches of the partitions that it knows."""

    def __init__(
        self,
        partitions: Mapping[TopicPartition, CopyPartition],
        clock: Callable[[], float],
        slow: Counter[Reason],
    ) -> None:
        """What is joined is counted in `slow`."""
        self._partitions = partitions
        self._clock = clock
        self._slow = slow
        self._seconds = MOST_SECONDS
        self._counted_at = clock()

    def __call__(
        self, tp: TopicPartition, waiting: Sequence[ProducerBatch[Any]]
    ) -> tuple[int, ProducerBatch[OutgoingBatch]] | None:
        """Join the first waiting batches: how many, and the result; None: send them unjoined."""
        partition = self._partitions.get(tp)
        # Records of a deleted topic are counted separately, so they must not share a batch.
        if partition is None or partition.outdated_records or not self._take_time():
            return None
        batches = _current_batches(waiting)
        count = count_joinable(batches, partition.rules) if batches else 1
        if count == 1:
            return None
        started_at = self._clock()
        made = self._join(batches[:count], partition.rules, waiting[0].completion)
        self._seconds -= self._clock() - started_at
        if made is None:
            for each in waiting[:count]:
                each.is_alone = True
            return None
        self._slow[Reason.JOINED] += made[0]
        return made

    def _join(
        self,
        batches: Sequence[OutgoingBatch],
        rules: ForwardRules,
        completion: Completion[OutgoingBatch],
    ) -> tuple[int, ProducerBatch[OutgoingBatch]] | None:
        try:
            joined = join(batches, rules)
        except BatchError as error:
            # Its CRC is right, so a client produced it like that, and the target may accept it.
            log.debug("batches are sent unjoined: %s", error)
            return None
        if joined.size > (rules.max_batch_bytes or joined.size):
            return None
        count = sum(batch.last_offset <= joined.last_offset for batch in batches)
        return count, ProducerBatch(joined.view, joined.count, None, joined, completion)

    def _take_time(self) -> bool:
        now = self._clock()
        earned = (now - self._counted_at) * SHARE
        self._seconds = min(self._seconds + earned, MOST_SECONDS)
        self._counted_at = now
        return self._seconds > 0


def _current_batches(waiting: Sequence[ProducerBatch[Any]]) -> list[OutgoingBatch]:
    """The batches with the bytes that they have now: outside the receive buffer, perhaps."""
    batches: list[OutgoingBatch] = []
    for each in waiting:
        batch = each.payload
        if not isinstance(batch, OutgoingBatch):
            break
        batch.view = each.view
        batches.append(batch)
    return batches
