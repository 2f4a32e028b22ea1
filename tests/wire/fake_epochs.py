"""Leader epochs (KIP-320) of the fake broker, as a real one reports them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka.protocol.consumer import OffsetForLeaderEpochResponse

from tests.wire.fake_log import FakeLog

UNKNOWN_TOPIC = 3
NOT_LEADER = 6
FENCED_EPOCH = 74
UNKNOWN_EPOCH = 75


def epoch_ends(request: Any, action: Any, find: Callable[[Any, int], Any]) -> Any:
    """Where each epoch that is asked for ends."""
    kind = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    topics = []
    for topic in request.body.topics:
        rows = []
        for row in topic.partitions:
            found = find(topic.topic, row.partition)
            code = action.code or _code(request.node, found, row)
            end = (-1, -1) if code else found.log.epoch_end(row.leader_epoch)
            rows.append(
                kind.EpochEndOffset(
                    partition=row.partition,
                    error_code=code,
                    leader_epoch=end[0],
                    end_offset=end[1],
                )
            )
        topics.append(kind(topic=topic.topic, partitions=rows))
    return OffsetForLeaderEpochResponse(throttle_time_ms=0, topics=topics)


def _code(node: int, found: Any, row: Any) -> int:
    if found is None:
        return UNKNOWN_TOPIC
    if node != found.leader:
        return NOT_LEADER
    if row.current_leader_epoch != found.epoch:
        return FENCED_EPOCH if row.current_leader_epoch < found.epoch else UNKNOWN_EPOCH
    return 0


def diverging_epoch(log: FakeLog, wanted: Any) -> tuple[int, int] | None:
    """What a fetch gets for a log that does not have what was read (KIP-595)."""
    epoch, end = log.epoch_end(wanted.last_fetched_epoch)
    is_same = epoch == wanted.last_fetched_epoch and end >= wanted.fetch_offset
    return None if is_same else (epoch, end)
