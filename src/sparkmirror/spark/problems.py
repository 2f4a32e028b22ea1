"""Why partitions wait: for the worker's status, and for the log when it does not pass by itself.

Runs on: executor.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from sparkmirror.errors import KafkaError, told_if_denied
from sparkmirror.mirror.permissions import READ, WRITE, Feature, Place, meanwhile
from sparkmirror.types import TopicPartition

log = logging.getLogger(__name__)

# A topic just created or a leader just moved is an error for a moment: not worth a line in the log.
PASSING_SECONDS = 3.0
# A broker that is gone lets thousands of partitions wait.
MOST_LINES = 5
# The worker is told of a missing topic this often.
MISSING_SECONDS = 5.0


# What happens while a right is missing for a topic on either side, or for the offsets topic.
COPIED = meanwhile(Feature.COPY, Place.COPIED, READ)
REMOTE = meanwhile(Feature.COPY, Place.REMOTE, WRITE)
OFFSETS = meanwhile(Feature.COPY, Place.OFFSETS, WRITE)


@dataclass(slots=True)
class Problem:
    """Why a partition waits, since when (the loop's clock), and whether the log says so."""

    text: str
    since: float
    is_of_source: bool = False
    said: bool = False


class Problems(dict[TopicPartition, Problem]):
    """By source partition; by their own name for the partitions of the offsets topic."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock

    def note(
        self,
        tp: TopicPartition,
        error: KafkaError,
        *,
        is_of_source: bool = False,
        is_of_positions: bool = False,
    ) -> None:
        """`tp` waits, for this reason now."""
        without = COPIED if is_of_source else OFFSETS if is_of_positions else REMOTE
        text = told_if_denied(error, without)
        known = self.get(tp)
        if known is None:
            self[tp] = Problem(text, self._clock(), is_of_source)
        else:
            known.text = text

    def seconds(self, tp: TopicPartition) -> float:
        """How long `tp` has been waiting."""
        return self._clock() - self[tp].since

    def note_source(self, troubled: set[TopicPartition], error: KafkaError | None) -> None:
        """Exactly the `troubled` cannot be fetched, with or without an error of their own."""
        for tp in troubled - self.keys():
            self.note(
                tp, error or KafkaError(f"nobody leads {tp} on the source"), is_of_source=True
            )
        over = [tp for tp, row in self.items() if row.is_of_source and tp not in troubled]
        for tp in over:
            del self[tp]

    def say(self) -> None:
        """Log what has lasted, once; of many that begin to wait together, a few."""
        lasting = self._clock() - PASSING_SECONDS
        new = [
            (tp, problem)
            for tp, problem in self.items()
            if problem.since < lasting and not problem.said
        ]
        for tp, problem in new[:MOST_LINES]:
            log.warning("%s waits: %s", tp, problem.text)
        if len(new) > MOST_LINES:
            log.warning("%d more partitions wait", len(new) - MOST_LINES)
        for _, problem in new:
            problem.said = True


class Missing:
    """Target topics that are not there, and of which the worker is to be told now."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._not_before: dict[str, float] = {}
        self.topics: set[str] = set()

    def note(self, topic: str) -> None:
        """It is missing; called again and again while it is."""
        now = self._clock()
        if now >= self._not_before.get(topic, 0.0):
            self._not_before[topic] = now + MISSING_SECONDS
            self.topics.add(topic)

    def take(self) -> list[str]:
        """What the worker is told."""
        topics, self.topics = self.topics, set()
        return sorted(topics)
