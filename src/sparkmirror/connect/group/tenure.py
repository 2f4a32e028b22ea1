"""Whether this process has led its group, or been a member, without a gap. Runs on: worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class LeadingGroup(Protocol):
    """The part of `WorkerGroupMember` that is used here."""

    @property
    def is_leader(self) -> bool: ...
    @property
    def tenure(self) -> int | None: ...


class Continuity:
    """Compares the number of a tenure or membership with its last value; for one thread."""

    def __init__(self, count: Callable[[], int | None]) -> None:
        self._count = count
        self._seen: int | None = None

    def has_lapsed(self) -> bool:
        """Whether another process could have taken our place since the last call.

        It may be ours again: a process that was frozen may be elected again when it wakes up.
        """
        before, self._seen = self._seen, self._count()
        return self._seen is None or before not in (None, self._seen)


class Tenure:
    """Whether this process has led without a gap since the last call; for one thread."""

    def __init__(self, group: LeadingGroup) -> None:
        self._group = group
        self._continuity = Continuity(lambda: group.tenure)

    def leads(self) -> bool:
        """Whether this process leads and no other can; for any thread."""
        return self._group.is_leader

    def has_lapsed(self) -> bool:
        """Whether another process could have led since the last call."""
        return self._continuity.has_lapsed()
