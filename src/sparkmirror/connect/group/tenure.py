"""Whether this process has led its group, or was a member of it, without a gap. Runs on: worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class LeadingGroup(Protocol):
    """What is asked of a `WorkerGroupMember`."""

    @property
    def is_leader(self) -> bool: ...
    @property
    def tenure(self) -> int | None: ...


class Continuity:
    """Compares a count of tenures or memberships with the last look at it; for one thread."""

    def __init__(self, count: Callable[[], int | None]) -> None:
        self._count = count
        self._seen: int | None = None

    def has_lapsed(self) -> bool:
        """Whether there was a moment since the last look at which another could take our place.

        It may be over: a process that was frozen is elected, or assigned tasks, when it wakes up.
        """
        before, self._seen = self._seen, self._count()
        return self._seen is None or before not in (None, self._seen)


class Tenure:
    """Compares the group with the last look at it; for one thread."""

    def __init__(self, group: LeadingGroup) -> None:
        self._group = group
        self._continuity = Continuity(lambda: group.tenure)

    def leads(self) -> bool:
        """Whether this process leads, and no other can; for any thread."""
        return self._group.is_leader

    def has_lapsed(self) -> bool:
        """Whether there was a moment since the last look at which another process could lead."""
        return self._continuity.has_lapsed()
