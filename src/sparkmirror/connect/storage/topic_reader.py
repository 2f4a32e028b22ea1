"""Reads a whole internal topic to its end, once.

Runs on: worker, blocking. The topics are compacted and small.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.batches.records import Record
from sparkmirror.config.clients import ClientConfig
from sparkmirror.connect.storage.log_reader import LogReader


class TopicReader:
    """Reads all partitions of a topic once, read_committed, to the ends found at the start.

    The topic must exist: one that cannot be found for a moment must not count as empty.
    """

    def __init__(self, config: ClientConfig, topic: str, partitions: int) -> None:
        self._follower = LogReader(config, topic, partitions, must_exist=True)

    def read(self, seconds: float) -> Sequence[Record]:
        """All records, in order by partition; TransportError if it takes too long."""
        try:
            return self._follower.catch_up(seconds)
        finally:
            self._follower.close()
