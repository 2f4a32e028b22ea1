"""The two forms of the log."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.config.worker.log_keys import LogFormat
from sparkmirror.events import EventKind, event
from sparkmirror.logs.located_text import ORIGIN
from sparkmirror.logs.log_format import JsonFormatter, LineFormatter, utc_time
from sparkmirror.logs.log_handler import formatter_for
from sparkmirror.logs.places import LogPlace, at_place
from tests.logs.records import make_record, marked

TASK = LogPlace("mirror", 0, "a->b")


def as_json(record: logging.LogRecord) -> dict[str, Any]:
    with at_place(TASK):
        line = JsonFormatter().format(record)
    assert "\n" not in line
    assert line.isascii()
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_line_for_people() -> None:
    record = make_record("%s waits: %s", "t-0", "no leader", level=logging.WARNING)
    record.created, record.msecs = 0.25, 250.0
    with at_place(TASK):
        day, time, line = LineFormatter().format(record).split(" ", 2)
    assert (day[:8], time[-4:]) == ("1970-01-", ",250")
    assert line == "WARNING [mirror|task-0] a->b: t-0 waits: no leader"


@pytest.mark.parametrize("level", ["DEBUG", "INFO", "WARNING", "ERROR"])
def test_levels_are_aligned_on_a_terminal_only(level: str) -> None:
    record = make_record("text", level=logging.getLevelName(level))
    assert LineFormatter().format(record).endswith(f" {level} text")
    line = LineFormatter(is_terminal=True).format(record)
    assert line.endswith(f" {level:7} text")
    assert "\x1b" not in line


def test_colours_do_not_change_the_words() -> None:
    record = make_record("a text with \x1b[31m of its own")
    with at_place(TASK):
        coloured = LineFormatter(is_terminal=True, has_colours=True).format(record)
        plain = LineFormatter(is_terminal=True).format(record)
    assert "\\x1b[31m of its own" in coloured
    for code in ("\x1b[0m", "\x1b[2m", "\x1b[32m", "\x1b[36m"):
        assert code in coloured
        coloured = coloured.replace(code, "")
    assert coloured == plain


@pytest.mark.parametrize(
    ("is_terminal", "environ", "has_colours"),
    [
        (True, {}, True),
        (True, {"TERM": "xterm-256color", "NO_COLOR": ""}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
        (False, {}, False),
    ],
)
def test_colours_are_for_terminals_that_want_them(
    is_terminal: bool,
    environ: dict[str, str],
    has_colours: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    line = formatter_for(LogFormat.TEXT, environ).format(make_record("text"))
    assert ("\x1b" in line) is has_colours
    assert "\x1b" not in formatter_for(LogFormat.JSON, environ).format(make_record("text"))


def test_a_line_for_programs() -> None:
    record = make_record("[%s] %s", "a->b|mirror-0", "gone", level=logging.ERROR)
    record.created = 1_700_000_000.9996
    assert as_json(record) == {
        "time": "2023-11-14T22:13:20.999Z",
        "level": "ERROR",
        "logger": "sparkmirror.x",
        "connector": "mirror",
        "task": 0,
        "flow": "a->b",
        "message": "gone",
    }


def test_an_event_says_its_kind_and_what_it_is_about() -> None:
    mark = event(EventKind.LOST, flow="a->b", topic="t", partition=0, cluster="a", key="k")
    found = as_json(marked("lost", mark=mark))
    assert found["event"] == "lost"
    assert (found["topic"], found["partition"], found["cluster"]) == ("t", 0, "a")
    assert not {"key", "kind", "ends", "cause", "group", "user"} & found.keys()


def test_a_trace_is_a_field() -> None:
    record = make_record("broken", level=logging.ERROR)
    try:
        int("wrong\nhere")
    except ValueError:
        record.exc_info = sys.exc_info()
    found = as_json(record)
    assert found["message"] == "broken"
    assert found["trace"].startswith("Traceback")
    assert "ValueError: invalid literal" in found["trace"]


def test_a_line_of_an_executor_names_its_logger() -> None:
    found = as_json(make_record("x", extra={ORIGIN: "sparkmirror.spark.copy.copy_task"}))
    assert found["logger"] == "sparkmirror.spark.copy.copy_task"


def test_any_text_is_one_line_that_parses() -> None:
    for text in ("\u2028", "\ud800", "\x00\x1b\x7f\x9b", "\n\r", '"\\', "\u00e4\u4e2d\U0001f600"):
        assert as_json(make_record("%s", text))["message"] == text


def test_times_are_cut_not_rounded() -> None:
    assert utc_time(0) == "1970-01-01T00:00:00.000Z"
    assert utc_time(1.9999) == "1970-01-01T00:00:01.999Z"


def test_the_page_names_every_kind_of_event() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text("utf-8")
    [row] = [line for line in page.splitlines() if line.startswith("| `event` |")]
    assert [kind for kind in EventKind if f"`{kind}`" not in row] == []
    mark = event(EventKind.LOST, topic="t", partition=1, cluster="c", group="g", user="u")
    found = as_json(marked("x", mark=mark))
    fields = found.keys() - {"time", "level", "logger", "connector", "task", "flow", "message"}
    assert [name for name in fields if f"`{name}`" not in row] == []
