"""Waits for records: compares expected records per partition with the target's end offsets."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from sparkmirror.errors import MirrorError
from sparkmirror.types import TopicPartition

# End offset per partition of those topics that exist.
ListEndOffsets = Callable[[Iterable[str]], Mapping[TopicPartition, int]]

_POLL_SECONDS = 0.1
_MOST_NAMED = 5


class Arrivals:
    """The records that the target should have, and how many of them it has.

    Counts one offset per record, which is true for a mirror without transactions and a topic that
    loses no records.
    """

    def __init__(self, list_end_offsets: ListEndOffsets, remote_name: Callable[[str], str]) -> None:
        self._list_end_offsets = list_end_offsets
        self._remote_name = remote_name
        self._expected: Counter[TopicPartition] = Counter()

    @property
    def total(self) -> int:
        """The number of expected records."""
        return self._expected.total()

    def expect(self, records: Mapping[TopicPartition, int]) -> None:
        """Add records of the source, by source partition."""
        for where, count in records.items():
            remote = TopicPartition(self._remote_name(where.topic), where.partition)
            # Includes partitions without records, which must exist too.
            self._expected[remote] += count

    def list_surplus(self) -> dict[TopicPartition, int]:
        """Partitions with more records than expected: something was copied twice."""
        return dict(Counter(self._list_found()) - self._expected)

    def wait(
        self, within: float, on_poll: Callable[[int, int], None] = lambda _done, _total: None
    ) -> None:
        """Return once everything has arrived; `on_poll` gets the counts, and may raise."""
        deadline = time.monotonic() + within
        while (found := self._list_found()).keys() != self._expected.keys() or self._lacking(found):
            lacking = self._lacking(found)
            on_poll(self.total - lacking.total(), self.total)
            if time.monotonic() > deadline:
                raise MirrorError(self._describe(lacking, within))
            time.sleep(_POLL_SECONDS)
        on_poll(self.total, self.total)

    def _lacking(self, found: Mapping[TopicPartition, int]) -> Counter[TopicPartition]:
        return self._expected - Counter(found)

    def _list_found(self) -> Mapping[TopicPartition, int]:
        return self._list_end_offsets({where.topic for where in self._expected})

    def _describe(self, lacking: Counter[TopicPartition], within: float) -> str:
        most = lacking.most_common(_MOST_NAMED)
        named = ", ".join(f"{where} lacks {count:,}" for where, count in most)
        missing = f"{lacking.total():,} of {self.total:,} records"
        return f"{missing} did not arrive within {within:g} s: {named or 'empty topics'}"
