"""Whether this process has led its group without a gap. Runs on: worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sparkmirror.spark.lease import boot_clock


class Group(Protocol):
    """What is asked of a `Membership`."""

    @property
    def is_leader(self) -> bool: ...
    @property
    def generation(self) -> int: ...
    def lease_seconds(self) -> float: ...


class Tenure:
    """Compares the group with the last look at it; for one thread."""

    def __init__(self, group: Group, clock: Callable[[], float] = boot_clock) -> None:
        self._group = group
        self._clock = clock
        self._lease_until = 0.0
        self._generation = -1

    def leads(self) -> bool:
        """Whether this process leads, and nobody else can; for any thread."""
        return self._group.is_leader and self._group.lease_seconds() > 0

    def has_lapsed(self) -> bool:
        """Whether there was a moment since the last look at which another process could lead.

        It may be over: a process that was frozen is elected again when it wakes up. But not
        without a new generation of the group: else only this thread was slow.
        """
        until, generation = self._lease_until, self._generation
        self._generation = self._group.generation
        self._lease_until = self._clock() + self._group.lease_seconds()
        is_late = self._clock() > until and self._generation != generation
        return is_late or not self.leads()
