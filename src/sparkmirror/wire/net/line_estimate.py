"""How long and how wide the line to a broker is, as seen from the responses that came over it.

Runs on: executor and worker, on the event loop's thread. Pure: the clock's time is handed in.

What may be in flight is twice what the line holds: rate x round trip. It begins low, with more for
a longer line, and grows by every byte that comes, so that each round trip doubles it, as TCP's slow
start does: until the rate no longer grows.
"""

from __future__ import annotations

from collections import deque
from math import isfinite

# A line with a shorter round trip costs nothing: 4 MB per round trip are 400 MB/s, and what a
# record waits for the next request is half of it.
LONG_SECONDS = 0.010
# Rates are measured over a round trip, and never over less than this.
SHORTEST_SAMPLE_SECONDS = 0.05
# The highest of so many rates counts: a target that pauses for a moment is no narrow line.
RATES = 8
# So many rates in a row that are not higher by this factor end the start.
STEADY_RATES = 4
RISING = 1.2
# The shortest round trip of the last two spells of this length counts: lines do change.
SPELL_SECONDS = 10.0
# What a long line is taken to hold before a byte has come: its round trips are too long to find out
# from nothing. A narrow line is asked for that much once.
FIRST_BYTES_PER_SECOND = 80e6
MOST_FIRST_BYTES = 28 << 20
# Responses that queue on a narrow line take longer, the more is in flight: no reason for even more.
MOST_TRIPS = 2.0
FOREVER = float("inf")


class LineEstimate:
    """Round trip and rate of the responses of one broker, all its connections together."""

    __slots__ = (
        "_bytes",
        "_grown",
        "_longest",
        "_rates",
        "_since",
        "_spell_ends",
        "_steady",
        "_trips",
    )

    def __init__(self, round_trip: float = 0.0) -> None:
        """`round_trip` is that of the line while nothing queues on it; 0: not known."""
        self._rates: deque[float] = deque(maxlen=RATES)
        self._bytes = 0
        self._since = 0.0
        # What came since the start, and how many samples in a row were no faster.
        self._grown = min(MOST_FIRST_BYTES, int(round_trip * FIRST_BYTES_PER_SECOND))
        self._steady = 0
        self._longest = MOST_TRIPS * round_trip if round_trip else FOREVER
        # The shortest round trip of the last spell and of this one.
        self._trips = FOREVER, FOREVER
        self._spell_ends = 0.0

    @property
    def round_trip(self) -> float:
        """In seconds; infinite before the first response."""
        return min(*self._trips, self._longest) if any(map(isfinite, self._trips)) else FOREVER

    @property
    def rate(self) -> float:
        """Bytes per second; 0 before the first sample."""
        return max(self._rates, default=0.0)

    def begin(self, now: float) -> None:
        """Requests leave after a pause, which is no measure of the line."""
        self._bytes, self._since = 0, now

    def note(self, seconds: float, size: int, now: float) -> None:
        """A response of so many bytes came, so long after its request had left."""
        if now >= self._spell_ends:
            self._trips = self._trips[1], FOREVER
            self._spell_ends = now + SPELL_SECONDS
        self._trips = self._trips[0], min(self._trips[1], seconds)
        self._bytes += size
        self._grown += size
        elapsed = now - self._since
        if elapsed >= max(self.round_trip, SHORTEST_SAMPLE_SECONDS):
            self._add(self._bytes / elapsed)
            self._bytes, self._since = 0, now

    def window_bytes(self, least: int, most: int) -> int:
        """How many bytes may be in flight."""
        grown = self._grown if self._steady < STEADY_RATES else 0
        known = int(2 * self.rate * self.round_trip) if self._rates else 0
        return min(most, max(least + grown, known))

    def _add(self, rate: float) -> None:
        if self._steady < STEADY_RATES:
            self._steady = 0 if rate > self.rate * RISING else self._steady + 1
        self._rates.append(rate)
