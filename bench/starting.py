"""Waiting for a mirror that starts."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bench.end_offsets import EndOffsets
from bench.systems import Mirror
from sparkmirror.embedded.waiting import wait_for
from sparkmirror.types import TopicPartition

_LONGEST_SECONDS = 600.0


def wait_until_copied(
    mirror: Mirror,
    target: EndOffsets,
    partitions: Sequence[TopicPartition],
    each: int,
) -> float:
    """Wait until the target holds `each` records of every partition.

    Returns the seconds since the mirror was started.
    """
    wanted = each * len(partitions)

    def is_copied() -> bool:
        mirror.require_running()
        return target.record_count(partitions, each) >= wanted

    def describe() -> str:
        count = target.record_count(partitions, each)
        return f"{count} of {wanted} records of {partitions[0].topic}; see {mirror.log_path}"

    wait_for(is_copied, within=_LONGEST_SECONDS, describe=describe)
    return time.monotonic() - mirror.started_at
