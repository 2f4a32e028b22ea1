"""Source topics that are suddenly missing from the list, all at once: deleted, or not known yet.

Runs on: worker, on the connector's thread. A ZooKeeper broker that has just been restarted lists
no topics until its controller has told it of them. Believed, that would take all partitions away
from their tasks, and blame filters or rights.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from sparkmirror.wire.admin.admin import TopicView

# An empty list is believed after so many seconds.
BELIEVE_SECONDS = 15.0


class MissingTopics:
    """What the source listed last, from round to round."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: dict[str, TopicView] = {}
        self._empty_since: float | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether the list is empty, and not believed yet: ask again soon."""
        now = self._clock()
        return self._empty_since is not None and now - self._empty_since < BELIEVE_SECONDS

    def complete(self, listed: Mapping[str, TopicView]) -> Mapping[str, TopicView]:
        """The list, or the last one that was not empty as long as an empty one is in doubt."""
        if listed:
            self._empty_since = None
        elif self._empty_since is None:
            self._empty_since = self._clock()
        if not self.is_waiting:
            self._last = dict(listed)
        return self._last if self.is_waiting else listed
