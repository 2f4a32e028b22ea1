"""Log records as lines: for people, or as JSON for programs. Neither shows secrets.

    2026-11-19 12:40:59,123 INFO [mirror|task-0] a->b: RUNNING again, after 1 restarts
    {"time": "2026-11-19T12:40:59.123Z", "level": "INFO", "logger": "sparkmirror.spark.task_runner",
     "connector": "mirror", "task": 0, "flow": "a->b", "message": "RUNNING again, ..."}

A field without a value is left out, so that its type never changes.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import fields

from sparkmirror.config.log_lines import as_one_entry, without_controls
from sparkmirror.config.masking import mask
from sparkmirror.events import EventMark
from sparkmirror.logs.located_text import ORIGIN, locate, mark_of
from sparkmirror.logs.repeats import REPEATED

RESET, DIM = "\x1b[0m", "\x1b[2m"
COLOURS = {
    logging.DEBUG: DIM,
    logging.INFO: "\x1b[32m",
    logging.WARNING: "\x1b[33m",
    logging.ERROR: "\x1b[31m",
    logging.CRITICAL: "\x1b[1;31m",
}
PLACE_COLOUR = "\x1b[36m"
# The longest name of a level that is common.
LEVEL_WIDTH = len("WARNING")
# Fields of a mark that the line has anyway, or that tie events together for the page.
_NOT_SHOWN = frozenset({"kind", "flow", "connector", "task", "key", "ends", "cause"})


class LineFormatter(logging.Formatter):
    """One entry in Kafka Connect's order: time, level, connector and task, text.

    On a terminal the levels are aligned. In files and pipes one space follows each, as in Connect's
    log, which programs may parse.
    """

    def __init__(self, *, is_terminal: bool = False, has_colours: bool = False) -> None:
        super().__init__()
        self._width = LEVEL_WIDTH if is_terminal else 0
        self._has_colours = has_colours

    def format(self, record: logging.LogRecord) -> str:
        place, text = locate(record)
        begin = without_controls(mask(str(place))).replace("\n", "\\n")
        trace = trace_of(record)
        entry = as_one_entry(mask(f"{text}\n{trace}" if trace else text))
        level = record.levelname.ljust(self._width)
        at = self.formatTime(record)
        if not self._has_colours:
            return f"{at} {level} {begin}{entry}"
        colour = COLOURS.get(record.levelno, "")
        begin = f"{PLACE_COLOUR}{begin}{RESET}" if begin else ""
        return f"{DIM}{at}{RESET} {colour}{level}{RESET} {begin}{entry}"


class JsonFormatter(logging.Formatter):
    """One JSON object per line, in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        place, text = locate(record)
        mark = mark_of(record)
        found = {
            "time": utc_time(record.created),
            "level": record.levelname,
            "logger": record.__dict__.get(ORIGIN) or record.name,
            "connector": mask(place.connector),
            "task": place.task,
            "flow": mask(place.flow),
            "message": mask(text),
            "event": None if mark is None else mark.kind.value,
            **_details(mark),
            "repeated": record.__dict__.get(REPEATED),
            "trace": mask(trace_of(record)),
        }
        # 0 is a task and a partition.
        return json.dumps({name: value for name, value in found.items() if value not in (None, "")})


def _details(mark: EventMark | None) -> dict[str, object]:
    """What an event is about, beyond connector and task."""
    if mark is None:
        return {}
    given = {field.name: getattr(mark, field.name) for field in fields(mark)}
    return {
        name: mask(value) if isinstance(value, str) else value
        for name, value in given.items()
        if name not in _NOT_SHOWN
    }


def trace_of(record: logging.LogRecord) -> str:
    """The trace of the record's exception; empty if it has none."""
    parts = []
    if record.exc_info and record.exc_info[0] is not None:
        parts.append(logging.Formatter().formatException(record.exc_info))
    elif record.exc_text:
        parts.append(record.exc_text)
    if record.stack_info:
        parts.append(record.stack_info)
    return "\n".join(parts)


def utc_time(seconds: float) -> str:
    """2026-11-19T12:40:59.123Z"""
    whole, thousandths = divmod(int(seconds * 1000), 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{thousandths:03d}Z"
