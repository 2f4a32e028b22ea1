"""Until when a task may write: a worker lends its tasks the time during which they are its own.

Runs on: executor and worker. A worker that is frozen, or cut off from its cluster, loses its place
in the group, and another one copies the same partitions. Its tasks must pause by then, and one
that was frozen too must not send another byte when it wakes up. A task that is lent time again
continues: the worker lends only to tasks of its own membership (`connect/group/group_place`), in
which no other worker could run them.

    task                          worker
    renew, at=its clock  ------>  how long the task is its own, counted from when it asked
    until at + seconds   <------  lease, at, seconds (None: there are no others, for ever;
                                  0: the worker does not know, or knows that the task is not)

The end is counted from the moment of the request, by the task's own clock: a response that lay in a
buffer while the task was frozen does not extend it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from sparkmirror.errors import LeaseError
from sparkmirror.spark.link.frames import LinkMessage

RENEW = "renew"
LEASE = "lease"
# A task whose lease was not renewed until this short before its end stores its positions and
# pauses: this share of the longest lease it ever had, but not more than these seconds.
SPARE_SHARE = 0.3
MOST_SPARE_SECONDS = 3.0
# A worker that does not respond for this long hangs: its tasks end.
SILENCE_SECONDS = 60.0

Lender = Callable[[], float | None]


def boot_clock() -> float:
    """Seconds that also count while the machine sleeps, as on the brokers' clocks."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lease:
    """The task's end of it. Before the first response nothing may be written."""

    def __init__(self, clock: Callable[[], float] = boot_clock) -> None:
        self._clock = clock
        self._end = -math.inf
        self._spare = 0.0
        self._message_at = clock()

    def question(self) -> LinkMessage:
        """The message that asks for a renewal."""
        return {"type": RENEW, "at": self._clock()}

    def renew(self, response: LinkMessage) -> None:
        """Take the worker's response."""
        self._message_at = self._clock()
        seconds = response["seconds"]
        if seconds is None:
            self._end = math.inf
            return
        self._end = float(response["at"]) + seconds
        self._spare = max(self._spare, min(MOST_SPARE_SECONDS, SPARE_SHARE * seconds))

    @property
    def is_ending(self) -> bool:
        """True when it is time to store what was copied."""
        return self._end - self._clock() < self._spare

    @property
    def is_silent(self) -> bool:
        """True when the worker has not responded for long."""
        return self._clock() - self._message_at > SILENCE_SECONDS

    @property
    def is_over(self) -> bool:
        """True when another worker may be copying."""
        return self._clock() >= self._end

    def check(self) -> None:
        """Raise LeaseError when nothing may be written; called before every write."""
        if self.is_over:
            raise LeaseError("no valid lease from the worker: nothing is written")


def for_ever() -> float | None:
    """The lease of a worker that has no group."""
    return None


def is_over(lease: Lender) -> bool:
    """Whether another worker may be doing what this one does."""
    seconds = lease()
    return seconds is not None and seconds <= 0


def renewal_response(question: LinkMessage, seconds: float | None) -> LinkMessage:
    """The worker's response; `seconds`: how long the task may write, None: no limit."""
    return {"type": LEASE, "at": question["at"], "seconds": seconds}
