"""Which topics the next metadata request asks about: all of them, or only those still in doubt.

Runs on: executor and worker, on the event loop's thread. One topic that is missing, or has no
leader, is asked for about once a second. Asking for all others each time would cost a flow of
10,000 partitions a tenth of a core for as long as it lasts.
"""

from __future__ import annotations

from collections.abc import Iterable


class WantedTopics:
    """The topics whose metadata is kept, and which of them have to be asked about."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        # Those that some response was about.
        self.looked_up: set[str] = set()
        self._in_doubt: set[str] = set()
        self._are_all_in_doubt = False
        # When to ask about all of them at the latest.
        self.all_due = 0.0

    def add(self, topics: Iterable[str]) -> bool:
        """Keep metadata of these too; return whether any of them is new."""
        new = set(topics) - self.names
        self.names |= new
        self._in_doubt |= new
        return bool(new)

    def drop(self, topics: set[str]) -> None:
        """Forget these."""
        self.names -= topics
        self.looked_up -= topics
        self._in_doubt -= topics

    def doubt(self, topics: Iterable[str]) -> None:
        """Ask about these again."""
        self._in_doubt |= self.names.intersection(topics)

    def doubt_all(self) -> None:
        """Ask about all of them again: a leader has moved, and others may have moved with it."""
        self._are_all_in_doubt = True

    def take(self, now: float, max_age: float) -> frozenset[str]:
        """The topics to ask about now; all of them if the last time was `max_age` seconds ago."""
        if self._are_all_in_doubt or now >= self.all_due or self._in_doubt >= self.names:
            self.all_due = now + max_age
            taken = frozenset(self.names)
        else:
            taken = frozenset(self._in_doubt)
        self._in_doubt, self._are_all_in_doubt = set(), False
        return taken

    @property
    def has_doubts(self) -> bool:
        """Whether any has to be asked about soon."""
        return bool(self._in_doubt) or self._are_all_in_doubt
