"""Limits what repeats: of one template and place, so many lines a minute, then one that counts.

Further lines are only counted, except that each text of an error appears when it is the first of
its minute. What is counted is reported when its minute is over, when another template needs its
place in the bounded memory, or at the end. The text that will be shown is masked at once, because
secrets may be forgotten before that.
"""

from __future__ import annotations

import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

from sparkmirror.config.masking import mask
from sparkmirror.logs.located_text import PLACE, TEMPLATE, LocatedText, locate
from sparkmirror.logs.places import LogPlace

# One line a second is still read; a template that is faster says nothing new.
MOST_A_MINUTE = 60
WINDOW_SECONDS = 60.0
# Templates and places that are remembered, and error texts of one of them.
MOST_KEYS = 1000
MOST_ERRORS = 200
MOST_CHARACTERS = 1000
# With fewer letters of its own, a template says too little: "[%s] %s" has any text.
_FEWEST_LETTERS = 8
_PLACEHOLDER = re.compile(r"%[-#0 +]*[0-9.*]*[a-zA-Z%]")
_VALUES = re.compile(r"'[^']*'|\d+")

REPEATED = "repeated"
"""The attribute of a counting line that has the number."""


@dataclass(slots=True)
class RepeatWindow:
    """What came of one template and place in the minute that began at `began`."""

    began: float
    place: LogPlace
    level: int
    logger: str
    shown: int = 0
    left_out: int = 0
    text: str = ""
    errors: set[int] = field(default_factory=set)


class RepeatLimiter:
    """For one thread at a time; `clock` gives seconds that only go forward."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, most_a_minute: int = MOST_A_MINUTE
    ) -> None:
        self._clock = clock
        self._most = most_a_minute
        # By age, the oldest first.
        self._windows: OrderedDict[Hashable, RepeatWindow] = OrderedDict()

    def take(self, record: logging.LogRecord) -> Iterator[logging.LogRecord]:
        """What to write because of `record`: counting lines that are due, and itself, or neither.

        Whoever turns on DEBUG for a logger wants to see all of its lines.
        """
        yield from self.due()
        if logging.getLogger(record.name).isEnabledFor(logging.DEBUG):
            yield record
            return
        located = locate(record)
        key = _key(record, located)
        window = self._windows.get(key)
        if window is None:
            if len(self._windows) >= MOST_KEYS:
                _, oldest = self._windows.popitem(last=False)
                yield from _counted(oldest)
            window = RepeatWindow(self._clock(), located.place, record.levelno, record.name)
            self._windows[key] = window
        is_news = record.levelno >= logging.ERROR and _add_error(window, located.text)
        if window.shown < self._most or is_news:
            window.shown += 1
            yield record
            return
        window.left_out += 1
        if not window.text:
            window.text = mask(located.text)[:MOST_CHARACTERS]

    def due(self) -> Iterator[logging.LogRecord]:
        """Counting lines of minutes that are over."""
        until = self._clock() - WINDOW_SECONDS
        while self._windows:
            oldest = next(iter(self._windows.values()))
            if oldest.began > until:
                return
            self._windows.popitem(last=False)
            yield from _counted(oldest)

    def end(self) -> Iterator[logging.LogRecord]:
        """Counting lines of all that is not reported yet."""
        windows, self._windows = self._windows, OrderedDict()
        for window in windows.values():
            yield from _counted(window)

    @property
    def seconds_left(self) -> float | None:
        """When `due` should be called; None: nothing is left out."""
        began = next((each.began for each in self._windows.values() if each.left_out), None)
        return None if began is None else max(0.0, began + WINDOW_SECONDS - self._clock())


def _add_error(window: RepeatWindow, text: str) -> bool:
    """Remember an error; whether it is new in its window, or may be: rather twice than never."""
    digest = hash(text)
    is_new = digest not in window.errors
    if len(window.errors) >= MOST_ERRORS:
        window.errors.clear()
    window.errors.add(digest)
    return is_new


def _key(record: logging.LogRecord, located: LocatedText) -> Hashable:
    template = record.__dict__.get(TEMPLATE) or record.msg
    if not isinstance(template, str):
        template = str(template)
    letters = sum(map(str.isalpha, _PLACEHOLDER.sub("", template)))
    same = (
        template if letters >= _FEWEST_LETTERS else _VALUES.sub("#", located.text[:MOST_CHARACTERS])
    )
    return hash(same), located.place, record.levelno


def _counted(window: RepeatWindow) -> Iterator[logging.LogRecord]:
    if not window.left_out:
        return
    times = "once more" if window.left_out == 1 else f"{window.left_out} times"
    text = f"repeated {times} in the last minute: {window.text}"
    record = logging.LogRecord(window.logger, window.level, "", 0, text, None, None)
    record.__dict__ |= {PLACE: window.place, REPEATED: window.left_out}
    yield record
