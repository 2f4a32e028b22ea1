"""Puts together what all workers of this process's groups know, at most once a second.

Runs on: worker, on threads of the REST API. A worker that does not answer is missing, with the
reason; nothing is guessed for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.config.masking import mask
from sparkmirror.errors import MirrorError
from sparkmirror.monitoring.gathering.own_figures import OwnFigures
from sparkmirror.monitoring.gathering.worker_figures import (
    OddFigures,
    WorkerFigures,
    decode_figures,
)
from sparkmirror.monitoring.lag.partition_lag import PartitionLag
from sparkmirror.monitoring.monitored import Monitored, MonitoredGroup
from sparkmirror.types import TopicPartition

# Ten thousand partitions of another worker take 0.1 s to read.
FRESH_SECONDS, MANY_FRESH_SECONDS = 0.9, 2.9
MANY_PARTITIONS = 2000
MOST_ASKED = 16


class Peers(Protocol):
    """Asks other workers of a group."""

    def figures_of(self, group: MonitoredGroup, url: str) -> bytes:
        """The answer of `encode_figures` there. Raises MirrorError with the reason."""


@dataclass(frozen=True, slots=True)
class Member:
    """A worker of a group: what it said, or why it said nothing."""

    url: str
    figures: WorkerFigures | None
    problem: str = ""
    is_this: bool = False


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """A group at one time. `partitions` has each source partition of a connector once."""

    group: MonitoredGroup
    members: Sequence[Member]
    partitions: Sequence[tuple[PartitionLag, str]]

    @property
    def missing(self) -> list[str]:
        """Who did not answer, and why."""
        return [f"worker {each.url}: {each.problem}" for each in self.members if each.problem]


@dataclass(frozen=True, slots=True)
class Gathered:
    """All groups of this process."""

    at_ms: int
    groups: Sequence[GroupFigures]

    @property
    def partitions(self) -> list[tuple[PartitionLag, str]]:
        """With the id of the worker that told of it."""
        return [each for group in self.groups for each in group.partitions]

    @property
    def missing(self) -> list[str]:
        """What is not in here, with the reasons."""
        return [text for group in self.groups for text in group.missing]


class Gathering:
    """The newest figures; for any thread. `monitored` are the groups of this process."""

    def __init__(
        self,
        monitored: Monitored,
        own: OwnFigures,
        peers: Peers,
        clock: Callable[[], float] = time.monotonic,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._monitored = monitored
        self._own = own
        self._peers = peers
        self._clock = clock
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        self._last: tuple[float, Gathered] | None = None

    def own_of(self, prefix: str) -> WorkerFigures | None:
        """What this process alone knows; None: it has no such group."""
        groups = self._monitored()
        found = next((group for group in groups if group.prefix == prefix), None)
        return None if found is None else self._own.make(found)

    def now(self) -> Gathered:
        """At most a second old; three with thousands of partitions."""
        with self._lock:
            if self._last is not None:
                at, found = self._last
                many = sum(len(group.partitions) for group in found.groups) > MANY_PARTITIONS
                if self._clock() - at < (MANY_FRESH_SECONDS if many else FRESH_SECONDS):
                    return found
            found = Gathered(self._clock_ms(), [self._gather(group) for group in self._monitored()])
            self._last = self._clock(), found
            return found

    def _gather(self, group: MonitoredGroup) -> GroupFigures:
        own = self._own.make(group)
        others = [url for url in group.cluster.member.members if url != own.url]
        members = [Member(own.url, own, is_this=True)]
        if others:
            with ThreadPoolExecutor(min(len(others), MOST_ASKED)) as pool:
                members += pool.map(lambda url: self._ask(group, url), others)
        return GroupFigures(group, members, _merged(members))

    def _ask(self, group: MonitoredGroup, url: str) -> Member:
        try:
            return Member(url, decode_figures(self._peers.figures_of(group, url)))
        except OddFigures as error:
            return Member(url, None, str(error))
        except MirrorError as error:
            return Member(url, None, mask(str(error)) or type(error).__name__)


def _merged(members: Sequence[Member]) -> list[tuple[PartitionLag, str]]:
    """Each partition once: a running task knows better than the leader, and later is better."""
    found: dict[tuple[str, TopicPartition], tuple[PartitionLag, str]] = {}
    for member in members:
        if member.figures is None:
            continue
        for lag in member.figures.partitions:
            key = lag.connector, lag.source
            known = found.get(key)
            if known is None or _rank(lag) > _rank(known[0]):
                found[key] = lag, member.figures.id
    return sorted(found.values(), key=lambda each: (each[0].flow, each[0].source))


def _rank(lag: PartitionLag) -> tuple[bool, int]:
    return lag.is_running, lag.at_ms
