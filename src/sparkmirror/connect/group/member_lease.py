"""For how long a member of a group is safe from being replaced.

Runs on: worker, on the member's thread; `seconds` is for any thread. The coordinator drops a
member that it has not heard from for the session timeout, or that has not joined again within the
rebalance timeout while others wait for it. Only then may another member lead, or run its tasks.
Both times are counted from when the last answered request was *sent*, and the lease ends a second
earlier, for those who must stop.
"""

from __future__ import annotations

from collections.abc import Callable

from sparkmirror.wire.group_member import GroupSettings

LEASE_MARGIN_SECONDS = 1.0
NEVER = float("-inf")


class MemberLease:
    """Counts from what the coordinator answered; there is none before the first assignment."""

    def __init__(self, settings: GroupSettings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        # When the last answered request was sent; when the last that was answered "all is well".
        self._heard_at = NEVER
        self._stable_at = NEVER
        # One value, so that other threads never see half of a change.
        self.end = NEVER

    def hear(self, sent_at: float, *, is_stable: bool) -> None:
        """A request was answered; `is_stable`: the group does not wait for us to join again."""
        self._heard_at = max(self._heard_at, sent_at)
        if is_stable:
            self._stable_at = max(self._stable_at, sent_at)

    def lose(self) -> None:
        """The coordinator does not know us, or not any more."""
        self._heard_at = self._stable_at = self.end = NEVER

    def count(self) -> None:
        """Let what was heard count."""
        missed_at = self._heard_at + self._settings.session_seconds
        dropped_at = self._stable_at + self._settings.rebalance_seconds
        self.end = min(missed_at, dropped_at) - LEASE_MARGIN_SECONDS

    @property
    def seconds(self) -> float:
        """What is left of it."""
        return max(0.0, self.end - self._clock())

    @property
    def is_over(self) -> bool:
        return self._clock() >= self.end

    def ended_within(self, seconds: float) -> bool:
        """Whether it goes on, or has ended not longer ago than that."""
        return self._clock() < self.end + seconds
