"""Why partitions wait: for the worker's status, and for the log when it does not pass by itself.

Runs on: executor.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.errors import BrokerError, KafkaError, TransportError, describe_error
from sparkmirror.events import EventKind, event
from sparkmirror.mirror.permissions import READ, WRITE, Feature, ResourceKind, consequence_without
from sparkmirror.types import TopicPartition
from sparkmirror.wire.net.outages import SilentError
from sparkmirror.wire.protocol.error_codes import (
    LEADER_NOT_AVAILABLE,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
)

log = logging.getLogger(__name__)

# A topic just created or a leader just moved is an error for a moment: not worth a line in the log.
PASSING_SECONDS = 3.0
# A broker that is gone lets thousands of partitions wait: so many lines of their own, until all
# that was logged is over; and one line for the others every so many seconds.
MOST_LINES = 5
MORE_SECONDS = 10.0
# A missing topic is reported to the worker this often.
MISSING_SECONDS = 5.0
# The key of the events of partitions that wait: of one task, all end together.
WAITING = "waiting"


# What happens while a permission is missing for a topic on either side, or for the offsets topic.
COPIED = consequence_without(Feature.COPY, ResourceKind.COPIED, READ)
REMOTE = consequence_without(Feature.COPY, ResourceKind.REMOTE, WRITE)
OFFSETS = consequence_without(Feature.COPY, ResourceKind.OFFSETS, WRITE)
OLD_FORMAT = (
    "the topic is in a message format before 0.11, which has no idempotent writes; it is not "
    "copied until its setting message.format.version is deleted on the target, the others are"
)


SILENT = (
    "%s does not respond: no byte from %s for %.0f s; %d partitions wait, and nothing of them is "
    "copied until it does; look at its brokers and at the network"
)


@dataclass(slots=True)
class Problem:
    """Why a partition waits, and since when (the loop's clock)."""

    text: str
    since: float
    is_of_source: bool = False
    is_of_connection: bool = False
    # The error code of now, and since when.
    code: int | None = None
    code_since: float = 0.0
    silence: SilentError | None = None

    @property
    def worth_a_line_since(self) -> float:
        """A recreated topic has no leader for a moment, just as a new one."""
        return self.code_since if self.code == LEADER_NOT_AVAILABLE else self.since


class PartitionProblems(dict[TopicPartition, Problem]):
    """By source partition; by their own name for the partitions of the offsets topic."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        # Logged problems, by when they began; those of them that are over, by when they ended.
        self._logged: dict[TopicPartition, float] = {}
        self._over: dict[TopicPartition, float] = {}
        self._lines = 0
        self._next_line = 0.0
        # The clusters whose silent brokers were logged: source (True), target (False).
        self._silent: set[bool] = set()

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
        code = error.code if isinstance(error, BrokerError) else None
        is_old_format = code == UNSUPPORTED_FOR_MESSAGE_FORMAT
        known = self.setdefault(tp, Problem("", self._clock(), is_of_source))
        known.text = describe_error(error, OLD_FORMAT if is_old_format else "", if_denied=without)
        if code != known.code:
            known.code, known.code_since = code, self._clock()
        known.is_of_connection = isinstance(error, TransportError)
        known.silence = error if isinstance(error, SilentError) else None

    def lasting(self, tp: TopicPartition) -> str:
        """Why `tp` waits, "" if it does not, or as it may pass within moments."""
        found = self.get(tp)
        if found is None or self._clock() - found.worth_a_line_since < PASSING_SECONDS:
            return ""
        return found.text

    def seconds(self, tp: TopicPartition) -> float:
        """How long `tp` has been waiting."""
        return self._clock() - self[tp].since

    def note_source(self, troubled: set[TopicPartition], error: KafkaError | None) -> None:
        """Exactly the `troubled` cannot be fetched, with or without an error of their own."""
        for tp in troubled - self.keys():
            self.note(
                tp, error or KafkaError(f"{tp} has no leader on the source"), is_of_source=True
            )
        over = [tp for tp, row in self.items() if row.is_of_source and tp not in troubled]
        for tp in over:
            del self[tp]

    def log_lasting(self) -> None:
        """Log what has lasted, once, and when it is over; of many that wait, a few."""
        if not self and not self._logged:
            return
        self._log_over()
        lasting = self._clock() - PASSING_SECONDS
        new = {
            tp: problem
            for tp, problem in self.items()
            if problem.worth_a_line_since < lasting and tp not in self._logged
        }
        new = self._log_silent(new)
        alone = dict(list(new.items())[: max(0, MOST_LINES - self._lines)])
        for tp, problem in alone.items():
            mark = _waits(topic=tp.topic, partition=tp.partition)
            log.warning("%s waits: %s", tp, problem.text, extra=mark)
        self._lines += len(alone)
        self._mark_logged(alone)
        more = {tp: problem for tp, problem in new.items() if tp not in alone}
        if more and self._clock() >= self._next_line:
            why = next(iter(more.values())).text
            names = _names(more)
            log.warning("%d more partitions wait: %s: %s", len(more), names, why, extra=_waits())
            self._next_line = self._clock() + MORE_SECONDS
            self._mark_logged(more)

    def _log_silent(
        self, problems: Mapping[TopicPartition, Problem]
    ) -> dict[TopicPartition, Problem]:
        """Log one line per cluster with silent brokers; return the problems of other kinds."""
        silent = {tp: each for tp, each in problems.items() if each.silence is not None}
        for is_source in {each.is_of_source for each in silent.values()} - self._silent:
            rows = [each for each in silent.values() if each.is_of_source is is_source]
            words = _in_words([each.silence for each in rows if each.silence])
            log.warning(SILENT, *words, extra=_waits(EventKind.UNREACHABLE, cluster=words[0]))
            self._silent.add(is_source)
        joining = {
            tp: each
            for tp, each in problems.items()
            if each.is_of_connection and each.is_of_source in self._silent
        }
        self._mark_logged(joining)
        return {tp: each for tp, each in problems.items() if tp not in joining}

    def _mark_logged(self, problems: Mapping[TopicPartition, Problem]) -> None:
        self._logged |= {tp: problem.since for tp, problem in problems.items()}

    def _log_over(self) -> None:
        """Log what is over; a problem that returns within moments was not."""
        now = self._clock()
        self._over = {tp: self._over.get(tp, now) for tp in self._logged if tp not in self}
        if not self._over or now - max(self._over.values()) < PASSING_SECONDS:
            return
        longest = max(at - self._logged[tp] for tp, at in self._over.items())
        left = len(self._logged) - len(self._over)
        # A warning, like the line that it revokes: tasks send nothing below that to the worker.
        log.warning(
            "%d partitions no longer wait, after up to %.0f s: %s; %s",
            len(self._over),
            longest,
            _names(self._over),
            f"{left} still wait" if left else "none waits",
            extra=event(EventKind.RECOVERED, key=WAITING, ends=not left),
        )
        for tp in self._over:
            del self._logged[tp]
        self._over = {}
        self._lines = min(self._lines, left)
        # Partitions that wait for another reason must not keep the next silence from being logged.
        self._silent &= {
            each.is_of_source
            for tp, each in self.items()
            if tp in self._logged and each.is_of_connection
        }


class MissingTargets:
    """Target topics that are missing, to be reported to the worker."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._not_before: dict[str, float] = {}
        self.topics: set[str] = set()

    def note(self, topic: str) -> None:
        """It is missing; called repeatedly while it is."""
        now = self._clock()
        if now >= self._not_before.get(topic, 0.0):
            self._not_before[topic] = now + MISSING_SECONDS
            self.topics.add(topic)

    def take(self) -> list[str]:
        """What to report to the worker now."""
        topics, self.topics = self.topics, set()
        return sorted(topics)


def _in_words(silences: Sequence[SilentError]) -> tuple[str, str, float, int]:
    """The cluster, its silent brokers, how long the first of them is silent, and what waits."""
    brokers = ", ".join(sorted({each.broker for each in silences}))
    longest = max(each.seconds for each in silences)
    return silences[0].cluster, brokers, longest, len(silences)


def _waits(
    kind: EventKind = EventKind.STUCK,
    *,
    topic: str = "",
    partition: int | None = None,
    cluster: str = "",
) -> Mapping[str, object]:
    return event(kind, topic=topic, partition=partition, cluster=cluster, key=WAITING)


def _names(partitions: Iterable[TopicPartition]) -> str:
    names = sorted(map(str, partitions))
    more = len(names) - MOST_LINES
    return ", ".join(names[:MOST_LINES]) + (f" and {more} more" if more > 0 else "")
