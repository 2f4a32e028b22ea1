"""What happens to batches that the target rejects: split, skipped and counted, or the task fails.

Runs on: executor.
"""

from __future__ import annotations

import logging

from sparkmirror.batches.forward import OutgoingBatch, split
from sparkmirror.errors import BatchError, BrokerError, DeniedError, RefusedError
from sparkmirror.events import EventKind, event
from sparkmirror.spark.copy.copy_partition import CopyPartition
from sparkmirror.wire.produce.record_accumulator import ProducerBatch, Replacement
from sparkmirror.wire.protocol.error_codes import (
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    RECORD_LIST_TOO_LARGE,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
)

log = logging.getLogger(__name__)

TOO_LARGE = (MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE)
# Errors about the records themselves: errors.tolerance=all skips these, and others are accepted.
ABOUT_RECORDS = (*TOO_LARGE, INVALID_TIMESTAMP, INVALID_RECORD)


class Rejections:
    """Decides by `errors.tolerance`; counts what it skipped."""

    def __init__(self, tolerance: str) -> None:
        self._skips = tolerance == "all"
        self.skipped_records = 0

    def replace(
        self,
        partition: CopyPartition,
        rejected: ProducerBatch[OutgoingBatch],
        error: BrokerError,
    ) -> Replacement:
        """What to send in place of `rejected`: its halves, or nothing.

        If a permission is missing for one topic, or a topic has an old message format, only that
        topic waits.

        Raises:
            RefusedError: it must not be skipped.
        """
        if isinstance(error, DeniedError) or error.code == UNSUPPORTED_FOR_MESSAGE_FORMAT:
            return None
        if error.code not in ABOUT_RECORDS:
            raise RefusedError(str(error)) from error
        batch, half = rejected.payload, len(rejected.view) // 2
        if error.code in TOO_LARGE and batch.count > 1:
            partition.limit_batches(half)
        elif batch.count == 1 or not self._skips:
            self._skip_or_fail(partition, batch, error)
            return []
        # Skipping: halved until the bad ones are alone.
        batch.view = rejected.view  # it may have been moved out of the receive buffer
        try:
            halves = split(batch, half, partition.rules.codec_level)
        except BatchError as unreadable:
            # Its CRC is right, so a client produced it like that: it cannot be halved.
            self._skip_or_fail(partition, batch, error, f", and cannot be split: {unreadable}")
            return []
        return [
            ProducerBatch(part.view, part.count, None, part, rejected.completion) for part in halves
        ]

    def _skip_or_fail(
        self, partition: CopyPartition, batch: OutgoingBatch, error: BrokerError, why: str = ""
    ) -> None:
        text = (
            f"offsets {batch.first_offset} to {batch.last_offset} of {partition.source} "
            f"({batch.count} records, {batch.size} bytes): {error}{why}"
        )
        if not self._skips:
            raise RefusedError(
                f"{text}; raise the limit on the target topic, or set errors.tolerance=all to skip "
                "and count such records"
            ) from error
        self.skipped_records += batch.count
        partition.counts.skipped_records += batch.count
        partition.settle(batch)
        topic, at = partition.source
        mark = event(EventKind.SKIPPED, topic=topic, partition=at)
        log.warning("skipped, because errors.tolerance=all: %s", text, extra=mark)
