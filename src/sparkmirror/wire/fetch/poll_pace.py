"""How many polls of one session are in flight, and how far apart they leave.

Runs on: executor and worker. Pure: the clock's time is handed in.

A record that comes when no poll waits at the broker waits for the next one: on a long line up to a
round trip. So while records keep coming, a poll leaves every few milliseconds, whether or not the
response to the one before has come: brokers keep the requests of a connection in order, and so does
a session. A poll can only name offsets that were known when it left. So each response repeats what
came during the last round trip, which is skipped: the price is bounded by `MOST_REPEATED`.
"""

from __future__ import annotations

from math import ceil

from sparkmirror.wire.net.line_estimate import LONG_SECONDS

# Between two polls, at least. A record waits half of it on average.
SHORTEST_SECONDS = 0.004
# Bytes per second, mostly of records that have come before.
MOST_REPEATED = 10 << 20
MOST_POLLS = 100
# After so long without a new record, or so many round trips, one poll at a time is enough.
QUIET_SECONDS = 1.0
QUIET_TRIPS = 4
# A response that takes longer waited: for records, or for a line that is full.
PROMPT_TRIPS = 1.5
PROMPT_SECONDS = 0.005
LATE_TRIPS = 2.0
LATE_SECONDS = 0.05


class PollPace:
    """The pace of one session."""

    __slots__ = ("_interval", "_live_until", "_size")

    def __init__(self) -> None:
        self._interval = SHORTEST_SECONDS
        self._live_until = float("-inf")
        self._size = 0.0

    def note_response(
        self, took: float, round_trip: float, size: int, *, is_news: bool, now: float
    ) -> None:
        """A response of so many bytes came; `is_news` if it has records that are new."""
        if round_trip < LONG_SECONDS:
            return
        is_live = now < self._live_until
        is_prompt = took < round_trip * PROMPT_TRIPS + PROMPT_SECONDS
        if is_news and (is_live or is_prompt):
            self._live_until = now + max(QUIET_SECONDS, QUIET_TRIPS * round_trip)
        self._size += (size - self._size) / 4
        is_late = is_live and took > round_trip * LATE_TRIPS + LATE_SECONDS
        self._interval *= 1.25 if is_late else 0.98
        least = max(SHORTEST_SECONDS, self._size / MOST_REPEATED)
        self._interval = min(max(self._interval, least), max(least, round_trip))

    def interval(self, round_trip: float, now: float) -> float:
        """Seconds between polls; 0: the next one leaves after the response to the last."""
        if now >= self._live_until or self._interval >= round_trip or round_trip < LONG_SECONDS:
            return 0.0
        return self._interval

    def polls(self, round_trip: float, now: float) -> int:
        """How many may be in flight."""
        interval = self.interval(round_trip, now)
        return min(MOST_POLLS, ceil(round_trip / interval) + 1) if interval else 1
