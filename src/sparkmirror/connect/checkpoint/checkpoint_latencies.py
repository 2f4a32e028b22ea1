"""How long each checkpoint took, from reading a group's offsets until it was stored: for metrics.

Runs on: worker. Kafka's averages are those of the last 30 to 60 s. MirrorMaker 2 keeps one figure
for all groups of a task by mistake; these are of a group and partition each.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from sparkmirror.mirror.records import Checkpoint
from sparkmirror.spark.figures import Window
from sparkmirror.types import TopicPartition

SECONDS = 60.0
# Of so many groups and partitions; the others have no metrics.
MOST = 10_000

_Key = tuple[str, TopicPartition]
_Times = tuple[tuple[float, float], ...]


class CheckpointLatencies:
    """By group and remote partition, in milliseconds; for any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._times: dict[_Key, _Times] = {}

    def add(self, checkpoints: Sequence[Checkpoint], milliseconds: float) -> None:
        """These were stored just now."""
        now = self._clock()
        with self._lock:
            for each in checkpoints:
                key = each.group, TopicPartition(each.topic, each.partition)
                earlier = self._times.get(key, ())
                if earlier or len(self._times) < MOST:
                    recent = (time for time in earlier if now - time[0] <= SECONDS)
                    self._times[key] = (*recent, (now, milliseconds))

    def windows(self) -> Mapping[_Key, Window]:
        """The last one of each, and extremes, sum and number of the last minute."""
        with self._lock:
            times = dict(self._times)
        since = self._clock() - SECONDS
        return {key: _window(each, since) for key, each in times.items()}


def _window(times: _Times, since: float) -> Window:
    found = [took for at, took in times if at >= since]
    last = times[-1][1]
    if not found:
        return Window(last)
    return Window(last, min(found), max(found), sum(found), len(found))
