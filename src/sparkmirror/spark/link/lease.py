"""Until when a task may write: a worker lends its tasks the time during which they are its own.

Runs on: executor and worker. A worker that is frozen, or cut off from its cluster, loses its place
in the group, and another one copies the same partitions. Its tasks must hold still by then, and one
that was frozen too must not send another byte when it wakes up. A task that is lent time again
continues: the worker lends only to tasks of its own membership (`connect/group/group_place`), in
which no other worker could run them.

    task                          worker
    renew, at=its clock  ------>  how long the task is its own, counted from when it asked
    until at + seconds   <------  lease, at, seconds (None: there are no others, for ever;
                                  0: the worker does not know, or knows that the task is not)

The end is counted from the moment of the question, by the task's own clock: an answer that lay in a
buffer while the task was frozen gives it no time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from sparkmirror.errors import LeaseError
from sparkmirror.spark.link.frames import LinkMessage

RENEW = "renew"
LEASE = "lease"
# A task whose lease was not renewed until so short before its end stores its positions and holds
# still: this share of the longest lease it ever had, but not more than these seconds.
SPARE_SHARE = 0.3
MOST_SPARE_SECONDS = 3.0
# A worker that answers no question for so long hangs: its tasks end.
SILENCE_SECONDS = 60.0

Lender = Callable[[], float | None]


def boot_clock() -> float:
    """Seconds that go on while the machine sleeps: the brokers' clocks do."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lease:
    """The task's end. Before the first answer nothing may be written."""

    def __init__(self, clock: Callable[[], float] = boot_clock) -> None:
        self._clock = clock
        self._end = -math.inf
        self._spare = 0.0
        self._heard_at = clock()

    def question(self) -> LinkMessage:
        """What the worker is asked."""
        return {"type": RENEW, "at": self._clock()}

    def renew(self, answer: LinkMessage) -> None:
        """Take the worker's answer."""
        self._heard_at = self._clock()
        seconds = answer["seconds"]
        if seconds is None:
            self._end = math.inf
            return
        self._end = float(answer["at"]) + seconds
        self._spare = max(self._spare, min(MOST_SPARE_SECONDS, SPARE_SHARE * seconds))

    @property
    def is_ending(self) -> bool:
        """True when it is time to store what was copied."""
        return self._end - self._clock() < self._spare

    @property
    def is_silent(self) -> bool:
        """True when the worker has not answered for long."""
        return self._clock() - self._heard_at > SILENCE_SECONDS

    @property
    def is_over(self) -> bool:
        """True when somebody else may be copying."""
        return self._clock() >= self._end

    def check(self) -> None:
        """Raise LeaseError when nothing may be written any more; called before every write."""
        if self.is_over:
            raise LeaseError("the worker does not know that it leads: nothing is written")


def for_ever() -> float | None:
    """What a worker without others lends."""
    return None


def is_over(lease: Lender) -> bool:
    """Whether somebody else may be doing what this worker does."""
    seconds = lease()
    return seconds is not None and seconds <= 0


def answer_renewal(question: LinkMessage, seconds: float | None) -> LinkMessage:
    """The worker's answer; `seconds` is how long it leads for sure, None for ever."""
    return {"type": LEASE, "at": question["at"], "seconds": seconds}
