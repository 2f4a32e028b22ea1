"""What a row of the table of messages has."""

from __future__ import annotations

from typing import NamedTuple


class MessageLine(NamedTuple):
    """A line, or a part of it, with `<...>` for values, and the module that makes it."""

    text: str
    module: str


class Message(NamedTuple):
    """Lines with one meaning, and what to do. Both are Markdown."""

    lines: tuple[MessageLine, ...]
    meaning: str
    action: str


def message(module: str, text: str, meaning: str, action: str) -> Message:
    """A row with one line."""
    return Message((MessageLine(text, module),), meaning, action)
