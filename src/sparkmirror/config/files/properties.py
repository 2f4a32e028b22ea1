"""Reads Java `.properties` files by Java's rules, and rejects what Java would silently accept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import javaproperties

from sparkmirror.errors import ConfigError, ConfigErrors

LINE_END = re.compile(r"\r\n|\r|\n")
BLANKS = " \t\f"
COMMENTS = ("#", "!")
KEY = re.compile(r"(?:[^\\=: \t\f]|\\.)*+", re.DOTALL)
SEPARATOR = re.compile(r"[ \t\f]*+(?:[=:][ \t\f]*+)?")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Never in a text file: of control characters, it has only tab, line feed, form feed and return.
BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f]")


class Entry(NamedTuple):
    """One key of a file and the line it begins on."""

    key: str
    value: str
    line: int


def load_properties(path: Path) -> dict[str, str]:
    """The keys and values of `path`.

    Raises:
        ConfigErrors: the file cannot be read, is empty or binary, or sets a key twice. Java uses
            the last of two equal keys; here that is an error, because one of them is a mistake.
    """
    entries = load_entries(path)
    if errors := find_duplicates(path, entries):
        raise ConfigErrors(errors)
    return {entry.key: entry.value for entry in entries}


def load_entries(path: Path) -> tuple[Entry, ...]:
    """Every key of `path` with its line, including repeated ones.

    Raises:
        ConfigErrors: the file cannot be read, is empty or binary.
    """
    data = _read(path)
    try:
        # Latin-1, as Java reads them.
        entries = tuple(parse_entries(data.decode("latin-1")))
    except javaproperties.InvalidUEscapeError as error:
        raise _refuse(path, f"malformed escape: {error}", "write \\u and four hex digits") from None
    if not entries:
        raise _refuse(path, "the file sets no keys", "see docs/configuration.md for an example")
    return entries


def parse_entries(text: str) -> Iterator[Entry]:
    """Every key of the text in order, including repeated ones.

    Raises:
        javaproperties.InvalidUEscapeError: a \\u without four hex digits after it.
    """
    for number, line in _logical_lines(text):
        key = KEY.match(line)
        assert key is not None  # it also matches the empty string
        separator = SEPARATOR.match(line, key.end())
        assert separator is not None  # the same
        value = line[separator.end() :]
        yield Entry(javaproperties.unescape(key[0]), javaproperties.unescape(value), number)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines joined with their continuations and numbered by their first; no comments, no blanks.

    javaproperties can do this too, but rereads the whole line for each continuation.
    """
    lines = enumerate(LINE_END.split(text), 1)
    for number, line in lines:
        parts = [line.lstrip(BLANKS)]
        while _ends_escaped(parts[-1]) and not _is_comment(parts):
            parts[-1] = parts[-1][:-1]
            parts.append(next(lines, (0, ""))[1].lstrip(BLANKS))
        if any(parts) and not _is_comment(parts):
            yield number, "".join(parts)


def _is_comment(parts: list[str]) -> bool:
    return parts[-1].startswith(COMMENTS) and not any(parts[:-1])


def _ends_escaped(part: str) -> bool:
    """Whether the part ends with a backslash that is not itself escaped."""
    return (len(part) - len(part.rstrip("\\"))) % 2 == 1


def _read(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise _refuse(path, "no such file", "check the path") from None
    except IsADirectoryError:
        raise _refuse(path, "this is a directory", "name a .properties file in it") from None
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise _refuse(path, reason, "check the file's owner and mode") from None
    if data.startswith(BYTE_ORDER_MARK):
        raise _refuse(path, "begins with a byte order mark", "save it as text without one")
    if BINARY.search(data):
        raise _refuse(path, "not a text file", "name a .properties file")
    return data


def find_duplicates(path: Path, entries: Iterable[Entry]) -> list[ConfigError]:
    """An error for each key that is set more than once."""
    lines: dict[str, list[int]] = {}
    for entry in entries:
        lines.setdefault(entry.key, []).append(entry.line)
    return [
        ConfigError(
            key,
            None,
            f"set more than once, on lines {_join(found)}",
            "keep one of them (Java would take the last)",
            str(path),
        )
        for key, found in lines.items()
        if len(found) > 1
    ]


def _join(lines: list[int]) -> str:
    *rest, last = (str(line) for line in lines)
    return f"{', '.join(rest)} and {last}"


def _refuse(path: Path, reason: str, remedy: str) -> ConfigErrors:
    return ConfigErrors([ConfigError("", None, reason, remedy, str(path))])
