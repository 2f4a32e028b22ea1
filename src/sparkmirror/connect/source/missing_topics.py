"""Decides whether an empty list of source topics is real, or of a broker that has just started.

Runs on: worker, on the connector's thread. A ZooKeeper broker that has just been restarted lists
no topics until its controller has sent them. If that were believed, all tasks would lose their
partitions, and the log would blame filters or permissions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from sparkmirror.wire.admin.admin import TopicView

# An empty list is believed after this time.
BELIEVE_SECONDS = 15.0


class MissingTopics:
    """The source's last list of topics."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: dict[str, TopicView] = {}
        self._empty_since: float | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether the list is empty and not believed yet: list again soon."""
        now = self._clock()
        return self._empty_since is not None and now - self._empty_since < BELIEVE_SECONDS

    def complete(self, listed: Mapping[str, TopicView]) -> Mapping[str, TopicView]:
        """The list; while an empty one is not believed, the last one that was not empty."""
        if listed:
            self._empty_since = None
        elif self._empty_since is None:
            self._empty_since = self._clock()
        if not self.is_waiting:
            self._last = dict(listed)
        return self._last if self.is_waiting else listed
