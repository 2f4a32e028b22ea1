"""The place of a log record and its text without what the place says already.

Pure, except that it asks which place the thread is at. Calls of loggers put their own labels before
their text, so that it makes sense wherever it is read; here all of them become one form.
"""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import NamedTuple

from sparkmirror.events import FIELD, EventMark
from sparkmirror.logs.places import ARROW, LogPlace, current_place, place_of_label

PLACE = "place"
"""The attribute of a record that has its place, if the thread's is not meant."""
TEMPLATE = "template"
"""The attribute with the text before values were filled in, of a line that came as a text."""
ORIGIN = "origin"
"""The attribute with the name of the logger, if another process made the line."""

_BRACKETS = re.compile(r"\[([^\[\]\n]{1,300})\] ")
# Templates that begin with what kind of thing the label names.
_KINDS = ("connector", "task")
_TASK_NUMBER = re.compile(r"(?:.*-)?(\d+)", re.DOTALL)


class LocatedText(NamedTuple):
    """What a line is about, and its text."""

    place: LogPlace
    text: str


def locate(record: logging.LogRecord) -> LocatedText:
    """The place, from the record's mark, its label or its thread; and the text without a label."""
    text = text_of(record)
    place = record.__dict__.get(PLACE)
    if isinstance(place, LogPlace):
        return LocatedText(place, _without_names(text, place))
    place, text = _labelled(record, text, current_place())
    mark = mark_of(record)
    if mark is not None:
        place = _marked(place, mark)
    return LocatedText(place, _without_names(text, place))


def text_of(record: logging.LogRecord) -> str:
    """The text with its values; a mistake in a call costs no line."""
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        return f"{record.msg} {record.args!r}"


def mark_of(record: logging.LogRecord) -> EventMark | None:
    """What marks the record as an event."""
    mark = record.__dict__.get(FIELD)
    return mark if isinstance(mark, EventMark) else None


def _labelled(record: logging.LogRecord, text: str, here: LogPlace) -> LocatedText:
    found = _BRACKETS.match(text)
    if found is not None:
        place = place_of_label(found[1], here)
        return LocatedText(here, text) if place is None else LocatedText(place, text[found.end() :])
    for kind in _KINDS:
        label = _first_value(record, f"{kind} %s")
        if label and text.startswith(f"{kind} {label}"):
            return LocatedText(_of_kind(kind, label, here), kind + text[len(f"{kind} {label}") :])
    return LocatedText(here, text)


def _first_value(record: logging.LogRecord, template: str) -> str:
    values = record.args if isinstance(record.args, tuple) else ()
    is_such = isinstance(record.msg, str) and record.msg.startswith(template)
    return str(values[0]) if values and is_such else ""


def _of_kind(kind: str, label: str, here: LogPlace) -> LogPlace:
    """The place of "connector <label>" or "task <label>", which may name it without a flow."""
    flow, bar, name = label.partition("|")
    if not bar or ARROW not in flow:
        flow, name = here.flow, label
    if kind == "task":
        name, _, number = name.rpartition("-")
        return LogPlace(name, int(number) if number.isdigit() else None, flow)
    return LogPlace(name, None, flow)


def _marked(place: LogPlace, mark: EventMark) -> LogPlace:
    """What the mark names precedes: a leader's event may be about a task of another worker."""
    if mark.connector and mark.connector != place.connector:
        place = LogPlace(mark.connector, None, place.flow)
    if number := _TASK_NUMBER.fullmatch(mark.task):
        place = replace(place, task=int(number[1]))
    return replace(place, flow=mark.flow) if mark.flow else place


def _without_names(text: str, place: LogPlace) -> str:
    """Without the names of the place at its beginning, which the line begins with anyway."""
    task = f"{place.connector}-{place.task}"
    names = (place.flow, f"{place.flow}|{place.connector}", f"{place.flow}|{task}", task)
    for name in filter(None, names):
        text = text.removeprefix(f"{name}: ")
    return text
