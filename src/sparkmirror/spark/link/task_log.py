"""Log lines on their way from a task to its worker, whose log is the one that operators read.

Runs on: worker and executor. What marks a line as an event goes with it; the worker adds which
flow, connector and task it is of.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, replace

from sparkmirror.config.masking import mask
from sparkmirror.events import FIELD, EventKind, EventMark
from sparkmirror.logs.located_text import ORIGIN, TEMPLATE
from sparkmirror.spark.link.frames import LinkMessage

LOG = "log"
# The key of events about the end of an attempt.
RUNS = "runs"


def encode_log(record: logging.LogRecord) -> LinkMessage:
    """The message of one line."""
    text = mask(record.getMessage())
    message: LinkMessage = {
        "type": LOG,
        "level": record.levelno,
        "text": text,
        # For limits of what repeats; a text that is no template may have secrets.
        "template": mask(str(record.msg)),
        "logger": record.name,
    }
    mark = getattr(record, FIELD, None)
    if isinstance(mark, EventMark):
        set_ones = {name: value for name, value in asdict(mark).items() if value or value == 0}
        message["event"] = {name: value for name, value in set_ones.items() if value is not False}
    return message


def log_line(log: logging.Logger, task: str, message: LinkMessage) -> None:
    """Log on the worker what `task` ("a->b|connector-0") has sent."""
    extra: dict[str, object] = {
        TEMPLATE: message.get("template"),
        ORIGIN: message.get("logger"),
    }
    if (found := message.get("event")) is not None:
        mark = EventMark(**{**found, "kind": EventKind(found["kind"])})
        extra[FIELD] = about_task(mark, task)
    log.log(int(message["level"]), "[%s] %s", task, message["text"], extra=extra)


def failed_event(task: str) -> Mapping[str, object]:
    """The mark of a line that says how an attempt ended."""
    return {FIELD: about_task(EventMark(EventKind.FAILED, key=RUNS), task)}


def running_event(task: str) -> Mapping[str, object]:
    """The mark of a line that says that the next attempt runs."""
    return {FIELD: about_task(EventMark(EventKind.RECOVERED, key=RUNS, ends=True), task)}


def about_task(mark: EventMark, task: str) -> EventMark:
    """The same, of this task; so its keys are different from those of other tasks."""
    flow, _, name = task.partition("|")
    connector, _, number = name.rpartition("-")
    return replace(
        mark,
        flow=flow,
        connector=connector,
        task=number,
        key=mark.key and f"{task} {mark.key}",
        cause=mark.cause and f"{task} {mark.cause}",
    )


def describe_task(task: str) -> str:
    """The name of a task's job on Spark's page: "Copy a->b (MirrorSourceConnector-0)"."""
    flow, _, name = task.partition("|")
    return f"Copy {flow} ({name})"
