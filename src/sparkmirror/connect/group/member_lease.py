"""For how long a member of a group cannot be replaced.

Runs on: worker, on the member's thread; `seconds` is for any thread. The coordinator removes a
member that sends nothing for the session timeout, or that does not join again within the rebalance
timeout while others wait for it. Only then may another member lead, or run its tasks. Both
timeouts are counted from when the last request with a response was *sent*, and the lease ends one
second earlier, so that tasks have time to stop.
"""

from __future__ import annotations

from collections.abc import Callable

from sparkmirror.wire.group_member import GroupSettings

LEASE_MARGIN_SECONDS = 1.0
NEVER = float("-inf")


class MemberLease:
    """Counts from the coordinator's responses; there is no lease before the first assignment."""

    def __init__(self, settings: GroupSettings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        # When the last request with a response was sent; the last that asked for no rejoin.
        self._response_at = NEVER
        self._stable_at = NEVER
        # One value, so that other threads never see half of a change.
        self.end = NEVER

    def renew(self, sent_at: float, *, is_stable: bool) -> None:
        """A response arrived; `is_stable`: the group does not wait for us to join again."""
        self._response_at = max(self._response_at, sent_at)
        if is_stable:
            self._stable_at = max(self._stable_at, sent_at)

    def lose(self) -> None:
        """The coordinator does not know us, or no longer does."""
        self._response_at = self._stable_at = self.end = NEVER

    def doubt(self) -> None:
        """The coordinator no longer knows us, but possibly no other member took our place."""
        self._response_at = self._stable_at = NEVER
        self.end = min(self.end, self._clock())

    def extend(self) -> None:
        """Move the end of the lease by the responses noted since it was lost or in doubt."""
        if self._response_at == NEVER:
            return
        missed_at = self._response_at + self._settings.session_seconds
        dropped_at = self._stable_at + self._settings.rebalance_seconds
        self.end = min(missed_at, dropped_at) - LEASE_MARGIN_SECONDS

    @property
    def seconds(self) -> float:
        """The time left."""
        return max(0.0, self.end - self._clock())

    @property
    def is_over(self) -> bool:
        return self._clock() >= self.end

    def ended_within(self, seconds: float) -> bool:
        """Whether the lease still lasts, or ended at most `seconds` ago."""
        return self._clock() < self.end + seconds
