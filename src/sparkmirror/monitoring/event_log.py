"""Remembers the log lines that are events: for the page, REST and the CLI.

Runs on: worker; for any thread. A handler of the logger "sparkmirror", so that an event and its log
line have the same words. It keeps the last 2,000; the same event again raises the count of the one
that is there, and one that ends another (`EventMark.ends`) says when.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sparkmirror.config.masking import mask
from sparkmirror.events import FIELD, EventKind, EventMark

KEPT = 2000
# The same words within this long are one event that happened several times.
FOLD_MS = 10 * 60_000
# These change how things are: each is told, because what came between two of them matters.
TURNS = frozenset(
    {
        EventKind.STARTED,
        EventKind.STOPPED,
        EventKind.RECOVERED,
        EventKind.REACHABLE,
        EventKind.REBALANCED,
        EventKind.ACTION,
    }
)
# So many events of one kind about one flow in a minute; those beyond are one event.
BURST_MS = 60_000
MOST_ALIKE = 50
# Of texts of others, such as a Spark trace in an error.
LONGEST_TEXT = 4000


@dataclass(frozen=True, slots=True)
class Event:
    """`id` grows with each event. `cause_id`: of the event that led to it; `ended_ms`: when it was
    over, None while it lasts or where nothing lasts (`lasts`). `count`: how often it happened;
    then `time_ms` is the first time, `last_ms` the last one.
    """

    id: int
    time_ms: int
    kind: EventKind
    text: str
    level: int = logging.INFO
    flow: str = ""
    connector: str = ""
    task: str = ""
    topic: str = ""
    partition: int | None = None
    cluster: str = ""
    group: str = ""
    cause_id: int | None = None
    lasts: bool = False
    ended_ms: int | None = None
    count: int = 1
    last_ms: int = 0
    user: str = ""
    # Grows with every change: a stream sends what is newer than what it sent.
    version: int = 0


class Where(NamedTuple):
    """What the thread that logs works for; empty where it is unknown."""

    flow: str = ""
    connector: str = ""
    task: str = ""


@dataclass(slots=True)
class _Burst:
    """Events of one kind about one flow, within a minute."""

    began_ms: int
    events: int = 0
    # The event that stands for those beyond MOST_ALIKE.
    rest: int | None = None


class EventLog(logging.Handler):
    """Give it to the logger "sparkmirror".

    `clock_ms` is the wall clock; `where` fills in what a mark leaves open, in the thread that logs.
    """

    def __init__(
        self,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        where: Callable[[], Where] = Where,
    ) -> None:
        super().__init__(logging.NOTSET)
        self._clock_ms = clock_ms
        self._where = where
        self._bursts: dict[tuple[object, ...], _Burst] = {}
        self._guard = threading.Lock()
        self._events: OrderedDict[int, Event] = OrderedDict()
        # By key: the events that last, or the last one.
        self._by_key: dict[str, list[int]] = {}
        self._same: dict[tuple[object, ...], int] = {}
        self._last_id = self._version = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Called by logging."""
        mark = getattr(record, FIELD, None)
        if isinstance(mark, EventMark):
            text = mask(record.getMessage())[:LONGEST_TEXT]
            here = self._where()
            mark = replace(
                mark,
                flow=mark.flow or here.flow,
                connector=mark.connector or here.connector,
                task=mark.task or here.task,
            )
            with self._guard:
                self._take(mark, text, record.levelno)

    def events(self, since_id: int = 0) -> list[Event]:
        """Those with a higher id, oldest first."""
        with self._guard:
            return [event for event in self._events.values() if event.id > since_id]

    def changed(self, since_version: int) -> Sequence[Event]:
        """Those that are new or have changed since, by `Event.version`."""
        with self._guard:
            found = [event for event in self._events.values() if event.version > since_version]
        return sorted(found, key=lambda event: event.version)

    # -- inside, with the guard --------------------------------------------------------------------

    def _take(self, mark: EventMark, text: str, level: int) -> None:
        now = self._clock_ms()
        if mark.ends:
            self._end(mark.key, now)
        about = (mark, text)
        known = None
        if mark.kind not in TURNS:
            known = self._events.get(self._same.get(about, -1))
        if known is not None and now - known.last_ms <= FOLD_MS and known.ended_ms is None:
            self._keep(replace(known, count=known.count + 1, last_ms=now))
            return
        if not mark.key and self._joins_burst(mark, text, now):
            return
        self._last_id += 1
        event = Event(
            id=self._last_id,
            time_ms=now,
            last_ms=now,
            kind=mark.kind,
            text=text,
            level=level,
            flow=mark.flow,
            connector=mark.connector,
            task=mark.task,
            topic=mark.topic,
            partition=mark.partition,
            cluster=mark.cluster,
            group=mark.group,
            cause_id=self._cause(mark.cause),
            lasts=bool(mark.key) and not mark.ends,
            user=mark.user,
        )
        self._keep(event)
        self._same[about] = event.id
        if mark.key and not mark.ends:
            self._by_key[mark.key] = [*self._lasting(mark.key), event.id]
        self._drop_oldest()

    def _joins_burst(self, mark: EventMark, text: str, now: int) -> bool:
        """Of thousands of topics that are created at once, the first have an event each."""
        if len(self._bursts) > KEPT:
            self._bursts.clear()
        about = mark.kind, mark.flow, mark.connector, mark.cluster
        burst = self._bursts.get(about)
        if burst is None or now - burst.began_ms > BURST_MS:
            burst = self._bursts[about] = _Burst(now)
        burst.events += 1
        if burst.events <= MOST_ALIKE:
            return False
        rest = self._events.get(burst.rest or -1)
        if rest is None:
            burst.rest = self._last_id + 1
            return False
        count = rest.count + 1
        self._keep(replace(rest, text=f"{count} more, the last: {text}", count=count, last_ms=now))
        return True

    def _end(self, key: str, now: int) -> None:
        for lasting in self._lasting(key):
            self._keep(replace(self._events[lasting], ended_ms=now))

    def _lasting(self, key: str) -> list[int]:
        known = [self._events[at] for at in self._by_key.get(key, ()) if at in self._events]
        return [event.id for event in known if event.ended_ms is None]

    def _cause(self, key: str) -> int | None:
        """The event that lasts, else the one that was last."""
        known = [at for at in self._by_key.get(key, ()) if at in self._events] if key else []
        return known[-1] if known else None

    def _keep(self, event: Event) -> None:
        self._version += 1
        self._events[event.id] = replace(event, version=self._version)

    def _drop_oldest(self) -> None:
        while len(self._events) > KEPT:
            self._events.popitem(last=False)
        if len(self._same) > 2 * KEPT:
            self._same = {about: at for about, at in self._same.items() if at in self._events}
        if len(self._by_key) > 2 * KEPT:
            found = {key: self._lasting(key) for key in self._by_key}
            self._by_key = {key: lasting for key, lasting in found.items() if lasting}
