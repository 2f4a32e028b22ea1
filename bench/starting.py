"""Waiting for a mirror that starts."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bench.end_offsets import EndOffsets
from bench.systems import Mirror
from sparkmirror.embedded.waiting import wait_for
from sparkmirror.types import TopicPartition

_START_SECONDS = 300.0
_COPY_SECONDS = 900.0


def wait_until_copied(
    mirror: Mirror, target: EndOffsets, partitions: Sequence[TopicPartition], records: int
) -> float:
    """Wait until the target holds `records` records; seconds since the mirror was started."""

    def is_copied() -> bool:
        mirror.require_running()
        return target.record_count(partitions) >= records

    def describe() -> str:
        count = target.record_count(partitions)
        return f"{count} of {records} records of {partitions[0].topic}; see {mirror.log_path}"

    within = _START_SECONDS if records <= len(partitions) else _COPY_SECONDS
    wait_for(is_copied, within=within, describe=describe)
    return time.monotonic() - mirror.started_at
