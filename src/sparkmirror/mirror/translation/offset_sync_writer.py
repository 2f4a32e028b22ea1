"""When the offsets of copied records are written to the offset-syncs topic.

Runs on: executor, in the copy loop. Pure: methods return the syncs to send.
Mirrors: org.apache.kafka.connect.mirror.OffsetSyncWriter and its PartitionState (4.4).

MirrorMaker 2 decides for every record (`PartitionState.update`), the copy loop for whole batches
(`update_batch`). Both keep the same state, so a batch needs syncs exactly when one of its records
would; they differ in the records that they choose:

    by record   every record that meets a condition, up to one per `offset.lag.max` + 1 records
    by batch    the last one, those 1, 3, 7, ... steps of `offset.lag.max` + 1 before it, and the
                first one if the partition starts, goes back, or was truncated on the target

So the last sync is never older than MirrorMaker 2's, a group at the end of a batch is translated
exactly, and one that is n records behind it goes back by less than n + 2 * (offset.lag.max + 1)
records; MirrorMaker 2's readers thin their syncs out to about the same (offset_sync_store).
"""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.batches.outgoing import Runs
from sparkmirror.mirror.records import OffsetSync
from sparkmirror.mirror.translation.offsets import OffsetPair
from sparkmirror.types import TopicPartition

# MirrorMaker 2's limit of unacknowledged syncs per task.
MAX_IN_FLIGHT = 10

_NONE = -1


class PartitionSyncState:
    """Decides for one partition whether a copied record needs a sync."""

    __slots__ = (
        "_last_sync_downstream",
        "_offset_lag_max",
        "_previous_downstream",
        "_previous_upstream",
        "should_sync",
    )

    def __init__(self, offset_lag_max: int) -> None:
        self._offset_lag_max = offset_lag_max
        self._previous_upstream = _NONE
        self._previous_downstream = _NONE
        self._last_sync_downstream = _NONE
        self.should_sync = False

    def update(self, upstream: int, downstream: int) -> bool:
        """Record one record; returns whether it, or an earlier one since `reset`, needs a sync."""
        first_in_this_run = self._last_sync_downstream == _NONE
        lag_too_large = downstream - (self._last_sync_downstream + 1) >= self._offset_lag_max
        gap_upstream = upstream != self._previous_upstream + 1
        target_truncated = downstream < self._previous_downstream
        if first_in_this_run or lag_too_large or gap_upstream or target_truncated:
            self._last_sync_downstream = downstream
            self.should_sync = True
        self._previous_upstream = upstream
        self._previous_downstream = downstream
        return self.should_sync

    def reset(self) -> None:
        """Record that the sync for `update` was taken."""
        self.should_sync = False

    def update_batch(
        self, first_upstream: int, last_upstream: int, first_downstream: int, runs: Runs | None
    ) -> tuple[OffsetPair, ...]:
        """Record all records of a batch; returns the pairs to sync, oldest first, or none.

        The state afterwards is the same as after `update`, and `reset` if it returned True, for
        each record. Without `runs` the offsets have no gaps. Downstream offsets never have any: a
        batch is stored as a whole.
        """
        spans = runs or ((first_upstream, last_upstream - first_upstream + 1),)
        is_restart = self._restarts(first_upstream, first_downstream)
        end_downstream = first_downstream
        for upstream, count in spans:
            self.update(upstream, end_downstream)
            end_downstream += count
            self._finish_run(upstream + count - 1, end_downstream - 1)
        if not self.should_sync:
            return ()
        self.reset()
        wanted = list(self._wanted(first_downstream, end_downstream - 1))
        if is_restart and wanted[-1] != first_downstream:
            wanted.append(first_downstream)
        return tuple(_pairs(spans, first_downstream, wanted))

    def _restarts(self, upstream: int, downstream: int) -> bool:
        """Whether earlier records do not help to translate this one.

        A gap does not count: the position after the record before it is known and correct.
        """
        first_in_this_run = self._last_sync_downstream == _NONE
        went_back = upstream <= self._previous_upstream
        target_truncated = downstream < self._previous_downstream
        return first_in_this_run or went_back or target_truncated

    def _finish_run(self, last_upstream: int, last_downstream: int) -> None:
        """Do the same as `update` for a whole run, after its first record."""
        step = self._offset_lag_max + 1
        syncs = (last_downstream - self._last_sync_downstream) // step
        if syncs:
            self._last_sync_downstream += syncs * step
            self.should_sync = True
        self._previous_upstream = last_upstream
        self._previous_downstream = last_downstream

    def _wanted(self, first_downstream: int, last_downstream: int) -> Iterator[int]:
        """Downstream offsets to sync, newest first, with growing distances."""
        distance, step = 0, self._offset_lag_max + 1
        while last_downstream - distance >= first_downstream:
            yield last_downstream - distance
            distance = 2 * distance + step


def _pairs(spans: Runs, first_downstream: int, wanted: list[int]) -> Iterator[OffsetPair]:
    """The upstream offsets of the wanted descending downstream ones, oldest first."""
    start = first_downstream
    for upstream, count in spans:
        end = start + count
        while wanted and wanted[-1] < end:
            downstream = wanted.pop()
            yield OffsetPair(upstream + downstream - start, downstream)
        start = end


class OffsetSyncWriter:
    """Decides which syncs of a task's partitions wait, and which to send.

    pending   syncs to send as soon as fewer than `max_in_flight` are unacknowledged, in the
              order in which their partitions first needed one
    delayed   the last record of each partition that needs no sync yet; `commit` makes it pending

    The caller writes the returned syncs, in order, to partition 0 of the offset-syncs topic, and
    calls `completed` for each, even if the write failed: a failed sync is not resent, because the
    next one has newer offsets. Unlike in MirrorMaker 2, a newer sync does not replace the oldest
    unsent one: only that one can translate groups that are far behind.
    """

    def __init__(self, offset_lag_max: int, max_in_flight: int = MAX_IN_FLIGHT) -> None:
        self._offset_lag_max = offset_lag_max
        self._max_in_flight = max_in_flight
        self._in_flight = 0
        self._states: dict[TopicPartition, PartitionSyncState] = {}
        self._delayed: dict[TopicPartition, OffsetPair] = {}
        self._pending: dict[TopicPartition, list[OffsetPair]] = {}

    @property
    def pending(self) -> dict[TopicPartition, tuple[OffsetPair, ...]]:
        """Syncs that wait to be sent, by upstream partition."""
        return {tp: tuple(pairs) for tp, pairs in self._pending.items()}

    @property
    def delayed(self) -> dict[TopicPartition, OffsetPair]:
        """Syncs that wait for `commit`, by upstream partition."""
        return dict(self._delayed)

    def acked_record(self, tp: TopicPartition, upstream: int, downstream: int) -> list[OffsetSync]:
        """The target stored one record of the source's `tp`; returns the syncs to send."""
        state = self._state(tp)
        pair = OffsetPair(upstream, downstream)
        needs_sync = state.update(upstream, downstream)
        state.reset()
        return self._queue(tp, (pair,) if needs_sync else (), pair)

    def acked_batch(
        self,
        tp: TopicPartition,
        first_upstream: int,
        last_upstream: int,
        first_downstream: int,
        runs: Runs | None,
    ) -> list[OffsetSync]:
        """The target stored one batch of the source's `tp`; returns the syncs to send."""
        pairs = self._state(tp).update_batch(first_upstream, last_upstream, first_downstream, runs)
        count = sum(n for _, n in runs) if runs else last_upstream - first_upstream + 1
        return self._queue(tp, pairs, OffsetPair(last_upstream, first_downstream + count - 1))

    def commit(self) -> list[OffsetSync]:
        """Make delayed syncs pending when positions are committed; returns the syncs to send."""
        for tp, pair in self._delayed.items():
            self._put(tp, (pair,))
        self._delayed.clear()
        return self._take()

    def completed(self, count: int = 1) -> list[OffsetSync]:
        """This many syncs are stored or abandoned; returns the syncs to send in their place."""
        self._in_flight -= count
        return self._take()

    def forget(self, tp: TopicPartition) -> None:
        """Forget a partition that is no longer ours."""
        self._states.pop(tp, None)
        self._delayed.pop(tp, None)
        self._pending.pop(tp, None)

    def _state(self, tp: TopicPartition) -> PartitionSyncState:
        state = self._states.get(tp)
        if state is None:
            state = self._states[tp] = PartitionSyncState(self._offset_lag_max)
        return state

    def _queue(
        self, tp: TopicPartition, pairs: tuple[OffsetPair, ...], last: OffsetPair
    ) -> list[OffsetSync]:
        if pairs:
            self._delayed.pop(tp, None)
            self._put(tp, pairs)
        else:
            self._delayed[tp] = last
        return self._take()

    def _put(self, tp: TopicPartition, pairs: tuple[OffsetPair, ...]) -> None:
        """Queue the pairs, replacing all waiting ones except the oldest."""
        self._pending[tp] = self._pending.get(tp, [])[:1] + list(pairs)

    def _take(self) -> list[OffsetSync]:
        syncs: list[OffsetSync] = []
        while self._pending and self._in_flight < self._max_in_flight:
            tp, pairs = next(iter(self._pending.items()))
            syncs.append(OffsetSync(tp.topic, tp.partition, *pairs.pop(0)))
            if not pairs:
                del self._pending[tp]
            self._in_flight += 1
        return syncs
