"""What a member of the group has counted, for metrics.

Runs on: worker. Written by the member's thread, read by any.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from sparkmirror.spark.recent_times import RecentTimes


class MemberFigures:
    """A rebalance begins when we ask to join, and ends with the assignment."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: float | None = None
        self._heard = self._rebalanced = float("nan")
        self.heartbeats = self.joins = self.syncs = 0
        self.rebalances = self.failed_rebalances = 0
        self.rebalance_ms = 0.0
        self.recent = RecentTimes(clock)

    @property
    def is_rebalancing(self) -> bool:
        """Whether a rebalance has begun and not ended."""
        return self._began is not None

    @property
    def heartbeat_age(self) -> float:
        """Seconds since the coordinator last responded to a heartbeat; NaN if it never did."""
        return self._clock() - self._heard

    @property
    def rebalance_age(self) -> float:
        """Seconds since the last rebalance ended; NaN if there was none."""
        return self._clock() - self._rebalanced

    def note_heartbeat(self) -> None:
        """The coordinator responded to one."""
        self.heartbeats += 1
        self._heard = self._clock()

    def begin_rebalance(self) -> None:
        """A join is sent; one that was under way has failed."""
        self.end_rebalance(is_done=False)
        self._began = self._clock()

    def note_join(self) -> None:
        """The coordinator responded to it."""
        self.joins += 1

    def end_rebalance(self, *, is_done: bool) -> None:
        """The assignment has come, or never will."""
        began, self._began = self._began, None
        if began is None:
            return
        if not is_done:
            self.failed_rebalances += 1
            return
        self._rebalanced = self._clock()
        took = (self._rebalanced - began) * 1000
        self.syncs += 1
        self.rebalances += 1
        self.rebalance_ms += took
        self.recent.add(took)
