"""Whether this process has led its group without a gap. Runs on: worker."""

from __future__ import annotations

from typing import Protocol


class LeadingGroup(Protocol):
    """What is asked of a `Membership`."""

    @property
    def is_leader(self) -> bool: ...
    @property
    def tenure(self) -> int | None: ...


class Tenure:
    """Compares the group with the last look at it; for one thread."""

    def __init__(self, group: LeadingGroup) -> None:
        self._group = group
        self._seen: int | None = None

    def leads(self) -> bool:
        """Whether this process leads, and no other can; for any thread."""
        return self._group.is_leader

    def has_lapsed(self) -> bool:
        """Whether there was a moment since the last look at which another process could lead.

        It may be over: a process that was frozen is elected again when it wakes up.
        """
        before, self._seen = self._seen, self._group.tenure
        return self._seen is None or before not in (None, self._seen)
