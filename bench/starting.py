"""Waits for a mirror to start."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bench.end_offsets import EndOffsets
from bench.systems import Mirror
from sparkmirror.retry import wait_for
from sparkmirror.types import TopicPartition

_LONGEST_SECONDS = 600.0
_AT_A_TIME = 500


def wait_until_copied(
    mirror: Mirror,
    target: EndOffsets,
    partitions: Sequence[TopicPartition],
    each: int,
) -> float:
    """Wait until the target has `each` records of every partition.

    Returns the seconds since the mirror was started.
    """
    missing = list(partitions)

    def is_copied() -> bool:
        mirror.require_running()
        return drop_copied(missing, target, each)

    def describe() -> str:
        return f"all but {len(missing)} of {len(partitions)} partitions; see {mirror.log_path}"

    wait_for(is_copied, within=_LONGEST_SECONDS, describe=describe)
    return time.monotonic() - mirror.started_at


def drop_copied(missing: list[TopicPartition], target: EndOffsets, each: int) -> bool:
    """Remove copied partitions from `missing`; returns whether nothing is missing any more.

    Requests only some of thousands at a time: mirror and measurement share the cores.
    """
    while missing:
        some = missing[:_AT_A_TIME]
        ends = target.end_offsets(some)
        left = [tp for tp in some if (ends.get(tp) or 0) < each]
        missing[: len(some)] = left
        if left:
            return False
    return True
