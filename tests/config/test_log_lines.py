"""No text can forge a line of the log."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.config.log_lines import as_one_entry, without_controls
from sparkmirror.logs.log_format import JsonFormatter, LineFormatter
from sparkmirror.logs.places import LogPlace, at_place

FORGED = "2026-11-17 03:00:00,000 INFO connector orders deleted"


def record(message: str, *args: object, error: Exception | None = None) -> logging.LogRecord:
    trace = None if error is None else (type(error), error, None)
    return logging.LogRecord("x", logging.INFO, "", 0, message, args, trace)


def formatted(message: str, *args: object, error: Exception | None = None) -> str:
    """A line without its time."""
    _, _, line = LineFormatter().format(record(message, *args, error=error)).split(" ", 2)
    return line


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r", "\x0b", "\x0c", "\x85", "\u2028"])
def test_a_name_cannot_begin_a_line(line_break: str) -> None:
    text = formatted("no connector %s", f"x{line_break}{FORGED}")
    assert FORGED in text
    assert not any(line.startswith(FORGED) for line in text.splitlines())
    json_text = JsonFormatter().format(record("no connector %s", f"x{line_break}{FORGED}"))
    assert len(json_text.splitlines()) == 1


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\x1b[1A"])
def test_a_connector_cannot_begin_a_line(line_break: str) -> None:
    with at_place(LogPlace(f"x{line_break}{FORGED}")):
        text = formatted("started")
    assert len(text.splitlines()) == 1
    assert "\x1b" not in text


def test_a_trace_cannot_begin_a_line() -> None:
    text = formatted("failed", error=ValueError(f"x\n{FORGED}"))
    assert text == f"INFO failed\n    ValueError: x\n    {FORGED}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2K\x1b[1A", "\\x1b[2K\\x1b[1A"),
        ("a\rb", "a\\rb"),
        ("a\x00b\x7fc\x9b", "a\\x00b\\x7fc\\x9b"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\tat org.apache", "\tat org.apache"),
        ("\u00e4 \u4e2d a->b", "\u00e4 \u4e2d a->b"),
    ],
)
def test_control_characters_are_spelled_out(text: str, shown: str) -> None:
    assert without_controls(text) == as_one_entry(text) == shown


@given(st.text())
def test_every_line_but_the_first_is_indented(text: str) -> None:
    _, *others = as_one_entry(text).splitlines()[:1] or [""], *as_one_entry(text).splitlines()[1:]
    assert all(line.startswith("    ") for line in others)
