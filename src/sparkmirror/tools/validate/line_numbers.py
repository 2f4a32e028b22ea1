"""On which line of a file each key is, and what a Java reader makes of the text without a word.

Runs on: any machine. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sparkmirror.config.files.properties import Entry
from sparkmirror.foreign_json import parse_json

# A string, with a colon after it if it is a key; else a bracket.
TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")([ \t\r\n]*:)?|[\[\]{}]', re.DOTALL)
COMMENT = re.compile(r"\s[#!]\s?\S")
ARROW = "->"
# The settings themselves, or the body of POST /connectors around them.
DEEPEST = 2


class Remark(NamedTuple):
    """Something about one key."""

    key: str
    line: int
    text: str


class JsonKey(NamedTuple):
    """A key, its line, and where the object begins that it belongs to."""

    key: str
    line: int
    owner: int


def json_keys(text: str) -> Iterator[JsonKey]:
    """The keys of a JSON object and of the objects in it, in order; the text is valid JSON."""
    owners: list[int] = []
    line, counted = 1, 0
    for found in TOKEN.finditer(text):
        if found[0] in "{[":
            owners.append(found.start())
        elif found[0] in "}]":
            owners.pop()
        elif found[2] is not None and len(owners) <= DEEPEST:
            line += text.count("\n", counted, found.start())
            counted = found.start()
            yield JsonKey(parse_json(found[1]), line, owners[-1])


def repeated(keys: Iterable[JsonKey]) -> Iterator[Remark]:
    """Keys that an object of a JSON file has more than once: the last value counts."""
    first: dict[tuple[str, int], int] = {}
    for key, line, owner in keys:
        if (key, owner) in first:
            text = f"set more than once, on lines {first[key, owner]} and {line}"
            yield Remark(key, line, f"{text}; keep one of them")
        first.setdefault((key, owner), line)


def traps(entries: Iterable[Entry]) -> Iterator[Remark]:
    """What a properties file does not mean as it looks; Java reads it so without a word."""
    for key, value, line in entries:
        if value.startswith(ARROW):
            rest = value.removeprefix(ARROW).lstrip().partition(" ")[0].partition("=")[0]
            text = f"a space ends the key, so this sets '{key}'; write {key}->{rest}"
            yield Remark(key, line, text)
        elif COMMENT.search(value):
            yield Remark(key, line, "the comment is part of the value; give it a line of its own")
        elif len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            yield Remark(key, line, "the quotes are part of the value, as in Java")
